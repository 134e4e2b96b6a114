//! The importers: settings of six systems against the formulas of those systems, written down anew here.

#![cfg(feature = "dialects")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod arbitrary;
mod bullmq;
mod celery;
mod faktory;
mod guide;
mod oban;
mod sidekiq;
mod temporal;
mod told;

use redrive_policy::import::{Import, Source};
use redrive_policy::{Disposition, Draw, Failure, History, Moment, Outcome, Policy, decide};
use serde_json::{Value, json};

/// Reads what must be valid, and checks what holds for every import.
fn read(source: Source, value: &Value) -> Import {
    let import = source.read(value).unwrap_or_else(|problems| panic!("{source} {value}: {problems}"));
    check(value, &import);
    import
}

fn check(value: &Value, import: &Import) {
    for loss in &import.lost {
        assert!(value.pointer(&loss.path).is_some(), "{} does not point into {value}", loss.path);
        assert!(loss.message.len() > 20, "{}", loss.message);
    }
    for warning in &import.warnings {
        assert!(value.pointer(&warning.path).is_some(), "{} does not point into {value}", warning.path);
        assert!(!warning.instead.is_empty());
    }
    let json = serde_json::to_value(&import.policy).expect("a policy is JSON");
    assert_eq!(serde_json::from_value::<Policy>(json).expect("the same policy"), import.policy);
}

fn policy(source: Source, value: Value) -> Policy {
    read(source, &value).policy
}

/// The bounds of a delay in seconds.
fn bounds_s(policy: &Policy, n: u32) -> (f64, f64) {
    let at = |draw| policy.rules[0].backoff.delay(n, None, draw).delay.secs();
    (at(Draw::LOWEST), at(Draw::SUPREMUM))
}

#[track_caller]
fn assert_near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= wanted.abs() * 1e-12, "found {found}, wanted {wanted}");
}

#[track_caller]
fn assert_bounds(policy: &Policy, n: u32, low: f64, high: f64) {
    let found = bounds_s(policy, n);
    assert_near(found.0, low);
    assert_near(found.1, high);
}

/// How a job ends that fails again and again: after how many runs, why, and what becomes of it.
/// `None` where it still goes on after three thousand.
fn end(policy: &Policy, type_name: &str) -> Option<(u32, &'static str, Disposition)> {
    let mut history = History::new(Moment::ORIGIN);
    for run in 1..=3000 {
        let verdict = decide(policy, &history, &Failure::of_type(type_name), Moment::ORIGIN, Draw::LOWEST);
        assert_eq!(verdict.attempt, run);
        history.record(&verdict);
        if let Outcome::Stop { reason, disposition } = verdict.outcome {
            return Some((run, reason.name(), disposition));
        }
    }
    None
}

#[track_caller]
fn assert_end(source: Source, value: Value, runs: u32, reason: &str, disposition: Disposition) {
    assert_eq!(end(&policy(source, value.clone()), "error"), Some((runs, reason, disposition)), "{source} {value}");
}

#[test]
fn the_systems_have_names() {
    for source in Source::ALL {
        assert_eq!(source.name().parse(), Ok(source));
        assert_eq!(source.to_string(), source.name());
        assert_eq!(serde_json::to_value(source).expect("JSON"), json!(source.name()));
    }
    let error = "resque".parse::<Source>().expect_err("not known");
    for known in ["resque", "temporal", "sidekiq", "celery", "bullmq", "faktory", "oban"] {
        assert!(error.contains(known), "{error}");
    }
}

/// With the same draw, the policy's delay cut down to the grid of the system is the system's delay.
/// Draws from the middle of 3 000 equal strata stand for all: the two laws are the same but for the grid.
#[test]
fn the_laws_agree_draw_by_draw() {
    let sidekiq = policy(Source::Sidekiq, json!({}));
    let faktory = policy(Source::Faktory, json!({}));
    let oban = policy(Source::Oban, json!({}));
    let bullmq = json!({"attempts": 9, "backoff": {"type": "exponential", "delay": 500, "jitter": 0.25}});
    let bullmq = policy(Source::BullMq, bullmq);
    let mut sidekiq_hits = [0_u32; 30];
    for stratum in 0..3000 {
        let u = (f64::from(stratum) + 0.5) / 3000.0;
        let draw = Draw::try_from(u).expect("a draw");
        let delay = |policy: &Policy, n| policy.rules[0].backoff.delay(n, None, draw).delay;
        let n = 3.0;
        let base = 16.0 + 15.0;
        let second = delay(&sidekiq, 3).secs().floor();
        assert_eq!(second, base + (u * 10.0 * n).floor());
        sidekiq_hits[(second - base) as usize] += 1;
        assert_eq!(((delay(&faktory, 3).secs() - base) / n).floor(), (u * 30.0).floor());
        let base = 15.0 + 32.0;
        assert_eq!(delay(&oban, 5).secs().floor(), base + (u * 0.1 * base).trunc());
        let longest = 2000.0;
        assert_eq!(delay(&bullmq, 3).ms(), (u * longest * 0.25 + longest * 0.75).floor());
    }
    assert_eq!(sidekiq_hits, [100; 30], "each second from 0 to 10n - 1 is as likely as the others");
}

/// Celery draws one of `base + 1` whole seconds, so that the ends weigh as much as the others: the
/// continuous law has the same ends and the same mean.
#[test]
fn the_law_of_celery_has_the_same_mean() {
    let policy = policy(Source::Celery, json!({"autoretry_for": ["Exception"], "retry_backoff": 10}));
    for n in [1, 2, 5, 25] {
        let base = (10_u64 << (n - 1)).min(600);
        let whole_seconds: u64 = (0..=base).sum();
        let mean = whole_seconds as f64 / (base + 1) as f64;
        let strata = (0..1000).map(|stratum| Draw::try_from((f64::from(stratum) + 0.5) / 1000.0).expect("a draw"));
        let sum: f64 = strata.map(|draw| policy.rules[0].backoff.delay(n, None, draw).delay.secs()).sum();
        assert!((sum / 1000.0 - mean).abs() < 1e-9, "retry {n}: {} against {mean}", sum / 1000.0);
    }
}
