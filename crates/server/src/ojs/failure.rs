//! A failed attempt, as a worker reports it.

use crate::app::App;
use redrive_engine::{FailureReport, KeyHold};
use redrive_ojs::json::{Members, check_nested, text};
use redrive_ojs::time::{parse_rfc3339, rfc3339};
use redrive_ojs::{AttemptError, Invalid, policy_text, span_of_seconds};
use redrive_policy::{Disposition, Moment, Policy, Problem, Signal, Span};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Reads the error of a report; only its message is required. With it comes the policy of the
/// worker, if it brings one.
pub(super) fn read(app: &App, report: &Members<'_>, now: Moment, invalid: &mut Invalid) -> Option<FailureReport> {
    const ALLOWED: &str = "an object with the error, at least its message,";
    let limits = &app.limits;
    let worker_policy = worker_policy(app, report, &mut invalid.policy);
    let problems = &mut invalid.request;
    if !report.has("error") {
        report.wrong("error", ALLOWED, problems);
    }
    let error = report.object("error", "/error", problems)?;
    if !error.has("message") {
        error.wrong("message", "a string that says what happened", problems);
    }
    let message = error.text("message", problems);
    let code = error.text("code", problems).unwrap_or_default();
    let retryable = error.flag("retryable", problems);
    let given_type = error.text("type", problems);
    let types = types(&error, given_type, &code, problems);
    let source = if report.has("retry_after") { report } else { &error };
    let delay = retry_after(source, now, problems);
    let hold = hold(&error, now, problems);
    for (key, value) in error.iter() {
        if let Err(message) = check_nested(value, limits.nesting) {
            error.add_problem(key, Problem::with_message("", message), problems);
        }
    }
    let stored = AttemptError {
        type_name: types.first()?,
        code: &code,
        message: &message?,
        retryable,
        details: error.get("details").map(RawValue::get),
        backtrace: error.get("backtrace"),
        retry: report.get("retry").map(RawValue::get),
        others: Some(&error),
    };
    Some(FailureReport {
        error: Arc::from(stored.stored(limits.error_bytes)),
        types: types.into_iter().map(Cow::into_owned).collect(),
        signal: signal(&code),
        code: code.into_owned(),
        retryable,
        delay,
        worker_policy,
        hold,
    })
}

/// The policy that the worker brings as `retry`, in the shape of a job's `options.retry`.
fn worker_policy(app: &App, report: &Members<'_>, problems: &mut Vec<Problem>) -> Option<Arc<Policy>> {
    let read = app.engine.worker_policy(policy_text(report.get("retry")?.get()));
    read.map_err(|found| found.0.into_iter().for_each(|problem| report.add_problem("retry", problem, problems))).ok()
}

/// The names that the error goes by, the best one first.
fn types<'a>(
    error: &Members<'a>,
    given: Option<Cow<'a, str>>,
    code: &Cow<'a, str>,
    problems: &mut Vec<Problem>,
) -> Vec<Cow<'a, str>> {
    let details = error.object("details", "/error/details", problems).unwrap_or_default();
    let detail = |key| details.get(key).and_then(text);
    let code = Some(code.clone()).filter(|code| !code.is_empty());
    let mut types: Vec<Cow<'a, str>> =
        [given, detail("error_class"), detail("error_type"), code].into_iter().flatten().collect();
    if types.is_empty() {
        types.push(Cow::Borrowed("error"));
    }
    types
}

/// Whether a report has a code that ends the job, whatever else it says.
pub(super) fn ends_the_job(report: &Members<'_>) -> bool {
    let error = report.object("error", "/error", &mut Vec::new());
    let code = error.as_ref().and_then(|error| error.get("code")).and_then(text);
    code.is_some_and(|code| signal(&code) != Signal::None)
}

/// The codes with which a handler speaks to the server; everything else is a label.
fn signal(code: &str) -> Signal {
    match code {
        "DISCARD" | "FAIL" => Signal::Stop(Disposition::Discard),
        "DEAD_LETTER" => Signal::Stop(Disposition::DeadLetter),
        _ => Signal::None,
    }
}

/// The wait that the failure asks for: a number of seconds, also in quotes, or a date.
fn retry_after(members: &Members<'_>, now: Moment, problems: &mut Vec<Problem>) -> Option<Span> {
    let value = members.get("retry_after")?;
    let said = text(value);
    let delay = span_of_seconds(said.as_deref().unwrap_or_else(|| value.get())).or_else(|| {
        let date = said.as_deref()?;
        Some(http_date(date).or_else(|| parse_rfc3339(date))?.since(now))
    });
    if delay.is_none() {
        let most = Span::MAX.secs();
        let date = "a date such as \"Sun, 06 Nov 1994 08:49:37 GMT\"";
        members.wrong("retry_after", &format!("a number of seconds from 0 to {most}, or {date}"), problems);
    }
    delay
}

/// How long one report can hold a limit key.
const LONGEST_HOLD: Span = Span::from_secs(86_400);

/// The time before which no job with the limit key of this one is to start; beyond a day, a day.
fn hold(error: &Members<'_>, now: Moment, problems: &mut Vec<Problem>) -> Option<KeyHold> {
    let allowed = "a timestamp such as \"2026-02-13T12:05:00Z\"";
    let until = error.read("rate_limit_until", allowed, problems, |value| parse_rfc3339(&text(value)?))?;
    let until = until.min(now.after(LONGEST_HOLD));
    Some(KeyHold { until, text: rfc3339(until) })
}

/// A date in one of the three forms of HTTP, of which `Sun, 06 Nov 1994 08:49:37 GMT` is the preferred one.
fn http_date(text: &str) -> Option<Moment> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok().map(Moment::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        let expected = parse_rfc3339("1994-11-06T08:49:37Z");
        let forms = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"];
        for text in forms {
            assert_eq!(http_date(text), expected, "{text}");
        }
        for text in [
            "06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sat, 01 Jan 10000 00:00:00 GMT",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }
}
