//! A failure that a policy retries, used if the caller names none.

use redrive_policy::{Pattern, Policy};

/// The fields of such a failure.
pub(super) struct Example {
    pub(super) type_name: String,
    /// Empty if the policy does not match codes.
    pub(super) code: String,
    pub(super) retryable: Option<bool>,
}

impl Example {
    /// One that the first rule of the policy handles.
    pub(super) fn of(policy: &Policy) -> Self {
        let matcher = &policy.rules[0].matcher;
        let first = |list: &Option<Vec<Pattern>>| list.iter().flatten().next().map(matching);
        Self {
            type_name: first(&matcher.include_types).unwrap_or_else(|| "error".to_owned()),
            code: first(&matcher.codes).unwrap_or_default(),
            retryable: matcher.retryable,
        }
    }
}

/// A text that a pattern matches.
fn matching(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Any => "error".to_owned(),
        Pattern::Exact(text) => text.to_string(),
        Pattern::Prefix(prefix) => format!("{prefix}error"),
    }
}
