//! What callers of the commands rely on.

use crate::harness::{Folder, Server, redrive, stderr, stdout};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::process::Stdio;

#[test]
fn an_unreachable_server_is_exit_code_three_and_its_address_is_named() {
    // A port that was free a moment ago, and that no server listens on.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let url = format!("http://127.0.0.1:{port}");
    for args in [&["jobs"][..], &["queues"], &["enqueue", "a.b"], &["dead", "list"], &["bench"], &["job", "show", "x"]]
    {
        let output = redrive(args).args(["--server", &url]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(3), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(stderr(&output).contains(&url) && stderr(&output).contains("redrive serve"), "{}", stderr(&output));
    }
    let output = redrive(&["jobs", "--server", "ftp://example.org"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn enqueue_passes_its_options_on() {
    let folder = Folder::new("enqueue");
    let server = Server::start(&folder.at("data"));
    let policy =
        folder.file("azolla.json", r#"{"wait": {"strategy": "fixed", "delay": 3}, "stop": {"max_attempts": 4}}"#);
    let id = "01890000-0000-7000-8000-000000000001";
    let more = ["--queue", "slow", "--priority", "-5", "--at", "2199-01-01T00:00:00Z", "--timeout", "90s"];
    let job = server.printed_json(
        &[&["enqueue", "report.build", "2026", "\"march\"", "--id", id, "--retry", &policy, "--json"], &more[..]]
            .concat(),
    );
    let expected = json!({
        "id": id, "type": "report.build", "args": [2026, "march"], "queue": "slow", "priority": -5,
        "state": "scheduled", "scheduled_at": "2199-01-01T00:00:00Z", "timeout_ms": 90_000, "max_attempts": 4,
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&job[key], value, "{key} of {job}");
    }
    let explained = server.printed(&["job", "explain", id]);
    assert!(explained.contains("at most 4 runs, always 3 s"), "{explained}");

    let twice = server.command(&["enqueue", "report.build", "--id", id]);
    assert_eq!(twice.status.code(), Some(1));
    let delayed = server.printed(&["enqueue", "a.b", "--delay", "10m"]);
    assert!(
        delayed.contains("scheduled in queue default, due in 9 min") || delayed.contains("due in 10 min"),
        "{delayed}"
    );
    let first = server.printed_json(&["enqueue", "a.b", "--idempotency-key", "once", "--json"]);
    let again = server.command(&["enqueue", "a.b", "--idempotency-key", "once"]);
    assert!(stdout(&again).starts_with(first["id"].as_str().expect("an id")), "{}", stdout(&again));
    assert!(stderr(&again).contains("already there, not enqueued"), "{}", stderr(&again));
    let other = server.command(&["enqueue", "a.b", "7", "--idempotency-key", "once"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(stderr(&other).contains("another type, queue or arguments"), "{}", stderr(&other));
}

#[test]
fn problems_of_a_job_are_reported_before_or_by_the_server() {
    let folder = Folder::new("wrong");
    let server = Server::start(&folder.at("data"));
    for args in [&["enqueue"][..], &["enqueue", "a.b", "text"], &["enqueue", "a.b", "--delay", "soon"]] {
        assert_eq!(server.command(args).status.code(), Some(2), "{args:?}");
    }
    let bad = folder.file("bad.json", r#"{"max_attempts": -1, "backoff_coefficient": 0.5}"#);
    let output = server.command(&["enqueue", "a.b", "--retry", &bad]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("max_attempts") && message.contains("backoff_coefficient"), "{message}");
    let output = server.command(&["enqueue", "No Type!"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(server.printed_json(&["jobs", "--json"])["total"], 0);
}

#[test]
fn a_batch_fills_in_what_its_lines_leave_out_and_lists_come_in_pages() {
    let folder = Folder::new("batch");
    let server = Server::start(&folder.at("data"));
    let line = |i: usize| match i % 3 {
        0 => format!(r#"{{"type": "a.b", "args": [{i}], "options": {{"queue": "own"}}}}"#),
        1 => format!(r#"{{"type": "a.b", "args": [{i}]}}"#),
        _ => r#"{"type": "c.d"}"#.to_owned(),
    };
    let lines: Vec<String> = (0..1_203).map(line).collect();
    // Empty lines, and a last line without an end.
    let file = folder.file("jobs.jsonl", &format!("\n{}\n\n{}", lines[..600].join("\n"), lines[600..].join("\n")));
    let printed = server.printed(&["enqueue", "--batch", &file, "--queue", "import"]);
    assert_eq!(printed, "1203 jobs enqueued\n");
    let total = |filter: &[&str]| {
        let listed = server.printed_json(&[&["jobs", "--json", "--limit", "5000"], filter].concat());
        assert_eq!(listed["jobs"].as_array().map(Vec::len), listed["total"].as_u64().map(|n| n as usize), "{filter:?}");
        listed["total"].as_u64()
    };
    assert_eq!(total(&[]), Some(1_203));
    assert_eq!(total(&["--queue", "own"]), Some(401));
    assert_eq!(total(&["--queue", "import", "--type", "c.d"]), Some(401));
    assert_eq!(total(&["--state", "completed"]), Some(0));
    let all = server.printed_json(&["jobs", "--json", "--limit", "5000"]);
    let mut ids: Vec<&str> =
        all["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str()).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older), "newest first, none twice");
    ids.dedup();
    assert_eq!(ids.len(), 1_203);
    let output = server.command(&["jobs", "--limit", "7"]);
    assert_eq!(stdout(&output).lines().count(), 8);
    assert!(stderr(&output).contains("7 of 1203 jobs"), "{}", stderr(&output));
    assert_eq!(server.command(&["jobs", "--state", "sleeping"]).status.code(), Some(2));
}

#[test]
fn a_bad_line_stops_a_batch_and_says_where_and_what_is_stored() {
    let folder = Folder::new("badline");
    let server = Server::start(&folder.at("data"));
    let good = r#"{"type": "a.b", "args": []}"#;
    let file = folder.file("jobs.jsonl", &format!("{}\n{{\"type\": }}\n", [good; 150].join("\n")));
    let output = server.command(&["enqueue", "--batch", &file]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(
        message.contains("jobs.jsonl line 151") && message.contains("100 jobs before it are enqueued"),
        "{message}"
    );
    assert_eq!(server.printed_json(&["jobs", "--json"])["total"], 100);

    let mut child = redrive(&["enqueue", "--batch", "-", "--json"])
        .env("REDRIVE_SERVER", &server.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("piped").write_all(format!("{good}\n{good}\n").as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let printed = serde_json::from_slice::<Value>(&output.stdout).expect("JSON");
    assert_eq!((&printed["count"], printed["ids"].as_array().map(Vec::len)), (&json!(2), Some(2)));
}

#[test]
fn waiting_ends_with_the_job_and_tells_how_it_ended() {
    let folder = Folder::new("wait");
    let server = Server::start(&folder.at("data"));
    let once = folder.file("once.json", r#"{"max_attempts": 1}"#);
    for (succeeds, code) in [(true, 0), (false, 1)] {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| server.command(&["enqueue", "a.b", "--retry", &once, "--wait=5m"]));
            let job = server.claim("default");
            if succeeds {
                server.succeed(&job)
            } else {
                server.fail(&job, "external.timeout")
            };
            let output = waiting.join().expect("it ends");
            assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
            let last = stdout(&output).lines().last().unwrap_or_default().to_owned();
            assert!(last.contains(if succeeds { "completed" } else { "discarded" }), "{last}");
        });
    }
    let output = server.command(&["enqueue", "a.b", "--wait=10ms"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("still available"), "{}", stderr(&output));
}

#[test]
fn bench_measures_every_phase_and_counts_every_run() {
    let folder = Folder::new("bench");
    let server = Server::start(&folder.at("data"));
    let report = server.printed_json(&["bench", "--jobs", "500", "--json"]);
    let phases = report["phases"].as_array().expect("phases");
    let letters: Vec<&str> = phases.iter().filter_map(|phase| phase["phase"].as_str()).collect();
    assert_eq!(letters, ["a", "b", "b4", "c", "c1", "d", "d1", "w", "g", "u"]);
    for phase in phases {
        let runs = if phase["phase"].as_str().is_some_and(|letter| letter.starts_with('d')) { 3 } else { 1 };
        assert_eq!(phase["runs"].as_u64(), phase["jobs"].as_u64().map(|jobs| jobs * runs), "{phase}");
        assert!(phase["jobs_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{phase}");
        assert!(phase["p50_ms"].as_f64() <= phase["p99_ms"].as_f64(), "{phase}");
    }
    assert_eq!(server.printed_json(&["jobs", "--json"])["total"], 0, "nothing is left behind");
    let table = server.printed(&["bench", "--jobs", "100", "--phases", "a,d"]);
    assert!(table.contains("fail twice, then succeed, 4 connections"), "{table}");
    assert_eq!(server.command(&["bench", "--phases", "z"]).status.code(), Some(2));
}

#[test]
fn a_unique_job_is_enqueued_once() {
    let folder = Folder::new("unique");
    let server = Server::start(&folder.at("data"));
    let report = |customer: &str, how: &[&str]| {
        let argument = format!("{{\"customer\": {customer}, \"nonce\": \"{}\"}}", how.len());
        let flags = ["--unique=args", "--unique-args", "customer", "--unique-for", "1h", "--quiet"];
        server.command(&[&["enqueue", "report.make", &argument][..], &flags, how].concat())
    };
    let first = report("42", &[]);
    let id = String::from_utf8_lossy(&first.stdout).trim().to_owned();
    assert!(first.status.success(), "{}", stderr(&first));
    let refused = report("42", &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("duplicate") && stderr(&refused).contains(&id), "{}", stderr(&refused));
    let ignored = report("42", &["--on-conflict", "ignore"]);
    assert_eq!(String::from_utf8_lossy(&ignored.stdout).trim(), id);
    assert!(stderr(&ignored).contains("would be a duplicate"), "{}", stderr(&ignored));
    let replacing = report("42", &["--on-conflict", "replace"]);
    assert!(replacing.status.success(), "{}", stderr(&replacing));
    assert!(server.printed(&["job", "show", &id]).contains("cancelled"));
    assert!(server.printed(&["job", "show", &id]).contains("args_keys"));
    assert!(report("43", &[]).status.success());
    let alone = server.command(&["enqueue", "report.make", "--unique-for", "1h"]);
    assert_eq!(alone.status.code(), Some(2), "{}", stderr(&alone));
}

#[test]
fn a_full_queue_refuses_jobs_and_says_what_to_do() {
    let folder = Folder::new("full-queue");
    let server = Server::start(&folder.at("data"));
    let config = server.printed(&["queues", "config", "mail", "--concurrency", "3", "--max-depth", "1"]);
    assert!(config.contains("backpressure at most 1 jobs may wait"), "{config}");
    let raised = server.printed_json(&["queues", "config", "mail", "--max-depth", "2", "--json"]);
    let configured = json!({ "concurrency": 3, "backpressure": { "max_depth": 2, "strategy": "reject" } });
    assert_eq!(raised["configuration"], configured);
    for _ in 0..2 {
        server.printed(&["enqueue", "mail.send", "--queue", "mail"]);
    }
    let refused = server.command(&["enqueue", "mail.send", "--queue", "mail"]);
    assert_eq!(refused.status.code(), Some(3), "later it may succeed");
    let message = stderr(&refused);
    let said = ["the queue \"mail\" is full", "2 jobs wait", "at most 2 may", "queues config QUEUE --max-depth N"];
    assert!(said.iter().all(|words| message.contains(words)), "{message}");
    server.printed(&["queues", "config", "mail", "--clear"]);
    server.printed(&["enqueue", "mail.send", "--queue", "mail"]);
}
