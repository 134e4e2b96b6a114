//! A server from its start to its end.

use crate::{folder, redrive, settings, text_of};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that runs until it is stopped.
struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
    printed: Vec<String>,
}

impl Running {
    /// Starts it and waits until it has logged what it found.
    fn start(dir: &Path, args: &[&str]) -> Self {
        let mut command = redrive(dir);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", "store"]).args(args);
        Self::start_as(command)
    }

    fn start_as(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut running = Self { child, stderr, address: String::new(), printed: Vec::new() };
        // The store is opened first: whether callers need a key is stored there too.
        running.address = loop {
            let line = running.line();
            if let Some((_, behind)) = line.split_once("http://") {
                break behind.split(' ').next().unwrap().to_owned();
            }
        };
        running
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended: {:?}", self.printed);
        self.printed.push(line.clone());
        line
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    /// Sends a signal and waits for the end; returns the exit code and the whole output.
    fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let code = self.child.wait().unwrap().code();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(out, "", "standard output is for programs");
        (code, self.printed.concat() + &rest)
    }
}

#[test]
fn a_server_stops_in_good_order_and_finds_its_jobs_again() {
    let dir = folder("restart");
    let server = Running::start(&dir, &[]);
    assert!(server.printed.concat().contains("found 0 jobs"), "{:?}", server.printed);
    assert_eq!(server.call("GET", "/ojs/v1/health", &Value::Null).0, 200);
    let job = json!({ "type": "a.b", "args": ["stored"], "options": { "retry": { "max_attempts": 9 } } });
    let (status, created) = server.call("POST", "/ojs/v1/jobs", &job);
    assert_eq!(status, 201);
    let (code, printed) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("stopping: ") && printed.contains("is closed"), "{printed}");

    let server = Running::start(&dir, &[]);
    assert!(server.printed.concat().contains("found 1 jobs (1 available)"), "{:?}", server.printed);
    let id = created["job"]["id"].as_str().unwrap();
    let (status, body) = server.call("GET", &format!("/ojs/v1/jobs/{id}"), &Value::Null);
    assert_eq!((status, &body["job"]["args"], &body["job"]["max_attempts"]), (200, &json!(["stored"]), &json!(9)));
    assert_eq!(body["job"]["redrive"]["policy_from"]["layer"], "job");
    let second = redrive(&dir).args(["serve", "--listen", "127.0.0.1:0", "--data", "store"]).output().unwrap();
    assert_eq!(second.status.code(), Some(3));
    assert!(self::text_of(&second).contains("in use by"), "{}", self::text_of(&second));
    assert_eq!(server.stop("-INT").0, Some(0));
}

#[test]
fn every_line_of_the_log_has_its_time_and_level() {
    let dir = folder("log");
    let server = Running::start(&dir, &[]);
    let (_, printed) = server.stop("-TERM");
    assert!(printed.lines().count() >= 4, "{printed}");
    for line in printed.lines() {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let at = words[0].as_bytes();
        assert!(at.len() == 27 && at[10] == b'T' && at[26] == b'Z' && at.starts_with(b"20"), "{line}");
        assert!(["info", "warn", "error"].contains(&words[1]), "{line}");
    }
}

#[test]
fn a_journal_adds_times_of_its_own() {
    let dir = folder("journal");
    let journal = "JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2)";
    for (stream, marked) in [(journal, true), ("JOURNAL_STREAM=1:2", false)] {
        let plain = redrive(&dir);
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{stream} exec \"$0\" \"$@\"")).arg(plain.get_program());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", "store"]).current_dir(&dir);
        for (name, _) in plain.get_envs() {
            command.env_remove(name);
        }
        let (_, printed) = Running::start_as(command).stop("-TERM");
        assert!(printed.lines().all(|line| line.starts_with("<6>") == marked), "{stream}: {printed}");
    }
}

#[test]
fn policies_of_the_file_apply() {
    let dir = folder("policies");
    let file = r#"
[policies.server]
max_attempts = 4
[policies.types."mail.send"]
dialect = "azolla"
policy = { stop = { max_attempts = 6 } }
[policies.types."mail.*"]
max_attempts = 7
[caps.queues.tight]
max_attempts = 2
"#;
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let server = Running::start(&dir, &[]);
    for (kind, queue, attempts) in [
        ("a.b", "default", 4),
        ("mail.send", "default", 6),
        ("mail.receive", "default", 7),
        ("mail.list.add", "default", 7),
        ("mail.send", "tight", 2),
    ] {
        let job = json!({ "type": kind, "args": [], "options": { "queue": queue } });
        assert_eq!(server.call("POST", "/ojs/v1/jobs", &job).1["job"]["max_attempts"], attempts, "{kind} in {queue}");
    }
    assert_eq!(server.stop("-TERM").0, Some(0));
}

#[test]
fn an_address_that_is_taken_is_an_error_of_its_own() {
    let dir = folder("taken");
    let server = Running::start(&dir, &[]);
    let address = server.address.clone();
    let second = redrive(&dir).args(["serve", "--listen", &address, "--data", "other"]).output().unwrap();
    assert_eq!(second.status.code(), Some(3));
    assert!(text_of(&second).contains("cannot listen on"), "{}", text_of(&second));
    assert_eq!(server.stop("-TERM").0, Some(0));
}

#[test]
fn the_default_policy_is_read_from_a_file_in_any_dialect() {
    let dir = folder("default-policy");
    std::fs::write(dir.join("safe.yaml"), "max_attempts: 7\non_exhaustion: dead_letter\n").unwrap();
    let server = Running::start(&dir, &["--default-policy", "safe.yaml"]);
    let (status, answer) = server.call("POST", "/ojs/v1/jobs", &json!({ "type": "a.b", "args": [] }));
    assert_eq!((status, &answer["job"]["max_attempts"]), (201, &json!(7)), "{answer}");
    assert_eq!(answer["job"]["retry"]["on_exhaustion"], "dead_letter");
    server.stop("-TERM");
    let shown = redrive(&dir).args(["config", "--json", "--default-policy", "safe.yaml"]).output().unwrap();
    let shown = settings(&shown);
    assert_eq!(shown["default_policy"]["value"], "safe.yaml", "{shown}");

    std::fs::write(dir.join("azolla.json"), r#"{"stop": {"max_attempts": 4}, "retry": {"include_errors": ["A"]}}"#)
        .unwrap();
    std::fs::write(dir.join("redrive.toml"), "default_policy = \"azolla.json\"\n").unwrap();
    let server = Running::start(&dir, &[]);
    let (_, answer) = server.call("POST", "/ojs/v1/jobs", &json!({ "type": "a.b", "args": [] }));
    assert_eq!(answer["job"]["max_attempts"], 4, "{answer}");
    server.stop("-TERM");
}

#[test]
fn a_default_policy_that_is_wrong_or_said_twice_is_refused() {
    let dir = folder("default-policy-wrong");
    std::fs::write(dir.join("typo.json"), r#"{"max_atempts": 7}"#).unwrap();
    for (file, printed) in [("typo.json", "max_attempts"), ("missing.json", "cannot read missing.json")] {
        let output = redrive(&dir).args(["config", "--default-policy", file]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{file}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains("default_policy: ") && message.contains(printed), "{message}");
    }
    std::fs::write(dir.join("good.json"), r#"{"max_attempts": 7}"#).unwrap();
    let both = "default_policy = \"good.json\"\n[policies.server]\nmax_attempts = 5\n";
    std::fs::write(dir.join("redrive.toml"), both).unwrap();
    let output = redrive(&dir).args(["config"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && message.contains("found together with [policies.server]"), "{message}");
}

#[test]
fn limits_of_the_file_are_set_at_every_start() {
    let dir = folder("file-limits");
    let file = "max_depth = 2\n[queues.mail]\nbackpressure = { max_depth = 1 }\n[keys.api]\nconcurrency = 3\n";
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let config = "/ojs/v1/admin/queues/mail/config";
    for _ in 0..2 {
        let server = Running::start(&dir, &[]);
        let (_, answer) = server.call("GET", config, &json!({}));
        assert_eq!(answer["configuration"]["backpressure"]["max_depth"], 1, "{answer}");
        // What is changed meanwhile lasts until the next start.
        assert_eq!(server.call("PUT", config, &json!({})).0, 200);
        server.stop("-TERM");
    }
    let server = Running::start(&dir, &[]);
    assert_eq!(server.call("GET", "/ojs/v1/rate-limits/api", &json!({})).1["concurrency"]["limit"], 3);
    let enqueue = |queue: &str| {
        let job = json!({ "type": "a.b", "args": [], "options": { "queue": queue } });
        server.call("POST", "/ojs/v1/jobs", &job).0
    };
    assert_eq!(["mail", "mail", "other", "other", "other"].map(enqueue), [201, 429, 201, 201, 429]);
    server.stop("-TERM");
}

#[test]
fn a_lease_of_the_file_ends_states_of_its_namespace() {
    let dir = folder("file-leases");
    std::fs::write(dir.join("redrive.toml"), "[namespaces.\"My Project\"]\nlease = \"1s\"\n").unwrap();
    let server = Running::start(&dir, &[]);
    let taken = ["My%20Project", "other"].map(|namespace| {
        let ask = |method: &str, path: &str, body: Value| {
            let (status, answer) = server.call(method, &format!("/v0/namespace/{namespace}/{path}"), &body);
            assert!((200..300).contains(&status), "{path}: {answer}");
            answer
        };
        let node = json!({ "name": "N", "inputs_schema": {}, "outputs_schema": {}, "secrets": [] });
        ask("PUT", "nodes/", json!({ "runtime_name": "r", "nodes": [node] }));
        let name = namespace.replace("%20", " ");
        let node = json!({ "node_name": "N", "namespace": name, "identifier": "n", "inputs": {} });
        ask("PUT", "graph/g", json!({ "secrets": {}, "nodes": [node] }));
        let run = ask("POST", "graph/g/trigger", json!({}))["run_id"].as_str().unwrap().to_owned();
        assert_eq!(ask("POST", "states/enqueue", json!({ "nodes": ["N"], "batch_size": 1 }))["count"], 1);
        format!("/v0/namespace/{namespace}/states/run/{run}/graph")
    });
    let statuses = |path: &str| server.call("GET", path, &json!({})).1["execution_summary"].clone();
    let deadline = Instant::now() + Duration::from_secs(60);
    while statuses(&taken[0])["RETRY_CREATED"] != 1 {
        assert!(Instant::now() < deadline, "{}", statuses(&taken[0]));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(statuses(&taken[1])["QUEUED"], 1, "the other namespace has no lease");
    server.stop("-TERM");
}
