//! Oban: the `max_attempts` of a worker, and the backoff that every worker has unless it brings its own.

use super::{Import, ImportedRule, Loss, warn_unrelated};
use crate::dialect::fields::{Fields, Findings};
use crate::{AttemptLimit, Backoff, Curve, Disposition, Jitter, Matcher, Problems, Rounding, Span};
use serde_json::Value;

const MAX_ATTEMPTS: &str = "max_attempts";
pub(super) const RELATED: [&str; 1] = [MAX_ATTEMPTS];

/// The other options of a worker or of a job.
const UNRELATED: [&str; 10] =
    ["worker", "args", "queue", "priority", "tags", "meta", "unique", "replace", "schedule_in", "scheduled_at"];

const DEFAULT_ATTEMPTS: u32 = 20;
/// Up to here the exponent is the attempt itself; beyond, all attempts are squeezed into as many steps.
const LARGEST_EXPONENT: u32 = 20;

pub(super) fn read(value: &Value) -> Result<Import, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let mut lost = Vec::new();
    let fields = Fields::document(value, f);
    let known: Vec<&str> = RELATED.into_iter().chain(UNRELATED).collect();
    fields.only(&known, f);
    let max_attempts = fields.count(MAX_ATTEMPTS, 1, f).unwrap_or(DEFAULT_ATTEMPTS);
    warn_unrelated(&fields, &UNRELATED, f);

    let imported = ImportedRule {
        matcher: Matcher::default(),
        backoff: backoff(max_attempts),
        attempts: AttemptLimit::AtMost(max_attempts),
        max_elapsed: None,
        // The row stays, in the state `discarded`, for people to look at until a pruner removes it.
        on_stop: Disposition::DeadLetter,
    };
    if imported.retries_at_all() {
        let message = "Oban adds up to a tenth of the delay and cuts that down to a whole second; \
                       the policy adds the same without cutting, less than a second more";
        lost.push(Loss::new("", message));
    }
    if max_attempts > LARGEST_EXPONENT {
        let message = format!(
            "above {LARGEST_EXPONENT} attempts Oban waits 15 + 2^m seconds, where m is {LARGEST_EXPONENT} times the \
             attempt divided by {max_attempts}, rounded, so that delays climb in steps that double; the policy does \
             not round m: its delays climb evenly through those steps, each within a factor of 1.42 of Oban's"
        );
        lost.push(Loss::new(fields.path_of(MAX_ATTEMPTS), message));
    }
    imported.import(findings, lost)
}

/// `15 + 2^n` seconds, and up to a tenth more; with more attempts than exponents, `15 + 2^(20n/max)`.
fn backoff(max_attempts: u32) -> Backoff {
    let rate = if max_attempts > LARGEST_EXPONENT {
        (f64::from(LARGEST_EXPONENT) / f64::from(max_attempts)).exp2()
    } else {
        2.0
    };
    Backoff {
        initial: Span::from_secs(1).times(rate),
        offset: Span::from_secs(15),
        curve: Curve::Exponential { rate },
        cap: None,
        jitter: Jitter::Scale { low: 1.0, high: 1.1 },
        rounding: Rounding::Exact,
    }
}
