//! Sidekiq 8.1: the `sidekiq_options` of a job class, with the settings of the server that they lean on.

use super::{Import, ImportedRule, Loss, MOST_RETRIES, after_first_run, fourth_power, signed_retries, warn_unrelated};
use crate::dialect::fields::{Fields, Findings};
use crate::dialect::{Warning, warn_unread};
use crate::{AttemptLimit, Disposition, Matcher, Problems, Span};
use serde_json::Value;

pub(super) const RELATED: [&str; 7] =
    ["retry", "retry_for", "retry_queue", "dead", "max_retries", "dead_max_jobs", "dead_timeout_in_seconds"];

const UNRELATED: [&str; 4] = ["queue", "backtrace", "tags", "pool"];

/// The server's `max_retries`, where nothing else is said.
const MAX_RETRIES: u32 = 25;
/// Beyond it Sidekiq takes the number for a point in time, and refuses it.
const LONGEST_RETRY_FOR_S: u64 = 1_000_000_000;

/// What `retry` says.
#[derive(Clone, Copy, PartialEq)]
enum Retry {
    Never,
    Times(u32),
    ServerDefault,
}

pub(super) fn read(value: &Value) -> Result<Import, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let mut lost = Vec::new();
    let fields = Fields::document(value, f);
    let known: Vec<&str> = RELATED.into_iter().chain(UNRELATED).collect();
    fields.only(&known, f);
    let retry = retry(&fields, f);
    let server_retries = fields.whole("max_retries", 0, u64::from(MOST_RETRIES), f);
    let server_retries = server_retries.and_then(|n| u32::try_from(n).ok()).unwrap_or(MAX_RETRIES);
    let retry_for = fields.given("retry_for").then(|| retry_for(&fields, f)).flatten();
    let dead = fields.given("dead").then(|| fields.boolean("dead", f)).flatten().unwrap_or(true);
    let queue = fields.given("retry_queue").then(|| fields.text("retry_queue", f)).flatten();
    warn_unrelated(&fields, &UNRELATED, f);

    let attempts = match (retry, retry_for) {
        (Retry::Never, _) => AttemptLimit::Disabled,
        (_, Some(_)) => AttemptLimit::Unlimited,
        (Retry::Times(retries), None) => after_first_run(retries),
        (Retry::ServerDefault, None) => after_first_run(server_retries),
    };
    warn_of_unread(&fields, retry, retry_for, f);
    let imported = ImportedRule {
        matcher: Matcher::default(),
        backoff: fourth_power(Span::from_secs(10)),
        attempts,
        max_elapsed: retry_for.filter(|_| retry != Retry::Never),
        // Without retries Sidekiq reports the error and forgets the job, whatever `dead` says.
        on_stop: if dead && retry != Retry::Never { Disposition::DeadLetter } else { Disposition::Discard },
    };
    if imported.retries_at_all() {
        note_lost(&fields, &imported, queue, &mut lost);
    }
    note_retention(&fields, &mut lost, f);
    imported.import(findings, lost)
}

fn retry(fields: &Fields<'_>, f: &mut Findings) -> Retry {
    let allowed = format!(
        "true, false, null or a whole number up to {MOST_RETRIES}; \
         Sidekiq takes anything else for true, which is the server's max_retries"
    );
    let parse = |value: &Value| match value {
        Value::Null | Value::Bool(true) => Some(Ok(Retry::ServerDefault)),
        Value::Bool(false) => Some(Ok(Retry::Never)),
        // Ruby distinguishes 5 from 5.0, and 5.0 is no number of retries there.
        Value::Number(number) if number.is_f64() => None,
        number => signed_retries(number).map(|n| u32::try_from(n).map(Retry::Times).map_err(|_| n)),
    };
    match fields.read("retry", &allowed, f, parse) {
        None => Retry::ServerDefault,
        Some(Ok(retry)) => retry,
        Some(Err(negative)) => {
            f.warnings.push(Warning {
                code: "negative-limit",
                path: fields.path_of("retry"),
                message: format!("{negative} is the same as 0: the first failure is the last"),
                instead: "0, or false if the job shall not enter the Dead set either".to_owned(),
            });
            Retry::Times(0)
        }
    }
}

fn retry_for(fields: &Fields<'_>, f: &mut Findings) -> Option<Span> {
    let seconds = fields.whole("retry_for", 0, LONGEST_RETRY_FOR_S, f)?;
    Some(Span::saturating_ms(seconds as f64 * 1000.0))
}

fn warn_of_unread(fields: &Fields<'_>, retry: Retry, retry_for: Option<Span>, f: &mut Findings) {
    match (retry, retry_for) {
        (Retry::Never, _) => {
            let unread = ["retry_for", "retry_queue", "dead", "max_retries"];
            warn_unread(fields, &unread, "a job with \"retry\": false", f);
        }
        (Retry::Times(_), Some(_)) => {
            warn_unread(fields, &["retry", "max_retries"], "a job with retry_for, since Sidekiq 8.1,", f);
        }
        (Retry::ServerDefault, Some(_)) => warn_unread(fields, &["max_retries"], "a job with retry_for", f),
        (Retry::Times(_), None) => warn_unread(fields, &["max_retries"], "a job with its own number of retries", f),
        (Retry::ServerDefault, None) => {}
    }
}

fn note_lost(fields: &Fields<'_>, imported: &ImportedRule, queue: Option<&str>, lost: &mut Vec<Loss>) {
    let grid = "Sidekiq draws whole seconds, from 0 to 10n - 1 at retry n; the policy draws from the same range \
                without the grid, up to a second more";
    lost.push(Loss::new("", grid));
    if imported.max_elapsed.is_some() {
        let message = "Sidekiq counts from the first failure and looks only when a run fails, so that one more run may \
                       start after the limit; the policy counts from the job's creation and schedules no run past it";
        lost.push(Loss::new(fields.path_of("retry_for"), message));
    }
    if let Some(queue) = queue {
        let message = format!("a policy names no queue; retries stay in the job's own queue and not in {queue}");
        lost.push(Loss::new(fields.path_of("retry_queue"), message));
    }
}

fn note_retention(fields: &Fields<'_>, lost: &mut Vec<Loss>, f: &mut Findings) {
    for key in ["dead_max_jobs", "dead_timeout_in_seconds"] {
        if fields.whole(key, 0, u64::MAX, f).is_some() {
            let message = "a policy says that a job becomes a dead letter, not how many of them are kept or how long";
            lost.push(Loss::new(fields.path_of(key), message));
        }
    }
}
