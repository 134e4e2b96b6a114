//! The wall clock is set while a server runs, or before it starts again. On the embedded store it is the server's
//! own, on PostgreSQL the database's.

use crate::harness::until;
use crate::skewed_server::{SkewedServer, assert_on_time};
use crate::{assert_about, written};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(2);
const HOUR_S: f64 = 3_600.0;

#[test]
fn a_clock_that_is_set_back_delays_no_retry_and_no_end_of_a_lease() {
    SkewedServer::on_both(|skewed| {
        let name = skewed.name();
        let taken = Instant::now();
        let lost = skewed.held("lost", 2_000);
        let (job, failed) = skewed.failed("again", 2_000);
        skewed.set_clock("-1h");
        let again = skewed.server().claim("again");
        assert_on_time(failed, WAIT, &format!("{name}: the retry"));
        assert_eq!((&again["id"], &again["attempt"]), (&job["id"], &json!(2)));
        until("the lease ends", || (skewed.state(&lost) != "active").then_some(()));
        assert_on_time(taken, WAIT, &format!("{name}: the end of the lease"));
        let health = skewed.notices_step(-HOUR_S);
        assert_about(&health, "/clock/time", "-1 hour");
        until("the step is in the log", || {
            let log = skewed.server().log_lines();
            let lines: Vec<_> = log.iter().filter(|line| line.contains("the wall clock was set back by")).collect();
            assert!(lines.len() < 2, "{name}: {lines:?}");
            lines.first().map(|line| assert!(line.contains("1 h") || line.contains("59 min"), "{name}: {line}"))
        });
    });
}

#[test]
fn a_clock_that_is_set_forward_ends_no_lease_and_starts_no_retry_early() {
    SkewedServer::on_both(|skewed| {
        let name = skewed.name();
        let (held, (waits, _)) = (skewed.held("held", 600_000), skewed.failed("again", 300_000));
        skewed.set_clock("+1h");
        skewed.notices_step(HOUR_S);
        skewed.sweeps();
        assert_eq!(skewed.state(&held), "active", "{name}: the lease of ten minutes");
        assert_eq!(skewed.state(&waits), "retryable", "{name}: the retry in five minutes");
        skewed.server().succeed(&held);
    });
}

#[test]
fn a_time_that_is_named_after_a_step_is_one_of_the_wall_clock() {
    SkewedServer::on_both(|skewed| {
        let name = skewed.name();
        skewed.set_clock("-1h");
        skewed.notices_step(-HOUR_S);
        let sent = Instant::now();
        let options = json!({ "queue": "later", "scheduled_at": written("-1 hour +2 seconds") });
        skewed.server().enqueue(json!({ "type": "work", "args": [], "options": options }));
        let job = skewed.server().claim("later");
        assert_on_time(sent, WAIT, &format!("{name}: the job"));
        ["/created_at", "/started_at", "/lease_expires_at"].iter().for_each(|time| {
            let off = if *time == "/lease_expires_at" { "-30 minutes" } else { "-1 hour" };
            assert_about(&job, time, off);
        });
    });
}

#[test]
fn a_clock_that_was_set_back_while_the_server_was_stopped_delays_no_retry() {
    SkewedServer::on_both(|mut skewed| {
        let name = skewed.name();
        let (job, failed) = skewed.failed("again", 3_000);
        skewed.stop();
        skewed.set_clock("-1h");
        skewed.start();
        let again = skewed.server().claim("again");
        assert_eq!((&again["id"], &again["attempt"]), (&job["id"], &json!(2)));
        assert_on_time(failed, Duration::from_secs(3), &format!("{name}: the retry"));
        skewed.notices_step(-HOUR_S);
    });
}

#[test]
fn a_restart_after_a_step_forward_keeps_the_times_that_were_named_since() {
    SkewedServer::on_both(|mut skewed| {
        let name = skewed.name();
        skewed.set_clock("+1h");
        skewed.notices_step(HOUR_S);
        let sent = Instant::now();
        let options = json!({ "queue": "later", "scheduled_at": written("+1 hour +6 seconds") });
        skewed.server().enqueue(json!({ "type": "work", "args": [], "options": options }));
        skewed.kill();
        skewed.start();
        let health = skewed.server().ask("GET", "/ojs/v1/health", Value::Null);
        let ahead_s = health["clock"]["wall_clock_ahead_seconds"].as_f64().expect("a number");
        assert!((ahead_s - HOUR_S).abs() < 60.0, "{name}: {health}");
        skewed.server().claim("later");
        assert_on_time(sent, Duration::from_secs(6), &format!("{name}: the job"));
    });
}
