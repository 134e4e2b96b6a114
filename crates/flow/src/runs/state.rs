//! What is stored of a flow that runs: one JSON object.

use super::events::Events;
use super::retries::Retries;
use crate::json::MAX_DEPTH;
use crate::result::depth;
use crate::{State, StateError};
use redrive_engine::Child;
use redrive_policy::Moment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A run of a flow. It has a definition of its own, so that it goes on with the one that it was started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowState {
    /// The name of the definition.
    pub definition: String,
    /// Its version.
    pub version: u64,
    /// Its text, until the run has ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The input of the run.
    pub input: Value,
    /// Its arguments: an object.
    pub arguments: Value,
    /// The time in the ids of its jobs, in microseconds. It stays as it is when the wall clock is set.
    #[serde(default)]
    pub(crate) begun_us: i64,
    /// The machine, from the first step until the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<State>,
    /// Whether it was cancelled from outside.
    #[serde(default)]
    pub cancelled: bool,
    /// What has happened lately.
    #[serde(default)]
    pub(crate) events: Events,
    /// The Retry entries that were entered lately.
    #[serde(default)]
    pub(crate) retries: Retries,
}

impl FlowState {
    /// A run that has not started.
    ///
    /// # Errors
    /// The input or the arguments are nested too deeply.
    pub fn new(definition: &str, version: u64, text: &str, input: Value, arguments: Value) -> Result<Self, StateError> {
        if [&input, &arguments].iter().any(|value| depth(value) > MAX_DEPTH) {
            return Err(StateError::TooDeep);
        }
        Ok(Self {
            definition: definition.to_owned(),
            version,
            text: compact(text),
            input,
            arguments,
            begun_us: 0,
            machine: None,
            cancelled: false,
            events: Events::default(),
            retries: Retries::default(),
        })
    }

    /// The job of a call.
    pub(crate) const fn child(&self, call: u64) -> Child {
        Child { number: call, at: Moment::from_micros(self.begun_us) }
    }

    /// Whether the run was started with this. Where no version is named, any fits.
    #[must_use]
    pub fn was_started_with(&self, definition: &str, version: Option<u64>, input: &Value, arguments: &Value) -> bool {
        let fits = version.is_none_or(|version| version == self.version);
        fits && self.definition == definition && self.input == *input && self.arguments == *arguments
    }

    /// Reads what is stored.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the state of the flow is damaged: {error}"))
    }

    /// What is stored.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        // Writing into memory cannot fail, and every key is a text.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// A JSON text without white space between its tokens. Every number and every string stays as it is written.
fn compact(text: &str) -> String {
    let (mut out, mut in_string, mut escaped) = (String::with_capacity(text.len()), false, false);
    for letter in text.chars() {
        if !in_string && letter.is_ascii_whitespace() {
            continue;
        }
        in_string ^= letter == '"' && !escaped;
        escaped = in_string && letter == '\\' && !escaped;
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::compact;

    #[test]
    fn white_space_is_left_out_but_for_that_in_strings() {
        let text = "{ \"a b\" : \"c \\\" d\",\n\t\"e\\\\\" : [ 1.50 , \"  \" ] }";
        assert_eq!(compact(text), r#"{"a b":"c \" d","e\\":[1.50,"  "]}"#);
    }
}
