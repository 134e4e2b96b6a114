//! Workers killed in the middle of many jobs: nothing is lost, nothing runs past its limit.

use super::worker::{Worker, gone, lines};
use crate::harness::{Folder, Server, until};
use serde_json::json;
use std::collections::HashMap;

const JOBS: usize = 1_000;
const KILLS: usize = 3;
/// Each kill costs a job one attempt at most, and so does a machine that is too busy for heartbeats.
const LIMIT: usize = KILLS + 3;

#[test]
fn kill_minus_nine_of_the_worker_loses_no_job() {
    let folder = Folder::new("work-crash");
    let server = Server::start(&folder.at("data"));
    let runs = folder.at("runs");
    let retry = json!({ "max_attempts": LIMIT, "initial_interval": "PT0.05S", "jitter": false });
    let job = json!({ "type": "a.b", "args": [], "options": { "retry": retry } });
    let answer = server.ask("POST", "/ojs/v1/jobs/batch", json!({ "jobs": vec![job; JOBS] }));
    let ids: Vec<String> =
        answer["jobs"].as_array().expect("jobs").iter().map(|job| job["id"].as_str().expect("an id").into()).collect();
    let command = format!("echo $REDRIVE_JOB_ID $REDRIVE_JOB_ATTEMPT >> {runs}; sleep 0.02");
    let args = ["--exec", &command, "--concurrency", "8", "--lease", "2s"];
    let started = || std::fs::read_to_string(&runs).map_or(0, |text| text.lines().count());
    for kill in 1..=KILLS {
        let worker = Worker::start(&server, &args);
        let enough = kill * JOBS / (KILLS + 2);
        until("some runs", || (started() >= enough).then_some(()));
        worker.kill();
    }
    server.printed(&[&["work", "--drain"], &args[..]].concat());
    let mut seen: HashMap<String, usize> = HashMap::new();
    for line in std::fs::read_to_string(&runs).expect("runs").lines() {
        *seen.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let mut again = 0;
    for id in &ids {
        let job = server.job(id);
        assert_eq!(job["state"], "completed", "{job}");
        let count = seen.remove(id).unwrap_or(0);
        assert!((1..=LIMIT).contains(&count), "{count} runs of {job}");
        let failures = job["errors"].as_array().map_or(0, Vec::len);
        assert!(count <= failures + 1, "every run but the last is in the history: {count} runs, {job}");
        again += usize::from(count > 1);
    }
    assert!(seen.is_empty(), "nothing else ran");
    assert!(again > 0, "the kills met running commands");
}

#[test]
fn the_commands_of_a_worker_that_is_killed_end_with_it() {
    let folder = Folder::new("work-orphans");
    let server = Server::start(&folder.at("data"));
    let file = folder.at("processes");
    server.enqueue(json!({ "type": "a.b", "args": [] }));
    let command = format!("sleep 600 & echo $$ > {file}; echo $! >> {file}.child; wait");
    let worker = Worker::start(&server, &["--exec", &command]);
    let (shell, child) = (lines(&file).remove(0), lines(&format!("{file}.child")).remove(0));
    worker.kill();
    gone(&shell);
    gone(&child);
}
