//! Commands that take too long, print too much, or want too much memory.

use super::worker::{Worker, gone, lines};
use crate::harness::{Folder, Server, until};
use serde_json::json;

fn job(server: &Server) -> String {
    let retry = json!({ "max_attempts": 2, "initial_interval": "PT10M", "max_interval": "PT1H" });
    server.enqueue(json!({ "type": "a.b", "args": [], "options": { "retry": retry } }))
}

#[test]
fn a_timeout_ends_grandchildren_too() {
    let folder = Folder::new("work-timeout");
    let server = Server::start(&folder.at("data"));
    let (id, file) = (job(&server), folder.at("process"));
    let command = format!("sh -c 'sleep 600 & echo $! > {file}; wait'");
    server.printed(&["work", "--once", "--exec", &command, "--timeout", "500ms"]);
    let job = server.job(&id);
    assert_eq!((&job["state"], &job["error"]["type"]), (&json!("retryable"), &json!("timeout")));
    assert!(job["error"]["message"].as_str().expect("a message").contains("500ms"), "{job}");
    gone(&lines(&file)[0]);
}

#[test]
fn the_job_s_own_timeout_ends_the_command_too() {
    let folder = Folder::new("work-own-timeout");
    let server = Server::start(&folder.at("data"));
    let file = folder.at("process");
    let id = server.enqueue(json!({ "type": "a.b", "args": [], "options": { "timeout_ms": 1_000 } }));
    let command = format!("echo $$ > {file}; exec sleep 600");
    let _worker = Worker::start(&server, &["--exec", &command]);
    gone(&lines(&file)[0]);
    let job = until("the failure", || Some(server.job(&id)).filter(|job| job["error"]["type"] == "timeout"));
    assert_eq!(job["errors"][0]["attempt"], 1, "{job}");
}

#[test]
fn megabytes_of_output_are_cut_and_the_worker_stays_small() {
    let folder = Folder::new("work-output");
    let server = Server::start(&folder.at("data"));
    let ids = [job(&server), job(&server)];
    let command = "head -c 100000000 /dev/zero | tr '\\0' x; head -c 50000000 /dev/zero | tr '\\0' y >&2";
    let worker = Worker::start(&server, &["--exec", command, "--max-output", "10K"]);
    for id in &ids {
        until("the job is done", || (server.state(id) == "completed").then_some(()));
        let result = server.job(id)["result"].clone();
        assert_eq!((&result["truncated"], &result["bytes"]), (&json!(true), &json!(100_000_000)));
        assert_eq!(result["text"].as_str().expect("text").len(), 10 << 10);
    }
    if let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", worker.id())) {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(kib < 64 << 10, "the worker took {kib} KiB at its peak");
    }
}

#[test]
fn a_command_without_end_to_its_memory_is_bounded() {
    let folder = Folder::new("work-memory");
    let server = Server::start(&folder.at("data"));
    let id = job(&server);
    let greedy = "x=0123456789abcdef; while :; do x=$x$x; done";
    server.printed(&["work", "--once", "--exec", greedy, "--memory", "200M", "--timeout", "60s"]);
    let job = server.job(&id);
    let error = job["error"]["type"].as_str().expect("an error");
    assert!(error.starts_with("exec."), "it failed of itself, and not of the time: {job}");
}
