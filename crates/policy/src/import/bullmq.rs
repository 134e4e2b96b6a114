//! BullMQ: the `JobsOptions` of a job, or the `defaultJobOptions` of a queue. Milliseconds.

use super::{Import, ImportedRule, Loss, warn_unrelated};
use crate::dialect::fields::{Fields, Findings};
use crate::dialect::{Warning, warn_unread};
use crate::{AttemptLimit, Backoff, Curve, Disposition, Jitter, Matcher, Pattern, Problem, Problems, Rounding, Span};
use serde_json::Value;

pub(super) const RELATED: [&str; 3] = ["attempts", "backoff", "removeOnFail"];

/// The other options of a job. `delay` is the wait before its first run.
const UNRELATED: [&str; 10] = [
    "delay",
    "removeOnComplete",
    "priority",
    "lifo",
    "jobId",
    "timestamp",
    "keepLogs",
    "stackTraceLimit",
    "sizeLimit",
    "deduplication",
];

/// By default, a job runs once.
const DEFAULT_ATTEMPTS: u32 = 1;
/// The error that a processor throws when another run would not help.
const UNRECOVERABLE: &str = "UnrecoverableError";
/// The delay by which a strategy says that the job shall not run again.
const NO_RETRY: f64 = -1.0;

const STRATEGIES: [(&str, Curve); 2] = [("fixed", Curve::Fixed), ("exponential", Curve::Exponential { rate: 2.0 })];

pub(super) fn read(value: &Value) -> Result<Import, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let mut lost = Vec::new();
    let fields = Fields::document(value, f);
    let known: Vec<&str> = RELATED.into_iter().chain(UNRELATED).collect();
    fields.only(&known, f);
    let attempts = fields.count("attempts", 0, f).unwrap_or(DEFAULT_ATTEMPTS);
    let backoff = if fields.given("backoff") { Some(backoff(&fields, f)) } else { None };
    let on_stop = on_stop(&fields, &mut lost, f);
    warn_unrelated(&fields, &UNRELATED, f);

    if attempts <= 1 && backoff.is_some() {
        warn_unread(&fields, &["backoff"], "a job with fewer than two attempts", f);
    }
    if attempts > 1 && backoff.is_none() {
        f.warnings.push(Warning {
            code: "immediate-retries",
            path: fields.path_of("attempts"),
            message: format!("without backoff all {attempts} attempts follow each other at once"),
            instead: "\"backoff\": {\"type\": \"exponential\", \"delay\": 1000} beside it".to_owned(),
        });
    }
    let imported = ImportedRule {
        matcher: Matcher { exclude_types: vec![Pattern::exact(UNRECOVERABLE)], ..Matcher::default() },
        backoff: backoff.flatten().unwrap_or(Backoff::IMMEDIATE),
        attempts: if backoff == Some(None) { AttemptLimit::Disabled } else { AttemptLimit::AtMost(attempts.max(1)) },
        max_elapsed: None,
        on_stop,
    };
    imported.import(findings, lost)
}

/// The backoff under either of its forms; `None` where its delay forbids retries.
fn backoff(fields: &Fields<'_>, f: &mut Findings) -> Option<Backoff> {
    if fields.get("backoff").is_some_and(Value::is_number) {
        return delay(fields, "backoff", f).map(Backoff::fixed);
    }
    let allowed = "a number of milliseconds, or an object with type, delay and jitter";
    fields.read("backoff", allowed, f, Value::as_object)?;
    let strategy = fields.nested("backoff", f);
    strategy.only(&["type", "delay", "jitter"], f);
    let curve = curve(&strategy, f);
    let jitter = strategy.fraction("jitter", f).unwrap_or(0.0);
    let initial = if strategy.has("delay") { delay(&strategy, "delay", f)? } else { Span::ZERO };
    Some(Backoff {
        curve,
        // The draw only ever shortens the delay, and is cut down to a whole millisecond.
        jitter: if jitter > 0.0 { Jitter::Scale { low: 1.0 - jitter, high: 1.0 } } else { Jitter::None },
        rounding: if jitter > 0.0 { Rounding::FloorMs } else { Rounding::Exact },
        ..Backoff::fixed(initial)
    })
}

fn curve(strategy: &Fields<'_>, f: &mut Findings) -> Curve {
    strategy.require("type", "\"fixed\" or \"exponential\"", f);
    let named = |value: &Value| STRATEGIES.iter().find(|(name, _)| value == name).map(|(_, curve)| *curve);
    let allowed = "\"fixed\" or \"exponential\"; a strategy of your own is code and cannot be read, \
                   so write down the one of the two that comes nearest";
    strategy.read("type", allowed, f, named).unwrap_or(Curve::Fixed)
}

/// A delay; `None` for the one that forbids retries.
fn delay(fields: &Fields<'_>, key: &str, f: &mut Findings) -> Option<Span> {
    let parse = |value: &Value| value.as_f64().filter(|ms| *ms >= 0.0 || *ms == NO_RETRY);
    let allowed = "a number of milliseconds, at least 0, or -1 for no retries";
    match fields.read(key, allowed, f, parse) {
        Some(NO_RETRY) => None,
        ms => Some(Span::saturating_ms(ms.unwrap_or(0.0))),
    }
}

/// A failed job stays for inspection, unless it is removed immediately.
fn on_stop(fields: &Fields<'_>, lost: &mut Vec<Loss>, f: &mut Findings) -> Disposition {
    let path = fields.path_of("removeOnFail");
    let kept = match fields.get("removeOnFail") {
        None | Some(Value::Bool(false)) => return Disposition::DeadLetter,
        Some(Value::Bool(true)) => return Disposition::Discard,
        Some(Value::Number(_)) => fields.whole("removeOnFail", 0, u64::MAX, f),
        Some(Value::Object(_)) => {
            let keep = fields.nested("removeOnFail", f);
            keep.only(&["count", "age", "limit"], f);
            for key in ["age", "limit"] {
                keep.whole(key, 0, u64::MAX, f);
            }
            keep.whole("count", 0, u64::MAX, f)
        }
        Some(other) => {
            let allowed = "true, false, a number of jobs to keep, or an object with count, age and limit";
            f.problems.push(Problem::new(path, crate::problem::shown(other), allowed));
            return Disposition::DeadLetter;
        }
    };
    if kept == Some(0) {
        return Disposition::Discard;
    }
    let message = "a policy says that a failed job is kept, not how many of them or how long; here all are kept";
    lost.push(Loss::new(path, message));
    Disposition::DeadLetter
}
