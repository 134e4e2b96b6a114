//! Faktory: the `retry` of a job. Everything else about its retries is fixed.

use super::{Import, ImportedRule, Loss, MOST_RETRIES, after_first_run, fourth_power, signed_retries, warn_unrelated};
use crate::dialect::fields::{Fields, Findings};
use crate::{AttemptLimit, Disposition, Matcher, Problems, Span};
use serde_json::Value;

const RETRY: &str = "retry";
pub(super) const RELATED: [&str; 1] = [RETRY];

/// The other fields of a job, which is the only configuration of retries in Faktory.
const UNRELATED: [&str; 11] = [
    "jid",
    "jobtype",
    "args",
    "queue",
    "reserve_for",
    "at",
    "backtrace",
    "created_at",
    "enqueued_at",
    "custom",
    "failure",
];

/// The retries of a job that does not say.
const DEFAULT_RETRIES: i64 = 25;

pub(super) fn read(value: &Value) -> Result<Import, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let mut lost = Vec::new();
    let fields = Fields::document(value, f);
    let known: Vec<&str> = RELATED.into_iter().chain(UNRELATED).collect();
    fields.only(&known, f);
    let allowed = format!(
        "null for {DEFAULT_RETRIES}, 0 to drop the job at its first failure, -1 to bury it there, \
         or a whole number up to {MOST_RETRIES}"
    );
    let retries = if fields.given(RETRY) { fields.read(RETRY, &allowed, f, signed_retries) } else { None };
    warn_unrelated(&fields, &UNRELATED, f);

    let (attempts, on_stop) = match retries.unwrap_or(DEFAULT_RETRIES) {
        0 => (AttemptLimit::Disabled, Disposition::Discard),
        retries => match u32::try_from(retries) {
            Ok(retries) => (after_first_run(retries), Disposition::DeadLetter),
            Err(_) => (AttemptLimit::Disabled, Disposition::DeadLetter),
        },
    };
    let backoff = fourth_power(Span::from_secs(30));
    let imported = ImportedRule { matcher: Matcher::default(), backoff, attempts, max_elapsed: None, on_stop };
    if imported.retries_at_all() {
        let message = "Faktory draws one of 30 values that lie n seconds apart, from 0 to 29n at retry n; the policy \
                       draws from the same range without the grid, up to n seconds more";
        lost.push(Loss::new("", message));
    }
    imported.import(findings, lost)
}
