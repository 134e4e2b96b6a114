//! How a worker itself ends.

use super::worker::{Worker, gone, lines};
use crate::harness::{Folder, Server, stderr, stdout, until};
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
    let printed = folder.at("told");
    let worker = Worker::start_telling(&server, &["--exec", &command, "--grace", "60s"], &printed);
    lines(&started);
    worker.ask_to_stop();
    until("it stops taking jobs", || lines(&printed).iter().any(|line| line.contains("\"stopping\"")).then_some(()));
    let late = job(&server);
    folder.file("go", "");
    assert_eq!(worker.ended().code(), Some(0));
    assert_eq!(server.job(&id)["result"], "finished");
    assert_eq!(server.job(&late)["state"], "available", "no new job was taken");
}

#[test]
fn after_the_grace_commands_are_ended_and_their_jobs_released() {
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
    server.printed(&["work", "--drain", "--exec", command]);
    let job = server.job(&id);
    assert_eq!((&job["state"], &job["attempt"]), (&json!("completed"), &json!(3)));
    server.printed(&["work", "--once", "--exec", "true", "--queue", "unused"]);
    let retry = json!({ "initial_interval": "PT10M", "max_interval": "PT1H" });
    let id = server.enqueue(json!({ "type": "a.b", "args": [], "options": { "retry": retry } }));
    server.printed(&["work", "--once", "--exec", "false"]);
    assert_eq!(server.state(&id), "retryable");
}

#[test]
fn a_cancelled_job_takes_its_command_with_it_and_is_called_cancelled() {
    let folder = Folder::new("work-cancelled");
    let server = Server::start(&folder.at("data"));
    let (id, file, printed) = (job(&server), folder.at("process"), folder.at("told"));
    let command = format!("sleep 600 & echo $! > {file}; wait");
    let worker = Worker::start_telling(&server, &["--exec", &command, "--lease", "1s", "--name", "w7"], &printed);
    let process = lines(&file).remove(0);
    let output = server.command(&["job", "cancel", &id]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("cancelled, it was active"), "{}", stdout(&output));
    let message = stderr(&output);
    assert!(message.contains("its worker w7 notices at its next heartbeat, within "), "{message}");
    gone(&process);
    assert_eq!(worker.stop().code(), Some(0));
    let printed = lines(&printed);
    let events = |name: &str| printed.iter().filter(|line| line.contains(&format!("\"event\":\"{name}\""))).count();
    assert_eq!((events("cancelled"), events("lost")), (1, 0), "{printed:#?}");
    assert!(printed.last().expect("a summary").contains("\"cancelled\":1"), "{printed:#?}");
    assert_eq!(server.state(&id), "cancelled");
}

#[test]
fn a_second_signal_ends_running_commands_and_releases_their_jobs() {
    let folder = Folder::new("work-second");
    let server = Server::start(&folder.at("data"));
    let (id, file, printed) = (job(&server), folder.at("process"), folder.at("told"));
    let command = format!("sleep 600 & echo $! > {file}; wait");
    let worker = Worker::start_telling(&server, &["--exec", &command, "--grace", "10m"], &printed);
    let process = lines(&file).remove(0);
    worker.ask_to_stop();
    let stopping = |line: &String| line.contains("\"stopping\"") && line.contains("\"running\":1");
    until("it says what it waits for", || lines(&printed).iter().any(stopping).then_some(()));
    assert_eq!(worker.stop().code(), Some(0));
    gone(&process);
    assert!(lines(&printed).iter().any(|line| line.contains("\"aborting\"")), "{:#?}", lines(&printed));
    let job = server.job(&id);
    assert_eq!((&job["state"], &job["attempt"], job.get("errors")), (&json!("available"), &json!(0), None), "{job}");
}

#[test]
fn a_drain_of_a_paused_queue_says_so_and_ends() {
    let folder = Folder::new("work-paused");
    let server = Server::start(&folder.at("data"));
    let (open, held) =
        (job(&server), server.enqueue(json!({ "type": "a.b", "args": [], "options": { "queue": "mail" } })));
    server.ask("POST", "/ojs/v1/queues/mail/pause", json!({}));
    for end in ["--drain", "--once"] {
        for types in [&[][..], &["--type", "a.b"]] {
            let output = server
                .command(&[&["work", end, "--exec", "true", "--queue", "default", "--queue", "mail"], types].concat());
            assert_eq!(output.status.code(), Some(1), "{end} {types:?}: {}", stderr(&output));
            let message = stderr(&output);
            let words = "the queue mail is paused, and 1 job waits there: `redrive queues resume mail`";
            assert_eq!(message.matches(words).count(), 2, "when it is seen, and at the end: {message}");
        }
    }
    assert_eq!((server.state(&open), server.state(&held)), ("completed".to_owned(), "available".to_owned()));
}

#[test]
fn a_worker_without_an_end_says_that_its_queue_is_paused() {
    let folder = Folder::new("work-waits");
    let server = Server::start(&folder.at("data"));
    let (id, printed) = (job(&server), folder.at("told"));
    server.ask("POST", "/ojs/v1/queues/default/pause", json!({}));
    let _worker = Worker::start_telling(&server, &["--exec", "true"], &printed);
    let held = |line: &String| line.contains("\"held\"") && line.contains("\"jobs\":1");
    until("it says so", || lines(&printed).iter().any(held).then_some(()));
    server.ask("POST", "/ojs/v1/queues/default/resume", json!({}));
    until("it goes on", || (server.state(&id) == "completed").then_some(()));
}

#[test]
fn a_discarded_job_is_reported_by_worker_and_server() {
    let folder = Folder::new("work-discarded");
    let server = Server::start(&folder.at("data"));
    server.enqueue(json!({ "type": "a.b", "args": [], "options": { "retry": { "max_attempts": 1 } } }));
    let printed = server.printed(&["work", "--once", "--exec", "echo broken >&2; exit 1"]);
    let expected = "; discarded, not kept as a dead letter: on_exhaustion is discard";
    assert!(printed.lines().any(|line| line.contains("broken") && line.ends_with(expected)), "{printed}");
    until("the log of the server says it", || {
        let log = server.log_lines();
        log.iter()
            .any(|line| line.contains("discarded, not kept as a dead letter: on_exhaustion is discard"))
            .then_some(())
    });
}
