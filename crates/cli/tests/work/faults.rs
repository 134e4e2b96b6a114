//! Faults of the worker, which no job has to pay for.

use super::worker::{Worker, lines};
use crate::harness::{Folder, Server, stderr, stdout, until};
use serde_json::{Value, json};

fn twenty(server: &Server, kind: &str) -> Vec<String> {
    let retry = json!({ "max_attempts": 2, "initial_interval": "PT0.01S" });
    let job = json!({ "type": kind, "args": [], "options": { "retry": retry } });
    let answer = server.ask("POST", "/ojs/v1/jobs/batch", json!({ "jobs": vec![job; 20] }));
    let jobs = answer["jobs"].as_array().expect("jobs").iter();
    jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
}

fn untouched(server: &Server, ids: &[String]) {
    for id in ids {
        let job = server.job(id);
        let state = job["state"].as_str().expect("a state");
        assert!(["available", "retryable"].contains(&state), "{job}");
        assert_eq!((&job["attempt"], job.get("errors")), (&json!(0), None::<&Value>), "nothing is spent: {job}");
    }
}

#[test]
fn a_command_that_does_not_exist_takes_no_job() {
    let folder = Folder::new("work-missing");
    let server = Server::start(&folder.at("data"));
    let ids = twenty(&server, "a.b");
    let script = folder.file("script.sh", "#!/bin/sh\n");
    for command in ["no-such-command-anywhere --now", "./no/such/script.sh", &script] {
        let output = server.command(&["work", "--drain", "--exec", command]);
        assert_eq!(output.status.code(), Some(1), "{command}: {}", stderr(&output));
        assert!(stderr(&output).contains("no job was claimed"), "{command}: {}", stderr(&output));
    }
    untouched(&server, &ids);
    assert!(ids.iter().all(|id| server.job(id)["redrive"]["releases"] == 0));
}

#[test]
fn a_command_that_turns_out_not_to_run_ends_the_worker_and_spends_nothing() {
    let folder = Folder::new("work-127");
    let server = Server::start(&folder.at("data"));
    let ids = twenty(&server, "a.b");
    let script = folder.file("script.sh", "#!/bin/sh\n");
    for (command, code) in [("true; no-such-command-anywhere", 127), (&*format!("true; {script}"), 126)] {
        let output = server.command(&["work", "--exec", command, "--concurrency", "4"]);
        assert_eq!(output.status.code(), Some(1), "{command}: {}", stderr(&output));
        let message = stderr(&output);
        assert!(
            message.contains(&format!("exit code {code}")) && message.contains("spent no attempt"),
            "{command}: {message}"
        );
        assert!(stdout(&output).contains("not run here, released"), "{}", stdout(&output));
    }
    untouched(&server, &ids);
}

#[test]
fn a_memory_limit_that_cannot_be_set_takes_no_job() {
    let folder = Folder::new("work-ulimit");
    let server = Server::start(&folder.at("data"));
    let ids = twenty(&server, "a.b");
    // The hard limit of the worker is lower than the requested one.
    let worker = format!("ulimit -v 8000000 && exec {} work --exec true --memory 100G", env!("CARGO_BIN_EXE_redrive"));
    let output = std::process::Command::new("sh").args(["-c", &worker]).env("REDRIVE_SERVER", &server.url).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("--memory cannot be enforced here"), "{}", stderr(&output));
    untouched(&server, &ids);
}

#[test]
fn in_a_mixed_fleet_the_worker_that_takes_the_type_runs_them_all() {
    let folder = Folder::new("work-fleet");
    let server = Server::start(&folder.at("data"));
    let ids = twenty(&server, "new.type");
    let printed = folder.at("told");
    let _old = Worker::start_telling(&server, &["--exec", "true", "--type", "old.type"], &printed);
    let event = |name: &str| {
        let name = format!("\"event\":\"{name}\"");
        lines(&printed).iter().any(|line| line.contains(&name)).then_some(())
    };
    until("it gives jobs back", || event("declined"));
    until("it leaves the queue alone", || event("paused"));
    let _new = Worker::start(&server, &["--exec", "true"]);
    for id in &ids {
        until("the job is done", || (server.state(id) == "completed").then_some(()));
        let job = server.job(id);
        assert_eq!((&job["attempt"], job.get("errors")), (&json!(1), None::<&Value>), "{job}");
    }
}
