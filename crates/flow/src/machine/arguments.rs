//! What the providers that MWL defines take in their `with`.

use super::scope::{brief, invalid};
use crate::cel::time::parse_iso;
use crate::result::{Failure, Outcome};
use redrive_policy::dialect::{Dialect, signed_iso_duration};
use redrive_policy::{Policy, Problems, Span};
use serde_json::{Map, Value, json};

/// The arguments of the mock provider: what it answers, after which time, and its metadata.
pub(super) fn mock(with: &Value, input: &Value) -> Result<(Outcome, Span, Value), Failure> {
    let members = only(with, &["value", "failure", "delay", "metadata"])?;
    let answer = match members.get("failure") {
        None | Some(Value::Null) => Outcome::Success(members.get("value").unwrap_or(input).clone()),
        Some(failure) => {
            let read = Failure::from_value(failure, "/failure");
            Outcome::Failure(read.map_err(|(path, why)| invalid(&path, why, failure))?.bounded())
        }
    };
    let delay = members.get("delay").map(|delay| span("/delay", delay)).transpose()?.unwrap_or(Span::ZERO);
    let metadata = match members.get("metadata") {
        None => json!({}),
        Some(metadata @ Value::Object(_)) => metadata.clone(),
        Some(other) => return Err(invalid("/metadata", "an object is expected", other)),
    };
    Ok((answer, delay, metadata))
}

/// The policies of a Retry, checked by the reader of the MWL dialect.
pub(super) fn policies(with: &Value) -> Result<Policy, Failure> {
    let reading = Dialect::Mwl.read(with).map_err(|Problems(problems)| {
        let listed: Vec<Value> = problems
            .iter()
            .map(|problem| {
                let found = with.pointer(&problem.path).cloned().unwrap_or(Value::Null);
                json!({ "path": problem.path, "schema": problem.path, "message": problem.message, "value": found })
            })
            .collect();
        let message = problems.first().map_or_else(String::new, |first| format!("{}: {}", first.path, first.message));
        Failure::error("System.ParameterValidationFailed", message)
            .with_details(json!({ "problems": listed }))
            .bounded()
    })?;
    Ok(reading.policy)
}

/// The delay that a failure asks a Retry for; null is none.
pub(super) fn delay(with: &Value) -> Result<Option<Span>, Failure> {
    match only(with, &["delay"])?.get("delay") {
        None | Some(Value::Null) => Ok(None),
        Some(delay) => span("/delay", delay).map(Some),
    }
}

/// The bound of a Timeout.
pub(super) fn duration(with: &Value) -> Result<Span, Failure> {
    match only(with, &["duration"])?.get("duration") {
        Some(duration) => span("/duration", duration),
        None => Err(invalid("/duration", "a duration is required", &Value::Null)),
    }
}

/// The `with` of a phase that takes nothing.
pub(super) fn nothing(with: &Value) -> Result<(), Failure> {
    only(with, &[]).map(|_| ())
}

pub(super) fn only<'w>(with: &'w Value, allowed: &[&str]) -> Result<&'w Map<String, Value>, Failure> {
    let Value::Object(members) = with else {
        return Err(invalid("", format!("arguments are an object, not {}", brief(with)), with));
    };
    match members.iter().find(|(name, _)| !allowed.contains(&name.as_str())) {
        None => Ok(members),
        Some((name, value)) => {
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            Err(invalid(&format!("/{name}"), format!("there is no such argument; allowed: {allowed}"), value))
        }
    }
}

/// An ISO 8601 duration. What is negative is over already.
fn span(path: &str, value: &Value) -> Result<Span, Failure> {
    let text = value.as_str().filter(|text| parse_iso(text).is_some());
    match text.and_then(signed_iso_duration) {
        Some(parsed) => Ok(parsed.span),
        None => Err(invalid(path, format!("an ISO 8601 duration is expected, not {}", brief(value)), value)),
    }
}
