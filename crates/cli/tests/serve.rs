//! `redrive serve` and `redrive config`, as the binary that people run.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// A folder of this test's own, empty at first.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The binary, in a folder, without settings from around the test.
fn redrive(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.current_dir(dir);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
        command.env_remove(name);
    }
    command
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn settings(output: &Output) -> Value {
    assert!(output.status.success(), "{}", told(output));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    value["settings"].clone()
}

#[test]
fn flags_come_before_the_environment_before_the_file_before_the_defaults() {
    let dir = folder("precedence");
    let file = "listen = \"127.0.0.1:1\"\ndata = \"from-file\"\nlease = \"1m\"\n[limits]\nbatch = 7\nfetch = 8\n";
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let output = redrive(&dir)
        .args(["config", "--json", "--listen", "127.0.0.1:3", "--set", "limits.fetch=10"])
        .envs([("REDRIVE_LISTEN", "127.0.0.1:2"), ("REDRIVE_DATA", "from-env"), ("REDRIVE_LIMITS_FETCH", "9")])
        // As in a command of `redrive work`.
        .env("REDRIVE_JOB_ID", "0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c")
        .output()
        .unwrap();
    let settings = settings(&output);
    for (key, value, from) in [
        ("listen", "127.0.0.1:3", "flag --listen"),
        ("limits.fetch", "10", "flag --set limits.fetch"),
        ("data", "from-env", "environment REDRIVE_DATA"),
        ("lease", "1m", "file redrive.toml"),
        ("limits.batch", "7", "file redrive.toml"),
        ("timeout", "30m", "default"),
    ] {
        assert_eq!((&settings[key]["value"], &settings[key]["from"]), (&json!(value), &json!(from)), "{key}");
        assert!(settings[key]["what"].is_string());
    }
}

#[test]
fn what_is_printed_for_people_can_stand_in_the_file() {
    let dir = folder("printed");
    let set = ["--set", "limits.batch=7", "--set", "limits.body_bytes=2MiB", "--data", "a \"quoted\" folder"];
    let printed = redrive(&dir).arg("config").args(set).output().unwrap();
    assert!(printed.status.success(), "{}", told(&printed));
    std::fs::write(dir.join("redrive.toml"), &printed.stdout).unwrap();
    let before =
        settings(&redrive(&dir).args(["config", "--json", "--config", "/dev/null"]).args(set).output().unwrap());
    let after = settings(&redrive(&dir).args(["config", "--json"]).output().unwrap());
    for (key, setting) in after.as_object().unwrap() {
        assert_eq!(setting["value"], before[key]["value"], "{key}");
        let secret = ["api_key", "store"].contains(&key.as_str());
        let from = if secret { "default" } else { "file redrive.toml" };
        assert_eq!(setting["from"], from, "{key}");
    }
}

#[test]
fn the_example_of_the_page_is_a_valid_file() {
    let dir = folder("example");
    let key = "0123456789abcdef0123456789abcdef";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/example.toml");
    // The keys of the example lie outside of this test's folder.
    let example = std::fs::read_to_string(file).unwrap().replace("/etc/redrive/keys", "keys");
    std::fs::write(dir.join("keys"), key).unwrap();
    std::fs::write(dir.join("redrive.toml"), example).unwrap();
    let settings = settings(&redrive(&dir).args(["config", "--json"]).output().unwrap());
    assert_eq!(settings["limits.batch"]["value"], "5000");
}

#[test]
fn every_problem_is_listed_at_once() {
    let dir = folder("problems");
    let file = r#"
listen = "nowhere"
color = "red"
[limits]
batch = 0
nestin = 3
[policies.server]
max_attempts = -1
jitter = 5
[policies.queues.slow]
dialect = "perl"
policy = {}
[policies.types."a.b"]
dialect = "azolla"
[policies.color]
x = 1
[caps]
max_attempts = "x"
max_elapsed = "soon"
[caps.queues.slow]
max_attemps = 3
"#;
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let mut command = redrive(&dir);
    command.args(["serve", "--set", "limits.page=0", "--set", "nonsense", "--set", "no.such=1"]);
    let output = command.env("REDRIVE_TIMEOUT", "never").env("REDRIVE_COLOR", "red").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "the command line is wrong too");
    let told = told(&output);
    for part in [
        "listen: found \"nowhere\"",
        "color: there is no such setting",
        "limits.batch: found \"0\"",
        "limits.nestin: there is no such setting",
        "policies.server.max_attempts",
        "policies.server.jitter",
        "policies.queues.slow.dialect: unknown dialect \"perl\"",
        "policies.types.a.b: found a dialect without a policy",
        "policies.color: there is no such setting",
        "caps.max_attempts: found \"x\"",
        "caps.max_elapsed: found \"soon\"",
        "caps.queues.slow.max_attemps: there is no such setting",
        "flag --set limits.page: limits.page: found \"0\"",
        "--set nonsense: found no \"=\"",
        "--set no.such: there is no such setting",
        "environment REDRIVE_TIMEOUT: timeout: found \"never\"",
        "environment REDRIVE_COLOR: there is no such setting",
        "17 problems",
    ] {
        assert!(told.contains(part), "{part} is missing in:\n{told}");
    }
}

#[test]
fn a_name_that_is_no_setting_or_can_never_match_leads_to_the_one_that_is_meant() {
    let dir = folder("meant");
    let file = "batch = 7\n[limit]\nfetch = 8\n[limits]\nlong-poll = \"1m\"\n[policies.typs]\n\
                [policies.queues.My_Queue]\n[policies.types.\"Mail.*\"]\n[caps]\nmax_atempts = 1\n[caps.queues.\"a b\"]\n";
    std::fs::write(dir.join("redrive.toml"), file).unwrap();
    let mut command = redrive(&dir);
    let output = command.args(["serve", "--set", "retention.ded=1h"]).env("REDRIVE_LIMIT_BATCH", "7").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = told(&output);
    for (wrong, meant) in [
        ("redrive.toml: batch: ", "limits.batch"),
        ("redrive.toml: limit.fetch: ", "limits.fetch"),
        ("redrive.toml: limits.long-poll: ", "limits.long_poll"),
        ("policies.typs: ", "types"),
        ("policies.queues: found \"My_Queue\"", "my-queue"),
        ("policies.types: found \"Mail.*\"", "mail.*"),
        ("caps.max_atempts: ", "max_attempts"),
        ("caps.queues: found \"a b\"", "a.b"),
        ("--set retention.ded: ", "retention.dead"),
        ("environment REDRIVE_LIMIT_BATCH: ", "REDRIVE_LIMITS_BATCH"),
    ] {
        let line = told.lines().find(|line| line.contains(wrong));
        let line = line.unwrap_or_else(|| panic!("{wrong} is missing in:\n{told}"));
        assert!(line.ends_with(&format!("did you mean \"{meant}\"?")), "{line}");
    }
    assert!(told.contains("10 problems"), "{told}");
}

#[test]
fn other_machines_are_let_in_only_with_a_key_and_keys_are_hidden() {
    let dir = folder("keys");
    let key = "0123456789abcdef0123456789abcdef";
    let open = redrive(&dir).args(["config", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(open.status.code(), Some(2));
    assert!(told(&open).contains("which other machines can reach"), "{}", told(&open));
    let with_key =
        redrive(&dir).args(["config", "--listen", "0.0.0.0:0"]).env("REDRIVE_API_KEY", key).output().unwrap();
    assert!(with_key.status.success(), "{}", told(&with_key));
    let shown = String::from_utf8(with_key.stdout).unwrap();
    assert!(shown.contains("api_key is set, and not shown") && !shown.contains(key), "{shown}");
    std::fs::write(dir.join("keys"), "too short\n").unwrap();
    let weak = redrive(&dir).args(["config", "--api-key-file", "keys"]).output().unwrap();
    assert!(
        told(&weak).contains("found a key of 9 characters") && !told(&weak).contains("too short\n"),
        "{}",
        told(&weak)
    );
    let on_line = redrive(&dir).args(["config", "--set", &format!("api_key={key}")]).output().unwrap();
    assert!(told(&on_line).contains("can be seen by others") && !told(&on_line).contains(key));
}

#[test]
fn a_wrong_command_line_is_told_from_a_wrong_file_by_the_exit_code() {
    let dir = folder("exit");
    std::fs::write(dir.join("wrong.toml"), "listen = \"nowhere\"\n").unwrap();
    std::fs::write(dir.join("no-keys.toml"), "api_key_file = \"missing\"\n").unwrap();
    for (args, code, part) in [
        (&["--listen", "nowhere"][..], 2, "allowed is an address with a port"),
        (&["--api-key-file", "missing"], 2, "cannot read \"missing\""),
        (&["--config", "missing.toml"], 2, "cannot read missing.toml"),
        (&["--set", "limits.batch=0"], 2, "limits.batch: found \"0\""),
        (&["--config", "no-keys.toml"], 2, "cannot read \"missing\""),
        (&["--config", "wrong.toml"], 1, "listen: found \"nowhere\""),
    ] {
        let output = redrive(&dir).arg("serve").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", told(&output));
        assert!(told(&output).contains(part), "{args:?}: {}", told(&output));
    }
}

#[test]
fn a_timeout_of_no_time_is_refused_before_anything_is_sent() {
    let output = redrive(&folder("timeout")).args(["enqueue", "a.b", "--timeout", "0s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("\"0s\" is zero; allowed is a longer time"), "{}", told(&output));
}

/// A server that runs until it is stopped.
struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
    told: Vec<String>,
}

impl Running {
    /// Starts it and waits until it has said what it found.
    fn start(dir: &Path, args: &[&str]) -> Self {
        let mut command = redrive(dir);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", "store"]).args(args);
        Self::start_as(command)
    }

    fn start_as(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut running = Self { child, stderr, address: String::new(), told: Vec::new() };
        while !running.line().contains("found ") {}
        let first = running.told[0].clone();
        running.address = first.split("http://").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        running
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended: {:?}", self.told);
        self.told.push(line.clone());
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

    /// Sends a signal and waits for the end; answers the exit code and everything that was said.
    fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let code = self.child.wait().unwrap().code();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(out, "", "standard output is for programs");
        (code, self.told.concat() + &rest)
    }
}

#[test]
fn a_server_stops_in_good_order_and_finds_its_jobs_again() {
    let dir = folder("restart");
    let server = Running::start(&dir, &[]);
    assert!(server.told.concat().contains("found 0 jobs"), "{:?}", server.told);
    assert_eq!(server.call("GET", "/ojs/v1/health", &Value::Null).0, 200);
    let job = json!({ "type": "a.b", "args": ["kept"], "options": { "retry": { "max_attempts": 9 } } });
    let (status, created) = server.call("POST", "/ojs/v1/jobs", &job);
    assert_eq!(status, 201);
    let (code, told) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("stopping: ") && told.contains("is closed"), "{told}");

    let server = Running::start(&dir, &[]);
    assert!(server.told.concat().contains("found 1 jobs (1 available)"), "{:?}", server.told);
    let id = created["job"]["id"].as_str().unwrap();
    let (status, body) = server.call("GET", &format!("/ojs/v1/jobs/{id}"), &Value::Null);
    assert_eq!((status, &body["job"]["args"], &body["job"]["max_attempts"]), (200, &json!(["kept"]), &json!(9)));
    assert_eq!(body["job"]["redrive"]["policy_from"]["layer"], "job");
    let second = redrive(&dir).args(["serve", "--listen", "127.0.0.1:0", "--data", "store"]).output().unwrap();
    assert_eq!(second.status.code(), Some(3));
    assert!(self::told(&second).contains("in use by"), "{}", self::told(&second));
    assert_eq!(server.stop("-INT").0, Some(0));
}

#[test]
fn every_line_of_the_log_has_its_time_and_level() {
    let dir = folder("log");
    let server = Running::start(&dir, &[]);
    let (_, told) = server.stop("-TERM");
    assert!(told.lines().count() >= 4, "{told}");
    for line in told.lines() {
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
        let (_, told) = Running::start_as(command).stop("-TERM");
        assert!(told.lines().all(|line| line.starts_with("<6>") == marked), "{stream}: {told}");
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
    assert!(told(&second).contains("cannot listen on"), "{}", told(&second));
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
    for (file, told) in [("typo.json", "max_attempts"), ("missing.json", "cannot read missing.json")] {
        let output = redrive(&dir).args(["config", "--default-policy", file]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{file}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("default_policy: ") && said.contains(told), "{said}");
    }
    std::fs::write(dir.join("good.json"), r#"{"max_attempts": 7}"#).unwrap();
    let both = "default_policy = \"good.json\"\n[policies.server]\nmax_attempts = 5\n";
    std::fs::write(dir.join("redrive.toml"), both).unwrap();
    let output = redrive(&dir).args(["config"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("found beside [policies.server]"), "{said}");
}
