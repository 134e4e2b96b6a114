//! The real binary as a server, and as the commands that talk to it.

#![allow(dead_code, reason = "each test program uses its part of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest time that a test waits for anything, even on a slow machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder that is removed at the end of the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A path inside, as text for a command line.
    pub(crate) fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the path is text").to_owned()
    }

    /// Writes a file inside, and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        std::fs::write(self.0.join(name), content).expect("a file for the test");
        self.at(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// The command, with nothing of the tester's own settings in its environment or folder.
pub(crate) fn redrive(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
        command.env_remove(name);
    }
    command.args(args).current_dir(env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
    command
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A start that does not get far: whatever the server does to make or repair its store is cut short too.
pub(crate) fn killed_while_starting(store: &[&str], lifetime: Duration) {
    let args = [&["serve", "--listen", "127.0.0.1:0"], store].concat();
    let mut child = redrive(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a server");
    std::thread::sleep(lifetime);
    child.kill().expect("it can be killed");
    child.wait().expect("it can be waited for");
}

/// A server that runs. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
    agent: ureq::Agent,
}

impl Server {
    /// Starts a server on a free port of the loopback, and waits until it answers.
    pub(crate) fn start(data: &str) -> Self {
        Self::start_with(data, &[])
    }

    pub(crate) fn start_with(data: &str, more: &[&str]) -> Self {
        Self::start_at(&["--data", data], more)
    }

    /// Starts a server with these flags for its store.
    pub(crate) fn start_at(store: &[&str], more: &[&str]) -> Self {
        Self::start_under(&[], store, more)
    }

    /// Starts a server with more in its environment.
    pub(crate) fn start_under(environment: &[(&str, &str)], store: &[&str], more: &[&str]) -> Self {
        let args = [&["serve", "--listen", "127.0.0.1:0"], store, more].concat();
        let mut command = redrive(&args);
        command.envs(environment.iter().copied());
        Self::start_as(command)
    }

    /// Starts a server again on the address that it had.
    pub(crate) fn start_on(url: &str, data: &str) -> Self {
        Self::start_again(url, &["--data", data], &[])
    }

    /// The same with these flags for its store, and with others.
    pub(crate) fn start_again(url: &str, store: &[&str], more: &[&str]) -> Self {
        let address = url.strip_prefix("http://").expect("an address");
        Self::start_as(redrive(&[&["serve", "--listen", address], store, more].concat()))
    }

    /// Starts a server from a shell that has run this before, such as `ulimit -n 160`.
    pub(crate) fn start_after(before: &str, data: &str, more: &[&str]) -> Self {
        let plain = redrive(&[&["serve", "--listen", "127.0.0.1:0", "--data", data], more].concat());
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("{before} && exec \"$0\" \"$@\""))
            .arg(plain.get_program())
            .args(plain.get_args());
        for (name, _) in plain.get_envs().filter(|(_, value)| value.is_none()) {
            command.env_remove(name);
        }
        command.current_dir(env!("CARGO_TARGET_TMPDIR"));
        Self::start_as(command)
    }

    fn start_as(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a server");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (found, address) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let stored = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once(" on http://") {
                    let _ = found.send(format!("http://{}", rest.split(' ').next().unwrap_or_default()));
                }
                stored.lock().expect("no panic while it was held").push(line);
            }
        });
        let url = address.recv_timeout(TIMEOUT);
        let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = config.timeout_global(Some(TIMEOUT)).build().into();
        let mut server = Self { child, url: String::new(), lines, reader: Some(reader), agent };
        server.url = url.unwrap_or_else(|_| panic!("the server prints no address: {:?}", server.log_lines()));
        until("the server answers", || server.call("GET", "/ojs/v1/health", &Value::Null).ok());
        server
    }

    /// The lines of its log so far.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic while it was held").clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> (ExitStatus, Vec<String>) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
        let status = until("the server stops", || self.child.try_wait().expect("it can be waited for"));
        self.reader.take().expect("one reader").join().expect("the reader ends");
        (status, self.log_lines())
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(mut self) -> (ExitStatus, Vec<String>) {
        let status = until("the server ends", || self.child.try_wait().expect("it can be waited for"));
        self.reader.take().expect("one reader").join().expect("the reader ends");
        (status, self.log_lines())
    }

    /// Kills it, without a chance to clean up.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// A request; the status and the document. An error if no complete answer came.
    pub(crate) fn call(&self, method: &str, path: &str, body: &Value) -> Result<(u16, Value), String> {
        call(&self.agent, &self.url, method, path, body)
    }

    /// A request that must succeed.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, document) = self.call(method, path, &body).expect("an answer");
        assert!((200..300).contains(&status), "{method} {path}: {status} {document}");
        document
    }

    pub(crate) fn enqueue(&self, body: Value) -> String {
        let answer = self.ask("POST", "/ojs/v1/jobs", body);
        answer["job"]["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn fetch(&self, queue: &str, count: usize) -> Vec<Value> {
        let body = json!({ "queues": [queue], "count": count, "worker_id": "tester" });
        let mut answer = self.ask("POST", "/ojs/v1/workers/fetch", body);
        answer["jobs"].as_array_mut().expect("jobs").drain(..).collect()
    }

    /// Waits for a job and claims it.
    pub(crate) fn claim(&self, queue: &str) -> Value {
        until(&format!("a job in {queue}"), || self.fetch(queue, 1).pop())
    }

    pub(crate) fn fail(&self, job: &Value, error_type: &str) -> Value {
        let error = json!({ "type": error_type, "message": format!("{error_type} happened") });
        let body = json!({ "job_id": job["id"], "lease_token": job["lease_token"], "error": error });
        self.ask("POST", "/ojs/v1/workers/nack", body)
    }

    pub(crate) fn succeed(&self, job: &Value) -> Value {
        let body = json!({ "job_id": job["id"], "lease_token": job["lease_token"] });
        self.ask("POST", "/ojs/v1/workers/ack", body)
    }

    pub(crate) fn job(&self, id: &str) -> Value {
        self.ask("GET", &format!("/ojs/v1/jobs/{id}"), Value::Null)["job"].take()
    }

    pub(crate) fn state(&self, id: &str) -> String {
        self.job(id)["state"].as_str().expect("a state").to_owned()
    }

    /// A command that talks to this server.
    pub(crate) fn command(&self, args: &[&str]) -> Output {
        redrive(args).env("REDRIVE_SERVER", &self.url).output().expect("the command runs")
    }

    /// A command that must succeed; what it printed.
    pub(crate) fn printed(&self, args: &[&str]) -> String {
        let output = self.command(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        stdout(&output)
    }

    /// The same, for programs.
    pub(crate) fn printed_json(&self, args: &[&str]) -> Value {
        let printed = self.printed(args);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{args:?}: {error}: {printed}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server said: {:#?}", self.log_lines());
        }
    }
}

/// A request; the status and the document. An error if no complete answer came.
pub(crate) fn call(
    agent: &ureq::Agent,
    url: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<(u16, Value), String> {
    let url = format!("{url}{path}");
    let answer = match method {
        "GET" => agent.get(url).header("ojs-version", "1.0").call(),
        "DELETE" => agent.delete(url).header("ojs-version", "1.0").call(),
        _ => {
            let request = if method == "PUT" { agent.put(url) } else { agent.post(url) };
            let request = request.header("ojs-version", "1.0").header("content-type", "application/json");
            request.send(body.to_string())
        }
    };
    let mut answer = answer.map_err(|error| error.to_string())?;
    let bytes = answer.body_mut().read_to_vec().map_err(|error| error.to_string())?;
    let document = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    Ok((answer.status().as_u16(), document))
}

/// Polls until there is a value; panics after [`TIMEOUT`].
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "timed out after {TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
