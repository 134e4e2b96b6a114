//! Results: a success with its value, or a failure with its envelope.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many failures a chain has at most.
pub(crate) const MAX_CHAIN: usize = 16;
/// How deep the details of a failure may be nested.
const MAX_DETAILS: usize = 72;

/// What a call, a frame or a whole flow ends with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeded.
    Success(Value),
    /// It did not.
    Failure(Failure),
}

/// The envelope of a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// `error`, `timeout`, `cancellation`, `skipped`, or a type of the author's; never `success`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What went wrong, such as `System.Cancelled`.
    pub code: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// For programs. A null that was written is kept.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub details: Option<Box<Value>>,
    /// What the failure says about retrying, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The failure that this one superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Box<Failure>>,
}

fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Box<Value>>, D::Error> {
    Value::deserialize(from).map(|value| Some(Box::new(value)))
}

impl Outcome {
    /// As MWL writes it: an object with its `type`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Success(value) => {
                let members = [("type".to_owned(), "success".into()), ("value".to_owned(), value.clone())];
                Value::Object(Map::from_iter(members))
            }
            Self::Failure(failure) => failure.to_value(),
        }
    }

    /// Whether it is a success.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Success(_))
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Failure {
    /// A failure with a type and a code.
    #[must_use]
    pub fn new(kind: &str, code: &str) -> Self {
        let (kind, code) = (kind.to_owned(), code.to_owned());
        Self { kind, code, message: None, details: None, retryable: None, previous: None }
    }

    /// One of type `error`, with a message.
    #[must_use]
    pub fn error(code: &str, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::new("error", code) }
    }

    /// The same with details.
    #[must_use]
    pub fn with_details(self, details: Value) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    /// As MWL writes it. What is absent is absent there too.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut members = Map::new();
        members.insert("type".to_owned(), self.kind.clone().into());
        members.insert("code".to_owned(), self.code.clone().into());
        members.extend(self.message.clone().map(|message| ("message".to_owned(), message.into())));
        members.extend(self.details.as_ref().map(|details| ("details".to_owned(), Value::clone(details))));
        members.extend(self.retryable.map(|flag| ("retryable".to_owned(), flag.into())));
        members.extend(self.previous.as_ref().map(|previous| ("previous".to_owned(), previous.to_value())));
        Value::Object(members)
    }

    /// Reads an envelope, as authors write it in `previous` and in the arguments of the mock provider.
    pub(crate) fn from_value(value: &Value, path: &str) -> Result<Self, (String, &'static str)> {
        Self::read(value, path, MAX_CHAIN)
    }

    fn read(value: &Value, path: &str, left: usize) -> Result<Self, (String, &'static str)> {
        let at = |member: &str| format!("{path}/{member}");
        let Value::Object(members) = value else { return Err((path.to_owned(), "a failure is an object")) };
        let known = ["type", "code", "message", "details", "retryable", "previous"];
        if let Some(other) = members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err((at(other), "a failure has type, code, message, details, retryable and previous"));
        }
        let text = |member: &str, required: bool| match members.get(member) {
            Some(Value::String(text)) => Ok(Some(text.clone())),
            None if !required => Ok(None),
            _ => Err((at(member), "a string is expected")),
        };
        let kind = text("type", false)?.unwrap_or_else(|| "error".to_owned());
        if kind == "success" {
            return Err((at("type"), "a failure has a type other than success"));
        }
        let retryable = match members.get("retryable") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(flag)) => Some(*flag),
            Some(_) => return Err((at("retryable"), "true, false or null is expected")),
        };
        let previous = match members.get("previous") {
            None | Some(Value::Null) => None,
            Some(_) if left == 0 => Some(Box::new(truncated())),
            Some(previous) => Some(Box::new(Self::read(previous, &at("previous"), left - 1)?)),
        };
        let code = text("code", true)?.unwrap_or_default();
        Ok(Self {
            kind,
            code,
            message: text("message", false)?,
            details: members.get("details").cloned().map(Box::new),
            retryable,
            previous,
        })
    }

    /// This failure in place of another one, which is linked at the end of its chain.
    #[must_use]
    pub(crate) fn superseding(mut self, superseded: Self) -> Self {
        let mut last = &mut self;
        while last.previous.is_some() {
            last = match &mut last.previous {
                Some(previous) => previous,
                None => return self,
            };
        }
        last.previous = Some(Box::new(superseded));
        self.bounded()
    }

    /// The same with a chain that is not longer, and details that are not deeper, than can be stored.
    #[must_use]
    pub(crate) fn bounded(mut self) -> Self {
        let mut failure = &mut self;
        for length in 1..=MAX_CHAIN {
            if failure.details.as_ref().is_some_and(|details| depth(details) > MAX_DETAILS) {
                let note = "the details were nested too deeply to be kept";
                failure.details = Some(Box::new(Value::String(note.to_owned())));
            }
            if length == MAX_CHAIN && failure.previous.is_some() {
                failure.previous = Some(Box::new(truncated()));
            }
            failure = match &mut failure.previous {
                Some(previous) => previous,
                None => break,
            };
        }
        self
    }
}

fn truncated() -> Failure {
    Failure::error("System.FailureChainTruncated", format!("a chain has at most {MAX_CHAIN} failures"))
}

/// How deep arrays and objects are nested. What is made from documents is never deeper than they are.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
