//! Starting, stopping, and starting again.

use crate::harness::{Folder, Server, call, redrive, stderr, until};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

fn job(queue: &str, more: Value) -> Value {
    let mut job = json!({ "type": "a.b", "args": [1, "two"], "options": { "queue": queue } });
    let options = job["options"].as_object_mut().expect("an object");
    options.extend(more.as_object().cloned().unwrap_or_default());
    job
}

#[test]
fn a_restart_after_sigterm_finds_everything_as_it_was() {
    let folder = Folder::new("restart");
    let server = Server::start(&folder.at("data"));
    let slow = json!({ "retry": { "initial_interval": "PT1H", "max_interval": "PT2H" } });
    let deadly = json!({ "retry": { "max_attempts": 1, "on_exhaustion": "dead_letter" } });
    let waiting = server.enqueue(job("waiting", json!({ "priority": 7 })));
    let scheduled = server.enqueue(job("later", json!({ "scheduled_at": "2199-01-01T00:00:00Z" })));
    let retried = server.enqueue(job("retried", slow));
    server.fail(&server.claim("retried"), "external.timeout");
    let done = server.enqueue(job("done", json!({})));
    server.succeed(&server.claim("done"));
    let dead = server.enqueue(job("dead", deadly));
    server.fail(&server.claim("dead"), "external.timeout");
    let active = server.enqueue(job("active", json!({})));
    let lease = server.claim("active");
    server.printed(&["queues", "pause", "waiting"]);
    let ids = [&waiting, &scheduled, &retried, &done, &dead, &active];
    let before: Vec<Value> = ids.iter().map(|id| server.job(id)).collect();
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log:?}");

    let server = Server::start(&folder.at("data"));
    let after: Vec<Value> = ids.iter().map(|id| server.job(id)).collect();
    assert_eq!(after, before);
    let states: Vec<&str> = after.iter().filter_map(|job| job["state"].as_str()).collect();
    assert_eq!(states, ["available", "scheduled", "retryable", "completed", "discarded", "active"]);
    let log = server.log_lines().join("\n");
    assert!(log.contains("found 6 jobs"), "{log}");
    assert!(server.fetch("waiting", 1).is_empty(), "the queue is still paused");
    assert!(server.fetch("retried", 1).is_empty(), "its hour is not over");
    assert_eq!(server.succeed(&lease)["state"], "completed", "the lease is still good");
    assert_eq!(server.printed_json(&["dead", "list", "--json"])["jobs"][0]["id"], json!(dead));
}

#[test]
fn a_delay_is_kept_across_a_restart_to_the_moment() {
    let folder = Folder::new("delay");
    let server = Server::start(&folder.at("data"));
    let retry = json!({ "initial_interval": "PT1S", "jitter": false });
    let id = server.enqueue(job("mail", json!({ "retry": retry })));
    let due = server.fail(&server.claim("mail"), "external.timeout")["next_attempt_at"].clone();
    server.stop();
    let server = Server::start(&folder.at("data"));
    let second = server.claim("mail");
    assert_eq!((second["id"].as_str(), &second["attempt"]), (Some(&*id), &json!(2)));
    assert!(second["started_at"].as_str() >= due.as_str(), "{second} is due at {due}");
}

#[test]
fn stopping_answers_waiting_requests_and_exits_zero() {
    let folder = Folder::new("drain");
    // Only one fetch may wait, so that a second one shows whether the first does.
    let server = Server::start_with(&folder.at("data"), &["--set", "limits.long_polls=1"]);
    let url = server.url.clone();
    let fetch = |url: &str, wait_ms: u64| {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
        let body = json!({ "queues": ["empty"], "wait_ms": wait_ms });
        call(&agent, url, "POST", "/ojs/v1/workers/fetch", &body).expect("an answer")
    };
    let waiting = std::thread::spawn(move || {
        until("a fetch that may wait", || Some(fetch(&url, 60_000)).filter(|(status, _)| *status != 429))
    });
    until("the fetch waits", || Some(()).filter(|()| fetch(&server.url, 1).0 == 429));
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log:?}");
    let (status, answer) = waiting.join().expect("the thread ends");
    assert_eq!((status, &answer["jobs"]), (200, &json!([])));
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let folder = Folder::new("twice");
    let data = folder.at("data");
    let first = Server::start(&data);
    let id = first.enqueue(job("mail", json!({})));
    let second = redrive(&["serve", "--listen", "127.0.0.1:0", "--data", &data]).output().expect("it runs");
    assert_eq!(second.status.code(), Some(3));
    let message = stderr(&second);
    assert!(message.contains(&data), "{message}");
    assert!(message.contains(&first.id().to_string()), "it names the process that has it: {message}");
    assert_eq!(first.state(&id), "available", "the first one is unharmed");
}

#[test]
fn a_port_in_use_is_named() {
    let folder = Folder::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = redrive(&["serve", "--listen", &address, "--data", &folder.at("data")]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains(&address), "{}", stderr(&output));
}

#[test]
fn every_problem_of_the_configuration_is_listed_at_once() {
    let folder = Folder::new("config");
    let file = folder.file(
        "redrive.toml",
        "listen = \"nowhere\"\nlease = \"soon\"\nunknown = 1\n[limits]\nbatch = 0\n[policies.server]\ndialect = \"ojs\"\n\
         [policies.server.policy]\nbackoff_coefficient = 0.5\n",
    );
    let output = redrive(&["serve", "--config", &file, "--data", &folder.at("data")]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    for part in ["listen", "lease", "unknown", "limits.batch", "policies.server.backoff_coefficient", "5 problems"] {
        assert!(message.contains(part), "{part} is not named: {message}");
    }
    assert!(!folder.path().join("data").exists(), "nothing was touched");
}

#[test]
fn with_keys_only_clients_with_a_key_are_admitted() {
    let folder = Folder::new("keys");
    let keys = folder.file("keys", "0123456789abcdef0123456789abcdef\n");
    let server = Server::start_with(&folder.at("data"), &["--api-key-file", &keys]);
    let output = server.command(&["enqueue", "a.b"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--api-key-file"), "{}", stderr(&output));
    server.printed(&["enqueue", "a.b", "--api-key-file", &keys]);
    let by_environment = redrive(&["jobs", "--json"])
        .env("REDRIVE_SERVER", &server.url)
        .env("REDRIVE_API_KEY", "0123456789abcdef0123456789abcdef")
        .output()
        .expect("it runs");
    assert_eq!(by_environment.status.code(), Some(0), "{}", stderr(&by_environment));
}

#[test]
fn a_second_signal_ends_the_server_at_once_and_what_was_acknowledged_is_safe() {
    let folder = Folder::new("second-signal");
    let server = Server::start_with(&folder.at("data"), &["--set", "limits.drain=1h"]);
    let id = server.enqueue(job("mail", json!({})));
    // A request whose body does not arrive delays the graceful stop.
    let mut open = TcpStream::connect(server.url.trim_start_matches("http://")).expect("a connection");
    open.write_all(b"POST /ojs/v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n\r\n").expect("sent");
    let number = server.id().to_string();
    assert!(Command::new("kill").args(["-INT", &number]).status().expect("kill runs").success());
    until("it stops", || {
        server.log_lines().iter().any(|line| line.contains("A second signal ends them now")).then_some(())
    });
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(143), "{log:?}");
    assert!(log.iter().any(|line| line.contains("stopped immediately")), "{log:?}");
    let server = Server::start(&folder.at("data"));
    assert_eq!(server.state(&id), "available");
}
