//! What the answer of a service means for a call.

use super::calls::Body;
use hyper::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use redrive_flow::{Failure, Outcome};
use serde_json::{Value, json};

/// How much of the body of a failure is kept in its details, in characters.
const SHOWN: usize = 2_000;

/// A failure without an answer.
pub(super) fn failed(code: &str, message: impl Into<String>, retryable: Option<bool>) -> Outcome {
    Failure { retryable, ..Failure::error(code, message) }.into()
}

/// The Result that an answer is: a success where its status is one.
pub(super) fn outcome(status: u16, header: impl Fn(&str) -> Option<String>, body: Body) -> Outcome {
    let body = match body {
        Body::Whole(body) => body,
        Body::TooLarge(most) => {
            let message = format!("the answer {status} has more than {most} bytes");
            return failed("Redrive.Http.AnswerTooLarge", message, Some(false));
        }
        Body::CutShort(why) => {
            let message = format!("the answer {status} was cut short: {why}");
            return failed("Redrive.Http.NoAnswer", message, Some(true));
        }
    };
    let is_json = header(CONTENT_TYPE.as_str()).is_some_and(|media| media.contains("json"));
    let text = || Value::from(String::from_utf8_lossy(&body).into_owned());
    let value = match &body {
        empty if empty.is_empty() => Value::Null,
        // What is announced as JSON and is none is a text.
        json if is_json => serde_json::from_slice(json).unwrap_or_else(|_| text()),
        _ => text(),
    };
    if (200..300).contains(&status) {
        return Outcome::Success(json!({ "status": status, "body": value }));
    }
    let (group, retryable) = match status {
        300..=399 => ("Redirect", false),
        408 | 429 => ("Client", true),
        400..=499 => ("Client", false),
        _ => ("Server", true),
    };
    let mut details = json!({ "status": status, "body": shortened(value) });
    let retry_after = header(RETRY_AFTER.as_str()).and_then(|text| text.trim().parse::<u32>().ok());
    if let Some(seconds) = retry_after {
        details["retryAfter"] = format!("PT{seconds}S").into();
    }
    if let Some(location) = header(LOCATION.as_str()).filter(|_| group == "Redirect") {
        details["location"] = location.into();
    }
    let code = format!("Redrive.Http.{group}.{status}");
    let failure = Failure::error(&code, format!("the service answered {status}")).with_details(details);
    Failure { retryable: Some(retryable), ..failure }.into()
}

fn shortened(value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= SHOWN { value } else { text.chars().take(SHOWN).collect::<String>().into() }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn answered(status: u16, headers: &[(&str, &str)], body: &str) -> Outcome {
        let header =
            |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        outcome(status, header, Body::Whole(body.as_bytes().to_vec()))
    }

    #[test]
    fn a_success_has_the_status_and_the_body() {
        let json = [("content-type", "application/json; charset=utf-8")];
        assert_eq!(answered(201, &json, "{\"a\":1}"), Outcome::Success(json!({ "status": 201, "body": { "a": 1 } })));
        assert_eq!(answered(200, &json, "{"), Outcome::Success(json!({ "status": 200, "body": "{" })));
        assert_eq!(answered(200, &[], "plain"), Outcome::Success(json!({ "status": 200, "body": "plain" })));
        assert_eq!(answered(204, &json, ""), Outcome::Success(json!({ "status": 204, "body": null })));
    }

    #[test]
    fn other_answers_are_failures_by_their_status() {
        for (status, code, retryable) in [
            (302, "Redrive.Http.Redirect.302", false),
            (404, "Redrive.Http.Client.404", false),
            (408, "Redrive.Http.Client.408", true),
            (429, "Redrive.Http.Client.429", true),
            (503, "Redrive.Http.Server.503", true),
        ] {
            let headers = [("retry-after", "7"), ("location", "http://10.0.0.1/")];
            let Outcome::Failure(failure) = answered(status, &headers, &"x".repeat(5_000)) else { panic!("{status}") };
            assert_eq!((failure.code.as_str(), failure.retryable), (code, Some(retryable)));
            let details = failure.details.unwrap_or_default();
            assert_eq!(details["retryAfter"], "PT7S");
            assert_eq!(details["body"].as_str().map(str::len), Some(SHOWN));
            assert_eq!(details.get("location").is_some(), status == 302);
        }
    }
}
