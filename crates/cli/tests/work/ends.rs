//! How a worker itself ends.

use super::worker::{Worker, gone, lines};
use crate::harness::{Folder, Server, until};
use serde_json::{Value, json};

fn job(server: &Server) -> String {
    server.enqueue(json!({ "type": "a.b", "args": [] }))
}

#[test]
fn a_stop_waits_for_running_commands() {
    let folder = Folder::new("work-stop");
    let server = Server::start(&folder.at("data"));
    let (id, started, go) = (job(&server), folder.at("started"), folder.at("go"));
    let command = format!("echo > {started}; until test -e {go}; do sleep 0.01; done; echo finished");
    let told = folder.at("told");
    let worker = Worker::start_telling(&server, &["--exec", &command, "--grace", "60s"], &told);
    lines(&started);
    worker.ask_to_stop();
    until("it stops taking jobs", || lines(&told).iter().any(|line| line.contains("\"stopping\"")).then_some(()));
    let late = job(&server);
    folder.file("go", "");
    assert_eq!(worker.stop().code(), Some(0));
    assert_eq!(server.job(&id)["result"], "finished");
    assert_eq!(server.job(&late)["state"], "available", "no new job was taken");
}

#[test]
fn after_the_grace_commands_are_ended_and_their_jobs_given_back() {
    let folder = Folder::new("work-grace");
    let server = Server::start(&folder.at("data"));
    let (id, file) = (job(&server), folder.at("process"));
    let command = format!("sleep 600 & echo $! > {file}; wait");
    let worker = Worker::start(&server, &["--exec", &command, "--grace", "100ms", "--concurrency", "1"]);
    let process = lines(&file).remove(0);
    let untouched = job(&server);
    assert_eq!(worker.stop().code(), Some(0));
    gone(&process);
    for id in [id, untouched] {
        let job = server.job(&id);
        assert_eq!((&job["state"], &job["attempt"]), (&json!("available"), &json!(0)), "no attempt is spent: {job}");
        assert_eq!(job.get("errors"), None::<&Value>);
    }
}

#[test]
fn a_drain_waits_for_retries_and_once_does_not() {
    let folder = Folder::new("work-drain");
    let server = Server::start(&folder.at("data"));
    let retry = json!({ "max_attempts": 4, "initial_interval": "PT0.3S", "jitter": false });
    let enqueue = || server.enqueue(json!({ "type": "a.b", "args": [], "options": { "retry": retry } }));
    let id = enqueue();
    let command = "test $REDRIVE_JOB_ATTEMPT -ge 3";
    server.told(&["work", "--drain", "--exec", command]);
    let job = server.job(&id);
    assert_eq!((&job["state"], &job["attempt"]), (&json!("completed"), &json!(3)));
    server.told(&["work", "--once", "--exec", "true", "--queue", "nobody-uses-this"]);
    let retry = json!({ "initial_interval": "PT10M", "max_interval": "PT1H" });
    let id = server.enqueue(json!({ "type": "a.b", "args": [], "options": { "retry": retry } }));
    server.told(&["work", "--once", "--exec", "false"]);
    assert_eq!(server.state(&id), "retryable");
}

#[test]
fn a_job_that_is_called_off_takes_its_command_with_it() {
    let folder = Folder::new("work-called-off");
    let server = Server::start(&folder.at("data"));
    let (id, file) = (job(&server), folder.at("process"));
    let command = format!("sleep 600 & echo $! > {file}; wait");
    let worker = Worker::start(&server, &["--exec", &command, "--lease", "1s"]);
    let process = lines(&file).remove(0);
    server.ask("DELETE", &format!("/ojs/v1/jobs/{id}"), Value::Null);
    gone(&process);
    assert_eq!(server.state(&id), "cancelled");
    assert_eq!(worker.stop().code(), Some(0));
}
