//! The input of a command, and the meaning of its exit.

use crate::harness::{Folder, Server, redrive, stderr};
use serde_json::{Value, json};
use std::net::TcpListener;

/// The events that a worker printed, until the queue was empty.
fn worked(server: &Server, args: &[&str]) -> Vec<Value> {
    let printed = server.printed(&[&["work", "--once", "--json"], args].concat());
    printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn job(server: &Server, kind: &str) -> String {
    let retry = json!({ "max_attempts": 3, "initial_interval": "PT10M", "max_interval": "PT1H", "jitter": false });
    server.enqueue(json!({ "type": kind, "args": [1, "two"], "options": { "retry": retry } }))
}

#[test]
fn exit_codes_end_a_run_as_they_should() {
    let folder = Folder::new("work-codes");
    let server = Server::start(&folder.at("data"));
    let codes = ["0", "75", "65", "1", "42"];
    let ids = codes.map(|code| job(&server, &format!("exit.c{code}")));
    let events = worked(&server, &["--exec", "exit ${REDRIVE_JOB_TYPE#exit.c}"]);
    let expected = [
        ("completed", false, None),
        ("retryable", false, Some("exec.temporary")),
        ("discarded", true, Some("exec.invalid")),
        ("retryable", false, Some("exec.exit_1")),
        ("retryable", false, Some("exec.exit_42")),
    ];
    for (id, (state, dead, error)) in ids.iter().zip(expected) {
        let job = server.job(id);
        assert_eq!((&job["state"], &job["redrive"]["dead_letter"]), (&json!(state), &json!(dead)), "{job}");
        assert_eq!(job["errors"][0]["type"].as_str(), error);
        let ended: Vec<&Value> =
            events.iter().filter(|event| event["event"] == "ended" && event["job_id"] == **id).collect();
        assert_eq!((ended.len(), &ended[0]["state"]), (1, &json!(state)));
    }
    let summary = events.last().expect("a summary");
    assert_eq!((&summary["event"], &summary["done"], &summary["failed"]), (&json!("summary"), &json!(1), &json!(4)));
}

#[test]
fn a_command_sees_its_job_and_its_output_is_the_result() {
    let folder = Folder::new("work-sees");
    let server = Server::start(&folder.at("data"));
    let id = job(&server, "mail.send");
    let seen = folder.at("seen");
    let print = r#"printf '{"id": "%s", "run": "%s/%s", "of": "%s.%s"}' "$REDRIVE_JOB_ID" "$REDRIVE_JOB_ATTEMPT" \
        "$REDRIVE_JOB_MAX_ATTEMPTS" "$REDRIVE_JOB_QUEUE" "$REDRIVE_JOB_TYPE""#;
    worked(&server, &["--exec", &format!("cat > {seen}; {print}")]);
    let expected = json!({ "id": id, "run": "1/3", "of": "default.mail.send" });
    assert_eq!(server.job(&id)["result"], expected);
    let stdin: Value = serde_json::from_str(&std::fs::read_to_string(&seen).expect("read")).expect("JSON");
    assert_eq!((&stdin["id"], &stdin["args"]), (&json!(id), &json!([1, "two"])));
    let id = job(&server, "mail.send");
    worked(&server, &["--exec", "echo plain words"]);
    assert_eq!(server.job(&id)["result"], "plain words");
}

#[test]
fn a_command_runs_in_the_trace_of_its_job_and_so_does_what_it_enqueues() {
    let folder = Folder::new("work-trace");
    let server = Server::start(&folder.at("data"));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let meta = json!({ "traceparent": parent, "tracestate": "redrive=1" });
    let first = server.enqueue(json!({ "type": "first", "args": [], "meta": meta }));
    let redrive = env!("CARGO_BIN_EXE_redrive");
    let enqueues = format!("test $REDRIVE_JOB_TYPE = second || {redrive} enqueue second >&2");
    worked(&server, &["--exec", &format!("{enqueues}; echo \"$TRACEPARENT $TRACESTATE\"")]);
    let jobs = server.ask("GET", "/ojs/v1/admin/jobs?type=second", Value::Null);
    let second = jobs["items"][0]["id"].as_str().expect("the second job");
    for id in [&*first, second] {
        let job = server.job(id);
        assert_eq!((&job["meta"], &job["result"]), (&meta, &json!(format!("{parent} redrive=1"))), "{job}");
    }
}

#[test]
fn the_last_line_on_standard_error_names_the_error_and_its_delay() {
    let folder = Folder::new("work-line");
    let server = Server::start(&folder.at("data"));
    let id = job(&server, "mail.send");
    let line = r#"{"type": "smtp.busy", "message": "try later", "retry_after_ms": 3600500}"#;
    let command = format!("echo warming up >&2; echo '{line}' >&2; exit 75");
    let events = worked(&server, &["--exec", &command]);
    let job = server.job(&id);
    assert_eq!((&job["error"]["type"], &job["error"]["message"]), (&json!("smtp.busy"), &json!("try later")));
    assert_eq!(job["retry_delay_ms"], 3_600_500, "the wait that it asks for, in place of the policy's");
    assert_eq!(job["error"]["details"]["exit_code"], 75);
    assert!(events.iter().any(|event| event["retry_after_ms"] == 3_600_500), "{events:?}");
}

#[test]
fn output_for_people_describes_each_event() {
    let folder = Folder::new("work-people");
    let server = Server::start(&folder.at("data"));
    let (good, bad) = (job(&server, "good.one"), job(&server, "bad.one"));
    let command = "case $REDRIVE_JOB_TYPE in bad.*) echo 'no route' >&2; exit 1;; esac";
    let printed = server.printed(&["work", "--once", "--exec", command, "--concurrency", "1"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 4, "{printed}");
    assert_eq!(lines[0], format!("{good}  good.one  run 1 of 3"));
    assert!(lines[1].starts_with(&format!("{good}  good.one  done in ")), "{printed}");
    assert_eq!(lines[2], format!("{bad}  bad.one  run 1 of 3"));
    assert!(lines[3].contains("(exec.exit_1: no route); retried in 10 min"), "{printed}");
}

#[test]
fn jobs_of_other_types_are_left_to_others() {
    let folder = Folder::new("work-types");
    let server = Server::start(&folder.at("data"));
    let (mine, other) = (job(&server, "mine.a"), job(&server, "other.b"));
    worked(&server, &["--exec", "true", "--type", "mine.a", "--type", "mine.c"]);
    assert_eq!(server.state(&mine), "completed");
    let other = server.job(&other);
    assert_eq!((&other["attempt"], other.get("errors")), (&json!(0), None), "{other}");
}

#[test]
fn queues_are_claimed_from_in_their_order() {
    let folder = Folder::new("work-queues");
    let server = Server::start(&folder.at("data"));
    let file = folder.at("order");
    for queue in ["low", "high", "other", "low", "high"] {
        server.enqueue(json!({ "type": "a.b", "args": [], "options": { "queue": queue } }));
    }
    let command = format!("echo $REDRIVE_JOB_QUEUE >> {file}");
    worked(&server, &["--exec", &command, "--queue", "high", "--queue", "low", "--concurrency", "1"]);
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "high\nhigh\nlow\nlow\n");
}

#[test]
fn what_cannot_work_is_reported_at_once() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let url = format!("http://127.0.0.1:{port}");
    let output = redrive(&["work", "--once", "--exec", "true", "--server", &url]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("redrive serve"), "{}", stderr(&output));
    for wrong in [
        &["work"][..],
        &["work", "--exec", "true", "--memory", "lots"],
        &["work", "--exec", "true", "--concurrency", "0"],
        &["work", "--exec", "true", "--once", "--drain"],
        &["work", "--exec", "true", "--lease", "1ms"],
        &["work", "--exec", "true", "--timeout", "0s"],
    ] {
        let output = redrive(wrong).args(["--server", &url]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
    }
}

#[test]
fn a_typo_is_not_answered_with_a_command_that_is_not_for_people() {
    for typo in ["work-gaurd", "work-guards", "wrok-guard"] {
        let output = redrive(&[typo]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{typo}");
        assert!(!stderr(&output).contains("'work-guard'"), "{}", stderr(&output));
    }
}

/// TaskHarbor: the limit travels with the job, the curve and the cap are the worker's.
#[test]
fn the_worker_brings_its_own_policy() {
    let folder = Folder::new("work-policy");
    let server = Server::start(&folder.at("data"));
    let policy = folder
        .file("harbor.json", r#"{"policy": {"base_delay": "7m", "max_delay": "1h", "jitter": 0, "max_attempts": 2}}"#);
    let left = |limit: u32| {
        let retry = json!({ "dialect": "taskharbor", "policy": { "job": { "max_attempts": limit } } });
        server.enqueue(json!({ "type": "a.b", "args": [], "options": { "retry": retry } }))
    };
    let (retried, last, own) = (left(5), left(1), job(&server, "own.policy"));
    worked(&server, &["--exec", "false", "--policy", &policy]);
    let job = server.job(&retried);
    assert_eq!((&job["state"], &job["retry_delay_ms"]), (&json!("retryable"), &json!(420_000)), "{job}");
    assert_eq!(server.job(&last)["redrive"]["dead_letter"], true, "the job's own limit of 1");
    assert_eq!(server.job(&own)["retry_delay_ms"], 600_000, "a job with its own policy keeps its curve");
    let explained = server.printed(&["job", "explain", &retried]);
    assert!(explained.contains("unless its worker brings a policy of its own"), "{explained}");
    assert!(explained.contains("With the worker's own policy: at most 2 runs"), "{explained}");
    assert!(explained.contains("Retry 1 waits 7 min"), "{explained}");
    let wrong = folder.file("wrong.json", r#"{"policy": {"jitter": 7}}"#);
    let output = server.command(&["work", "--once", "--exec", "true", "--policy", &wrong]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/policy/jitter"), "{}", stderr(&output));
}
