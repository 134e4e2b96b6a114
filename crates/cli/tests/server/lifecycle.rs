//! The lifecycle of jobs, as the commands show it.

use crate::harness::{Folder, Server, stderr, until};
use serde_json::{Value, json};

/// Short waits, and dead letters.
fn quick_policy() -> Value {
    json!({
        "max_attempts": 3, "initial_interval": "PT0.05S", "max_interval": "PT1S", "jitter": false,
        "non_retryable_errors": ["auth.*"], "on_exhaustion": "dead_letter",
    })
}

fn quick_job(queue: &str) -> Value {
    json!({ "type": "mail.send", "args": [{ "to": "ada" }], "options": { "queue": queue, "retry": quick_policy() } })
}

/// Lets a job of a queue fail as often as it takes.
fn dead_letter(server: &Server, queue: &str, error_type: &str) -> String {
    loop {
        let job = server.claim(queue);
        if server.fail(&job, error_type)["state"] == "discarded" {
            return job["id"].as_str().expect("an id").to_owned();
        }
    }
}

#[test]
fn a_job_fails_waits_is_retried_and_done_and_explain_says_why() {
    let folder = Folder::new("explain");
    let server = Server::start(&folder.at("data"));
    let id = server.enqueue(quick_job("mail"));
    let first = server.claim("mail");
    let due = server.fail(&first, "external.timeout")["next_attempt_at"].clone();
    let second = server.claim("mail");
    assert_eq!(second["attempt"], 2);
    // Timestamps of one form sort as text.
    assert!(second["started_at"].as_str() >= due.as_str(), "{second} is due at {due}");

    let active = server.printed(&["job", "explain", &id]);
    assert!(active.contains("Attempt 1 failed"), "{active}");
    assert!(active.contains("external.timeout happened): retry in 50 ms"), "{active}");
    assert!(active.contains("Retry 1 waits 50 ms by exponential growth ×2."), "{active}");
    assert!(active.contains("Attempt 2 runs on worker tester"), "{active}");
    assert!(active.trim_end().ends_with('▶'), "{active}");

    server.succeed(&second);
    let done = server.printed(&["job", "explain", &id]);
    assert!(done.contains("is completed."), "{done}");
    assert!(done.contains("Attempt 2 succeeded"), "{done}");
    assert!(done.trim_end().ends_with('✓'), "{done}");
    let verdicts = server.printed_json(&["job", "explain", &id, "--json"]);
    assert_eq!(verdicts["failures"][0]["verdict"]["delay_ms"], 50.0);
    assert_eq!(verdicts["policy_from"]["layer"], "job");
    let shown = server.printed(&["job", "show", &id]);
    assert!(shown.contains("failed attempt 1  external.timeout: external.timeout happened"), "{shown}");
}

#[test]
fn the_reason_of_a_stop_names_what_decided() {
    let folder = Folder::new("stops");
    let server = Server::start(&folder.at("data"));
    server.enqueue(quick_job("mail"));
    let id = dead_letter(&server, "mail", "auth.expired");
    let printed = server.printed(&["job", "explain", &id]);
    assert!(printed.contains("stop (non_retryable): the job goes to the dead letters"), "{printed}");
    assert!(printed.contains("\"auth.expired\" matches \"auth.*\""), "{printed}");
    server.enqueue(quick_job("mail"));
    let id = dead_letter(&server, "mail", "external.timeout");
    let printed = server.printed(&["job", "explain", &id]);
    assert!(printed.contains("This was attempt 3 of at most 3."), "{printed}");
    assert_eq!(printed.matches("retry in").count(), 2, "{printed}");
    assert!(printed.trim_end().ends_with('✗'), "{printed}");
}

#[test]
fn dead_letters_are_redriven_by_id_and_by_filter() {
    let folder = Folder::new("dead");
    let server = Server::start(&folder.at("data"));
    let mut dead = Vec::new();
    for (queue, error) in [("mail", "external.timeout"), ("mail", "auth.expired"), ("slow", "external.timeout")] {
        server.enqueue(quick_job(queue));
        dead.push(dead_letter(&server, queue, error));
    }
    let listed = server.printed_json(&["dead", "list", "--json"]);
    assert_eq!(listed["total"], 3);
    let table = server.printed(&["dead", "list", "--queue", "mail"]);
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.contains("auth.expired: auth.expired happened"), "{table}");
    assert!(server.printed(&["dead", "show", &dead[2]]).contains("discarded"));

    let filter = ["--error-type", "external.timeout", "--since", "1h"];
    let dry = server.printed(&[&["dead", "retry"][..], &filter[..]].concat());
    assert_eq!(dry, "2 dead letters would be redriven; --yes carries it out\n");
    assert_eq!(server.printed_json(&["dead", "list", "--json"])["total"], 3, "a dry run changes nothing");
    let done = server.printed(&[&["dead", "retry", "--yes"][..], &filter[..]].concat());
    assert_eq!(done, "2 dead letters redriven\n");
    assert_eq!(server.state(&dead[0]), "available");
    assert_eq!(server.state(&dead[1]), "discarded");

    let redriven = server.claim("mail");
    assert_eq!((&redriven["id"], &redriven["attempt"]), (&json!(dead[0]), &json!(1)), "as if it were new");
    server.succeed(&redriven);
    let printed = server.printed(&["job", "explain", &dead[0]]);
    assert!(printed.contains("It was redriven, to run again as if it were new."), "{printed}");
    assert!(printed.contains("Attempt 1 succeeded"), "{printed}");

    server.printed(&["dead", "retry", &dead[1], "--into", "slow", "--args", "[1]"]);
    let moved = server.job(&dead[1]);
    assert_eq!((&moved["queue"], &moved["args"]), (&json!("slow"), &json!([1])));
    server.printed(&["job", "cancel", &dead[1]]);

    assert_eq!(dead_letter(&server, "slow", "external.timeout"), dead[2]);
    assert_eq!(server.printed(&["dead", "drop", &dead[2]]), format!("{}  dropped\n", dead[2]));
    let gone = server.command(&["dead", "show", &dead[2]]);
    assert_eq!(gone.status.code(), Some(1));
    assert_eq!(server.printed(&["dead", "list"]), "no dead letters\n");
}

#[test]
fn no_dead_letter_is_lost_to_a_slip() {
    let folder = Folder::new("slip");
    let server = Server::start(&folder.at("data"));
    server.enqueue(quick_job("mail"));
    let id = dead_letter(&server, "mail", "auth.expired");
    for args in [
        &["dead", "drop"][..],
        &["dead", "drop", "--yes"],
        &["dead", "drop", &id, "--queue", "mail"],
        &["dead", "drop", "--all", "--queue", "mail", "--yes"],
        &["dead", "drop", "--since", "yesterday", "--yes"],
    ] {
        assert_eq!(server.command(args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(server.printed(&["dead", "drop", "--queue", "other", "--yes"]), "0 dead letters dropped\n");
    assert_eq!(server.printed(&["dead", "drop", "--until", "1h", "--yes"]), "0 dead letters dropped\n");
    assert_eq!(server.printed_json(&["dead", "list", "--json"])["total"], 1);
    assert_eq!(server.printed(&["dead", "retry", "--all", "--yes"]), "1 dead letter redriven\n");
    assert_eq!(dead_letter(&server, "mail", "auth.expired"), id);
    assert_eq!(server.printed(&["dead", "drop", "--all", "--yes"]), "1 dead letter dropped\n");
}

#[test]
fn a_job_can_be_cancelled_while_it_runs_and_redriven_later() {
    let folder = Folder::new("cancel");
    let server = Server::start(&folder.at("data"));
    let id = server.enqueue(quick_job("mail"));
    let running = server.claim("mail");
    assert_eq!(server.printed(&["job", "cancel", &id]), format!("{id}  cancelled, it was active\n"));
    let late = json!({ "job_id": id, "lease_token": running["lease_token"] });
    let (status, answer) = server.call("POST", "/ojs/v1/workers/ack", &late).expect("an answer");
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("conflict")));
    let again = server.command(&["job", "cancel", &id]);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(server.printed(&["job", "retry", &id]), format!("{id}  available\n"));
    server.succeed(&server.claim("mail"));
    assert_eq!(server.state(&id), "completed");
}

#[test]
fn a_paused_queue_accepts_jobs_and_returns_none() {
    let folder = Folder::new("pause");
    let server = Server::start(&folder.at("data"));
    assert!(server.printed(&["queues"]).starts_with("no queues yet"));
    assert_eq!(server.printed(&["queues", "pause", "mail", "--create"]), "queue mail is paused\n");
    server.enqueue(quick_job("mail"));
    assert!(server.fetch("mail", 1).is_empty());
    let queues = server.printed_json(&["queues", "--json"]);
    assert_eq!(
        (&queues["queues"][0]["status"], &queues["queues"][0]["stats"]["available"]),
        (&json!("paused"), &json!(1))
    );
    let table = server.printed(&["queues"]);
    assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("mail   paused          1")), "{table}");
    assert_eq!(server.printed(&["queues", "resume", "mail"]), "queue mail is active\n");
    assert_eq!(server.fetch("mail", 1).len(), 1);
}

#[test]
fn a_misspelt_queue_is_not_paused() {
    let folder = Folder::new("misspelt");
    let server = Server::start(&folder.at("data"));
    server.enqueue(quick_job("mail"));
    for verb in ["pause", "resume"] {
        let refused = server.command(&["queues", verb, "mails"]);
        let printed = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains("there is no queue \"mails\"") && printed.contains("did you mean \"mail\"?"),
            "{printed}"
        );
        assert_eq!(printed.contains("--create"), verb == "pause", "{printed}");
    }
    assert_eq!(server.printed(&["queues"]).lines().count(), 2, "the head and one queue");
    server.printed(&["queues", "pause", "mails", "--create"]);
    assert_eq!(server.printed(&["queues", "remove", "mails"]), "queue mails is removed\n");
    let refused = server.command(&["queues", "remove", "mail"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("has jobs (1 available)"), "{}", stderr(&refused));
    assert_eq!(server.printed(&["queues", "pause", "mail"]), "queue mail is paused\n");
}

#[test]
fn a_waiting_fetch_is_answered_when_a_job_is_enqueued() {
    let folder = Folder::new("poll");
    let server = Server::start(&folder.at("data"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let body = json!({ "queues": ["mail"], "wait_ms": 60_000 });
            server.ask("POST", "/ojs/v1/workers/fetch", body)
        });
        let id = server.enqueue(quick_job("mail"));
        let answer = waiting.join().expect("an answer");
        assert_eq!(answer["jobs"][0]["id"], json!(id));
    });
    until("the job is active", || {
        Some(()).filter(|()| server.printed(&["jobs", "--state", "active"]).contains("mail.send"))
    });
}

#[test]
fn arguments_are_replaced_one_job_at_a_time_and_the_old_ones_are_stored() {
    let folder = Folder::new("revisions");
    let server = Server::start(&folder.at("data"));
    let dead: Vec<String> = (0..2)
        .map(|_| {
            server.enqueue(quick_job("mail"));
            dead_letter(&server, "mail", "auth.expired")
        })
        .collect();
    let both = server.command(&["dead", "retry", &dead[0], &dead[1], "--args", "[1]"]);
    assert_eq!(both.status.code(), Some(2));
    let message = String::from_utf8_lossy(&both.stderr).into_owned();
    assert!(message.contains("found 2 ids, allowed is 1"), "{message}");
    assert_eq!(server.printed_json(&["dead", "list", "--json"])["total"], 2, "nothing has changed");

    server.printed(&["dead", "retry", &dead[0], "--args", "[1]"]);
    let revision = server.job(&dead[0])["redrive"]["revisions"][0].clone();
    assert_eq!(revision["args"], json!([{ "to": "ada" }]));
    assert!(revision["replaced_by"].as_str().is_some_and(|by| !by.is_empty() && by != "api"), "{revision}");
}

#[test]
fn a_redrive_says_that_it_cleared_the_expiry() {
    let folder = Folder::new("expiry");
    let server = Server::start(&folder.at("data"));
    let mut job = quick_job("mail");
    job["options"]["expires_at"] = "2999-01-01T00:00:00Z".into();
    server.enqueue(job);
    let id = dead_letter(&server, "mail", "auth.expired");
    let printed = server.printed(&["dead", "retry", &id]);
    let cleared = "; its expiry 2999-01-01T00:00:00Z is cleared, --expires sets another";
    assert_eq!(printed, format!("{id}  redriven{cleared}\n"));
    assert_eq!(dead_letter(&server, "mail", "auth.expired"), id);
    let over = server.command(&["job", "retry", &id, "--expires", "2020-01-01T00:00:00Z"]);
    assert_eq!(over.status.code(), Some(1), "{}", String::from_utf8_lossy(&over.stderr));
    assert_eq!(server.printed(&["job", "retry", &id, "--expires", "2h"]), format!("{id}  available\n"));
    assert!(server.job(&id)["expires_at"].is_string());
}

#[test]
fn waiting_running_and_age_are_three_times_and_each_run_has_its_worker() {
    let folder = Folder::new("three-times");
    let server = Server::start(&folder.at("data"));
    let id = server.enqueue(quick_job("mail"));
    let first = server.claim("mail");
    server.fail(&first, "external.timeout");
    server.succeed(&server.claim("mail"));
    let job = server.job(&id);
    let run = &job["redrive"]["failures"][0];
    let printed = server.printed(&["job", "explain", &id]);
    let lines: Vec<&str> = printed.lines().filter(|line| line.starts_with("    Started ")).collect();
    assert_eq!(lines.len(), 2, "one line for each run: {printed}");
    let (started, finally) = (run["started_at"].as_str().unwrap(), job["started_at"].as_str().unwrap());
    for (line, started) in lines.iter().zip([started, finally]) {
        assert!(line.starts_with(&format!("    Started {started} on worker tester, ")), "{printed}");
        let words = [" since created; waited ", ", ran "];
        assert!(words.iter().all(|word| line.contains(word)), "{printed}");
    }
    assert!(!printed.contains("failed after"), "{printed}");
}

#[test]
fn explain_says_that_a_queue_is_paused() {
    let folder = Folder::new("explain-paused");
    let server = Server::start(&folder.at("data"));
    let id = server.enqueue(quick_job("mail"));
    assert!(!server.printed(&["job", "explain", &id]).contains("paused"));
    server.printed(&["queues", "pause", "mail"]);
    let printed = server.printed(&["job", "explain", &id]);
    let expected = "Queue mail is paused: no worker gets the job until `redrive queues resume mail`.";
    assert!(printed.lines().any(|line| line == expected), "{printed}");
}

#[test]
fn explain_says_the_budget_of_the_rule_that_handles_a_failure() {
    let folder = Folder::new("budget");
    let server = Server::start(&folder.at("data"));
    let policies = json!([
        { "match": { "codes": ["Net.*"] }, "attempts": 5 },
        { "match": { "codes": ["*"] }, "attempts": 2 },
    ]);
    let retry = json!({ "dialect": "mwl", "policy": { "policies": policies } });
    let id = server.enqueue(json!({ "type": "a.b", "args": [], "options": { "queue": "mail", "retry": retry } }));
    let job = server.claim("mail");
    let error = json!({ "type": "error", "code": "Net.Timeout", "message": "m" });
    server.ask("POST", "/ojs/v1/workers/nack", json!({ "job_id": job["id"], "error": error }));
    let printed = server.printed(&["job", "explain", &id]);
    assert!(printed.contains("2 rules with budgets of 5, 2 failures each of its own"), "{printed}");
    assert!(
        printed.contains("Policy 0 handles it (") && printed.contains("): failure 1 of its budget of 5."),
        "{printed}"
    );
}

#[test]
fn a_discarded_job_says_why_it_is_not_a_dead_letter_and_is_redriven_by_id_and_by_filter() {
    let folder = Folder::new("discarded");
    let server = Server::start(&folder.at("data"));
    let mut job = quick_job("mail");
    job["options"]["retry"]["on_exhaustion"] = "discard".into();
    server.enqueue(job.clone());
    let one = dead_letter(&server, "mail", "auth.expired");
    server.enqueue(job);
    let two = dead_letter(&server, "mail", "auth.expired");
    let printed = server.printed(&["job", "explain", &one]);
    assert!(printed.contains("It was discarded, not kept as a dead letter: on_exhaustion is discard."), "{printed}");
    assert!(printed.contains(&format!("`redrive job retry {one}` redrives it")), "{printed}");
    assert_eq!(server.printed(&["job", "retry", &one]), format!("{one}  available\n"));

    for args in [&["jobs", "retry", "--type", "mail.send"][..], &["jobs", "retry", "--state", "discarded"]] {
        assert_eq!(server.command(args).status.code(), Some(2), "{args:?}");
    }
    let filter = ["jobs", "retry", "--state", "discarded", "--type", "mail.send"];
    assert_eq!(server.printed(&filter), "1 discarded job would be redriven; --yes carries it out\n");
    assert_eq!(server.state(&two), "discarded");
    assert_eq!(server.printed(&[&filter[..], &["--yes"]].concat()), "1 discarded job redriven\n");
    assert_eq!(server.state(&two), "available");
}

#[test]
fn explain_shows_what_an_operator_replaced() {
    let folder = Folder::new("explain-revisions");
    let server = Server::start(&folder.at("data"));
    server.enqueue(quick_job("mail"));
    let id = dead_letter(&server, "mail", "auth.expired");
    server.printed(&["dead", "retry", &id, "--args", "[1]"]);
    let printed = server.printed(&["job", "explain", &id]);
    let replaced = printed.lines().find(|line| line.contains(" replaced args at ")).unwrap_or_default();
    assert!(replaced.ends_with(r#"; before: [{"to":"ada"}]"#), "{printed}");
    assert!(!printed.contains("replaced meta"), "{printed}");
}

#[test]
fn a_dead_letter_shows_the_stack_trace_of_its_last_run() {
    let folder = Folder::new("trace");
    let server = Server::start(&folder.at("data"));
    let id = server.enqueue(quick_job("mail"));
    server.claim("mail");
    let error =
        json!({ "type": "auth.expired", "message": "no\nway", "backtrace": ["a.py:1 in f", "b.py:2 \u{1b}[2J"] });
    server.ask("POST", "/ojs/v1/workers/nack", json!({ "job_id": id, "error": error }));
    let shown = server.printed(&["dead", "show", &id]);
    assert!(shown.contains("message of failed attempt 1:\n    no\n    way\n"), "{shown}");
    assert!(shown.contains("stack trace of failed attempt 1:\n    a.py:1 in f\n    b.py:2 \\u{1b}[2J\n"), "{shown}");
}
