//! What an answer means for a delivery.

use super::send::{Answer, NoAnswer};
use redrive_engine::{Ending, FailureReport};
use redrive_policy::{Disposition, Moment, Signal, Span};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// The delays of the specification, in seconds, by the attempt that failed. They apply where the subscription has no
/// policy of its own.
const DELAYS: [u32; 7] = [30, 120, 600, 3_600, 14_400, 43_200, 86_400];
/// An endpoint cannot put a delivery off for longer than this, in seconds.
const LONGEST_WAIT: f64 = 86_400.0;

/// How the attempt of a delivery ends. `own_policy` says whether the subscription has one.
pub(super) fn ending(
    answer: Result<Answer, NoAnswer>,
    took: Duration,
    attempt: u32,
    own_policy: bool,
    now: Moment,
) -> Ending {
    let took_ms = took.as_millis() as u64;
    let table = || {
        let place = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        DELAYS.get(place).map(|seconds| Span::from_secs(*seconds)).filter(|_| !own_policy)
    };
    match answer {
        Ok(answer) if answer.status.is_success() => {
            let result = json!({ "status_code": answer.status.as_u16(), "duration_ms": took_ms });
            Ending::Done(Some(Arc::from(result.to_string().into_bytes())))
        }
        Ok(answer) => {
            let status = answer.status.as_u16();
            let delay = answer.retry_after.as_deref().filter(|_| status == 429).and_then(|text| wait(text, now));
            let message = format!("the endpoint answered {}", answer.status);
            let details = json!({ "status_code": status, "duration_ms": took_ms, "response_body": answer.body });
            let report = failure(&format!("http_{status}"), &message, &details);
            match status {
                400..=499 if status != 429 => Ending::Failed(stopped(report)),
                _ => Ending::Failed(FailureReport { delay: delay.or_else(table), ..report }),
            }
        }
        Err(NoAnswer::Failed(why)) => {
            let report = failure("no_answer", &why, &json!({ "duration_ms": took_ms }));
            Ending::Failed(FailureReport { delay: table(), ..report })
        }
        Err(NoAnswer::NotAllowed(why)) => Ending::Failed(stopped(failure("address_not_allowed", &why, &json!({})))),
    }
}

fn failure(type_name: &str, message: &str, details: &serde_json::Value) -> FailureReport {
    let error = json!({ "type": type_name, "code": type_name, "message": message, "details": details });
    FailureReport {
        types: vec![type_name.to_owned()],
        code: type_name.to_owned(),
        ..FailureReport::new(Arc::from(error.to_string().into_bytes()))
    }
}

/// Dead deliveries are looked up by their subscription; they are no dead letters of the application.
fn stopped(report: FailureReport) -> FailureReport {
    FailureReport { signal: Signal::Stop(Disposition::Discard), ..report }
}

/// `Retry-After`: seconds, or a date.
fn wait(text: &str, now: Moment) -> Option<Span> {
    let date = || {
        let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(date.as_secs_f64() - now.micros() as f64 / 1e6)
    };
    let seconds = text.trim().parse::<u32>().ok().map(f64::from).or_else(date)?;
    Span::try_from(seconds.clamp(0.0, LONGEST_WAIT) * 1_000.0).ok()
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use hyper::StatusCode;

    fn report(status: u16, retry_after: Option<&str>, attempt: u32, own: bool) -> FailureReport {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let answer = Answer { status, retry_after: retry_after.map(str::to_owned), body: String::new() };
        match ending(Ok(answer), Duration::ZERO, attempt, own, Moment::from_micros(0)) {
            Ending::Failed(report) => report,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failures_wait_as_the_table_says_unless_the_subscription_has_a_policy() {
        let delay = |attempt, own| report(503, None, attempt, own).delay.map(Span::secs);
        let delays: Vec<Option<f64>> = (1..=8).map(|attempt| delay(attempt, false)).collect();
        let table = [30.0, 120.0, 600.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0].map(Some);
        assert_eq!(delays[..7], table);
        assert_eq!(delays[7], None, "there is no ninth attempt");
        assert_eq!(delay(1, true), None);
    }

    #[test]
    fn errors_of_the_client_are_final_and_too_many_requests_are_not() {
        for status in [400, 401, 404, 410, 422, 451, 499] {
            assert_eq!(report(status, Some("5"), 1, false).signal, Signal::Stop(Disposition::Discard), "{status}");
        }
        for status in [429, 500, 502, 503, 599, 304] {
            assert_eq!(report(status, None, 1, false).signal, Signal::None, "{status}");
        }
    }

    #[test]
    fn an_endpoint_says_when_to_come_again_with_429_only() {
        let delay = |status, text| report(status, Some(text), 1, false).delay.map(Span::secs);
        assert_eq!(delay(429, "7"), Some(7.0));
        assert_eq!(delay(429, "Thu, 01 Jan 1970 00:01:00 GMT"), Some(60.0));
        assert_eq!(delay(429, "999999"), Some(86_400.0));
        assert_eq!((delay(429, "soon"), delay(503, "7")), (Some(30.0), Some(30.0)));
    }
}
