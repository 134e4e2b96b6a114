//! The one place where a failure meets its policy.

use redrive_policy::{Draw, Failure, Mismatch, Moment, Policy, Signal, Span, Unmatched, decide};
use redrive_store::{Blob, Decision, Job, Overdue};
use serde_json::json;
use std::sync::Arc;

/// A failure as a worker reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureReport {
    /// The error for the record, as JSON text.
    pub error: Blob,
    /// The names that the error goes by, the best one first; lists of types are compared with all.
    pub types: Vec<String>,
    /// Its code; empty where it has none.
    pub code: String,
    /// What the worker says about retrying, if anything.
    pub retryable: Option<bool>,
    /// What the handler asks for.
    pub signal: Signal,
    /// The wait that the failure asks for.
    pub delay: Option<Span>,
    /// The policy that the worker brings, if it brings one.
    pub worker_policy: Option<Arc<Policy>>,
    /// For how long no job with the limit key of this one is to start.
    pub hold: Option<KeyHold>,
}

/// A time before which no job with a limit key is to start.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyHold {
    /// The time, by the wall clock.
    pub until: Moment,
    /// The same as it is told.
    pub text: String,
}

impl FailureReport {
    /// A failure of which nothing but the error is known.
    #[must_use]
    pub const fn new(error: Blob) -> Self {
        Self {
            error,
            types: Vec::new(),
            code: String::new(),
            retryable: None,
            signal: Signal::None,
            delay: None,
            worker_policy: None,
            hold: None,
        }
    }
}

/// The decision on a reported failure.
pub(crate) fn reported(job: &Job, report: &FailureReport, now: Moment, draw: Draw) -> Decision {
    let met = report.worker_policy.as_ref().map(|worker| Arc::new(job.spec.policy.on_worker(worker)));
    let policy = met.as_ref().unwrap_or(&job.spec.policy);
    let failure = Failure {
        type_name: best_name(policy, report),
        code: &report.code,
        retryable: report.retryable,
        signal: heeded(policy, report),
        delay: report.delay,
    };
    let verdict = decide(policy, &job.history, &failure, now, draw);
    let due = now.after(verdict.delay().unwrap_or(Span::ZERO));
    Decision { verdict, due, error: report.error.clone(), policy: met }
}

/// The decision on a run that is overdue.
pub(crate) fn overdue(job: &Job, why: Overdue, now: Moment, draw: Draw) -> Decision {
    let failure = Failure::default().with_signal(Signal::Overdue);
    let verdict = decide(&job.spec.policy, &job.history, &failure, now, draw);
    let delay = verdict.delay().unwrap_or(Span::ZERO);
    let due = match (why, &job.lease) {
        // The wait counts from the last heartbeat: for all that is known, the run failed then.
        (Overdue::Stalled, Some(lease)) => lease.alive.after(delay).max(lease.until),
        _ => now.after(delay),
    };
    Decision { verdict, due, error: overdue_error(job, why), policy: None }
}

/// The error of a run that the server ended.
fn overdue_error(job: &Job, why: Overdue) -> Blob {
    let worker = job.lease.as_ref().map_or("", |lease| &*lease.worker);
    let error = match why {
        Overdue::Stalled => json!({
            "type": "visibility_timeout", "code": "timeout",
            "message": format!("worker \"{worker}\" sent no heartbeat within the visibility timeout"),
            "details": { "timeout_kind": "stalled", "worker_id": worker },
        }),
        Overdue::TimedOut => json!({
            "type": "timeout", "code": "timeout",
            "message": format!("the run on worker \"{worker}\" took longer than its timeout"),
            "details": { "timeout_kind": "execution", "worker_id": worker },
        }),
    };
    Arc::from(error.to_string().into_bytes())
}

/// The name of the error that the policy has something to say about: one that it excludes, else one
/// that it includes, else the best one. A rule may look at the code and the flag beside the name.
fn best_name<'a>(policy: &Policy, report: &'a FailureReport) -> &'a str {
    let names = &report.types;
    let verdict = |name: &String| {
        let failure = Failure { code: &report.code, retryable: report.retryable, ..Failure::of_type(name) };
        policy.rule_for(&failure).map(|_| ())
    };
    let excluded = names.iter().find(|name| matches!(verdict(name), Err(Mismatch::Excluded { .. })));
    let included = || names.iter().find(|name| verdict(name).is_ok());
    excluded.or_else(included).or(names.first()).map_or("error", String::as_str)
}

/// The handler's signal. A worker that says "not retryable" is heeded where the policy has no word of
/// its own about the flag or a list of what to retry (Azolla §4, MWL).
fn heeded(policy: &Policy, report: &FailureReport) -> Signal {
    let decides = policy.unmatched == Unmatched::PassesThrough
        || policy.rules.iter().any(|rule| rule.matcher.include_types.is_some() || rule.matcher.retryable.is_some());
    match report.signal {
        Signal::None if report.retryable == Some(false) && !decides => Signal::Permanent,
        signal => signal,
    }
}
