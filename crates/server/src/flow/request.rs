//! The body of a request that starts a run.

use crate::api_error::ApiError;
use crate::request::Payload;
use redrive_flow::runs::is_name;
use redrive_ojs::json::text;
use redrive_policy::Problem;
use redrive_store::RunId;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A run to be started.
pub(super) struct StartRequest {
    pub(super) definition: String,
    pub(super) version: Option<u64>,
    pub(super) input: Value,
    pub(super) arguments: Value,
    pub(super) id: Option<RunId>,
}

impl StartRequest {
    /// Reads it, and lists everything that is wrong with it.
    pub(super) fn read(payload: &Payload) -> Result<Self, ApiError> {
        let members = payload.members()?;
        let mut problems = Vec::new();
        members.only(&["definition", "version", "input", "arguments", "id"], &mut problems);
        let named = |value: &RawValue| text(value).filter(|name| is_name(name)).map(|name| name.into_owned());
        let allowed = "the name of a definition";
        if !members.has("definition") {
            members.wrong("definition", allowed, &mut problems);
        }
        let definition = members.read("definition", allowed, &mut problems, named).unwrap_or_default();
        let number = |value: &RawValue| value.get().parse::<u64>().ok().filter(|number| *number > 0);
        let version = members.read("version", "a whole number from 1 on", &mut problems, number);
        let object = |value: &RawValue| value_of(value).filter(Value::is_object);
        let arguments = members.read("arguments", "an object", &mut problems, object).unwrap_or_else(|| json!({}));
        let input = members.read("input", "any value", &mut problems, value_of).unwrap_or_default();
        let allowed = "a UUID of version 7 in lower case, which is then the id of the run";
        let id = members.read("id", allowed, &mut problems, |value| text(value)?.parse().ok());
        if problems.is_empty() {
            Ok(Self { definition, version, input, arguments, id })
        } else {
            Err(ApiError::invalid(problems))
        }
    }
}

fn value_of(value: &RawValue) -> Option<Value> {
    serde_json::from_str(value.get()).ok()
}

/// The name of a definition in a path.
pub(super) fn checked_name(name: &str) -> Result<&str, ApiError> {
    if is_name(name) {
        return Ok(name);
    }
    let allowed = "1 to 255 letters, digits, dots, hyphens and underscores";
    Err(ApiError::invalid(vec![Problem::new("/name", format!("{name:?}"), allowed)]))
}
