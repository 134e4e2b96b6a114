//! The limit that a job brings, as OJS writes it.

use crate::Limits;
use crate::json::Members;
use redrive_policy::dialect::iso_duration;
use redrive_policy::{Problem, Span};
use redrive_store::{Bounds, OnLimit, OwnLimit, Rate};
use std::sync::Arc;

/// What limits count up to.
const MOST: i64 = 1_000_000_000;
/// The longest period.
const LONGEST: Span = Span::from_secs(366 * 86_400);

/// Reads the limit under `rate_limit`. Without a key it is that of the queue.
pub(crate) fn read(
    options: &Members<'_>,
    queue: &str,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<OwnLimit> {
    const AT: &str = "/options/rate_limit";
    let found = options.object("rate_limit", AT, problems)?;
    found.only(&["key", "concurrency", "rate", "throttle", "max_per_second", "on_limit"], problems);
    let key = key(&found, limits, problems);
    let mut bounds = bounds(&found, [RATE, THROTTLE], problems);
    if let Some(limit) = found.whole("max_per_second", 1..=MOST, problems) {
        if bounds.rate.is_some() {
            let message = "is another way to write a rate; keep one of the two";
            found.add_problem("max_per_second", Problem::with_message("", message), problems);
        }
        bounds.rate = Some(Rate { limit: small(limit), period: Span::from_secs(1) });
    }
    let on_limit = on_limit(&found, problems);
    let key: Arc<str> = key.unwrap_or_else(|| format!("queue:{queue}").into());
    Some(OwnLimit { key, bounds, on_limit })
}

/// The places of the two rates in the options of a job.
const RATE: &str = "/options/rate_limit/rate";
const THROTTLE: &str = "/options/rate_limit/throttle";

/// The limits in an object; `at` are the places of its rates.
pub(crate) fn bounds(found: &Members<'_>, at: [&'static str; 2], problems: &mut Vec<Problem>) -> Bounds {
    let concurrency = found.whole("concurrency", 0..=MOST, problems).map(small);
    let mut rate = |key: &str, at| rate_of(&found.object(key, at, problems)?, problems);
    Bounds { concurrency, rate: rate("rate", at[0]), throttle: rate("throttle", at[1]) }
}

/// A rate.
pub(crate) fn rate_of(found: &Members<'_>, problems: &mut Vec<Problem>) -> Option<Rate> {
    found.only(&["limit", "period"], problems);
    for (key, allowed) in [("limit", "a whole number of runs"), ("period", "a duration such as \"PT1M\"")] {
        if !found.has(key) {
            found.wrong(key, allowed, problems);
        }
    }
    let limit = found.whole("limit", 1..=MOST, problems);
    let allowed = "a duration from PT0.001S to P366D, such as \"PT1M\"";
    let period = found.read("period", allowed, problems, |value| {
        let span = iso_duration(&crate::json::text(value)?)?.span;
        (span >= Span::from_millis(1) && span <= LONGEST).then_some(span)
    });
    Some(Rate { limit: small(limit?), period: period? })
}

fn key(found: &Members<'_>, limits: &Limits, problems: &mut Vec<Problem>) -> Option<Arc<str>> {
    let allowed = format!(
        "letters, digits, dots, colons, hyphens and _, with a letter or digit first, at most {} bytes, such as \
         \"stripe-api\" or \"tenant:acme\"",
        limits.name_bytes
    );
    found.read("key", &allowed, problems, |value| {
        let key = crate::json::text(value)?;
        is_limit_key(&key, limits).then(|| Arc::from(&*key))
    })
}

/// Whether a text can be the key of a limit.
#[must_use]
pub fn is_limit_key(text: &str, limits: &Limits) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    first && text.len() <= limits.name_bytes && text.bytes().all(inside)
}

fn on_limit(found: &Members<'_>, problems: &mut Vec<Problem>) -> OnLimit {
    let read = found.read("on_limit", "\"wait\"", problems, |value| match &*crate::json::text(value)? {
        "wait" => Some(OnLimit::Wait),
        _ => None,
    });
    read.unwrap_or_default()
}

fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
