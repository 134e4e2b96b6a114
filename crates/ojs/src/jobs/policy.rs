//! The retry policy of a job: as a caller writes it, where it came from, and what an envelope says of it.

use crate::json::{Members, check_nested, member, push_str, push_u64};
use redrive_policy::dialect::Dialect;
use redrive_policy::{AttemptLimit, Policy, Problem, Problems};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Reads a policy as a job or a worker brings it: the object of OJS, or `{"dialect": …, "policy": …}`. Answers the
/// dialect and the document in it.
///
/// # Errors
/// Every problem of the text; those of the policy itself are for the dialect to find.
pub fn policy_document(text: &str) -> Result<(Dialect, Value), Problems> {
    const DEEPEST: usize = 32;
    let refused = |problem| Problems(vec![problem]);
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| refused(Problem::with_message("", error.to_string())))?;
    check_nested(raw, DEEPEST).map_err(|message| refused(Problem::with_message("", message)))?;
    let value: Value =
        serde_json::from_str(text).map_err(|error| refused(Problem::with_message("", error.to_string())))?;
    let Some(name) = value.get("dialect") else { return Ok((Dialect::Ojs, value)) };
    let dialect = name.as_str().and_then(|name| name.parse::<Dialect>().ok()).ok_or_else(|| {
        let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
        refused(Problem::new("/dialect", name, names.join(", ")))
    })?;
    let mut problems = Vec::new();
    let members = Members::parse(text).unwrap_or_default();
    for (key, _) in members.iter().filter(|(key, _)| !matches!(&***key, "dialect" | "policy")) {
        problems
            .push(Problem::with_message(format!("/{key}"), "unknown field; beside a dialect only policy is allowed"));
    }
    match value.get("policy") {
        Some(policy) if problems.is_empty() => Ok((dialect, policy.clone())),
        Some(_) => Err(Problems(problems)),
        None => {
            problems.push(Problem::with_message(
                "/policy",
                format!("missing; a policy in the dialect {dialect} is required"),
            ));
            Err(Problems(problems))
        }
    }
}

/// The policy that the worker brought with a failure, if it brought one, from the error that is stored of it.
pub(crate) fn brought_policy(error: &[u8]) -> Option<Policy> {
    let error = std::str::from_utf8(error).ok()?;
    let (dialect, value) = policy_document(Members::parse(error).ok()?.get("retry")?.get()).ok()?;
    Some(dialect.read(&value).ok()?.policy)
}

/// Where the policy of a job came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyOrigin {
    /// `job`, `type`, `queue` or `server`.
    pub layer: Cow<'static, str>,
    /// The dialect that it was written in.
    pub dialect: Cow<'static, str>,
    /// Which caps tightened it.
    pub capped_by: Vec<Cow<'static, str>>,
}

impl Default for PolicyOrigin {
    fn default() -> Self {
        Self { layer: "server".into(), dialect: Dialect::Ojs.name().into(), capped_by: Vec::new() }
    }
}

impl PolicyOrigin {
    /// A policy of this layer, written in this dialect, that these caps tightened.
    #[must_use]
    pub fn new(layer: &'static str, dialect: Dialect, capped_by: &[&'static str]) -> PolicyOrigin {
        let capped_by = capped_by.iter().map(|cap| (*cap).into()).collect();
        PolicyOrigin { layer: layer.into(), dialect: dialect.name().into(), capped_by }
    }

    /// Reads an origin from a stored body; what it leaves out is the default.
    #[must_use]
    pub fn read(body: &[u8]) -> PolicyOrigin {
        serde_json::from_slice(super::body::split(body).origin).unwrap_or_default()
    }

    /// Writes what is not the default as an object; nothing where all of it is.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        let default = Self::default();
        out.push(b'{');
        for (key, value, usual) in [("layer", &self.layer, default.layer), ("dialect", &self.dialect, default.dialect)]
        {
            if *value != usual {
                member(out, key);
                push_str(out, value);
            }
        }
        if !self.capped_by.is_empty() {
            member(out, "capped_by");
            for (index, cap) in self.capped_by.iter().enumerate() {
                out.push(if index == 0 { b'[' } else { b',' });
                push_str(out, cap);
            }
            out.push(b']');
        }
        out.push(b'}');
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What envelopes say of policies, cached by where the policy is in memory, which stays its own while it is here.
#[derive(Debug, Default)]
pub(crate) struct PolicyMembers {
    cached: RwLock<HashMap<usize, Cached>>,
}

#[derive(Debug)]
struct Cached {
    _policy: Arc<Policy>,
    members: Box<[u8]>,
}

/// How many policies are cached; when there are more, all are dropped.
const MOST_CACHED: usize = 1_000;

impl PolicyMembers {
    /// Writes what an envelope says of a policy: `max_attempts` and `retry`.
    pub(crate) fn push(&self, out: &mut Vec<u8>, policy: &Arc<Policy>) {
        let address = Arc::as_ptr(policy).addr();
        if let Some(known) = self.cached.read().unwrap_or_else(PoisonError::into_inner).get(&address) {
            out.extend_from_slice(&known.members);
            return;
        }
        let members = envelope_members(policy);
        out.extend_from_slice(&members);
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= MOST_CACHED {
            cached.clear();
        }
        cached.insert(address, Cached { _policy: Arc::clone(policy), members: members.into() });
    }
}

/// `max_attempts` and `retry`: the merged policy, as far as OJS can say it.
fn envelope_members(policy: &Policy) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b",\"max_attempts\":");
    push_u64(&mut out, max_attempts(policy).into());
    member(&mut out, "retry");
    out.extend_from_slice(Dialect::Ojs.write(policy).value.to_string().as_bytes());
    out
}

/// The number of runs that a policy allows; the largest there is where it sets no limit. 0 is answered as 0, as the
/// conformance cases ask, though such a job runs once.
#[must_use]
pub fn max_attempts(policy: &Policy) -> u32 {
    match policy.attempts {
        AttemptLimit::AtMost(0) => 0,
        _ => {
            let retries = policy.rules.first().and_then(|rule| policy.max_retries(rule));
            retries.map_or(u32::MAX, |retries| retries.saturating_add(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_named_beside_its_policy() {
        let (dialect, policy) =
            policy_document(r#"{"dialect": "azolla", "policy": {"stop": {"max_attempts": 7}}}"#).unwrap();
        assert_eq!(max_attempts(&dialect.read(&policy).unwrap().policy), 7);
        for (text, path) in [
            (r#"{"dialect": "perl", "policy": {}}"#, "/dialect"),
            (r#"{"dialect": "azolla"}"#, "/policy"),
            (r#"{"dialect": "azolla", "policy": {}, "max_attempts": 3}"#, "/max_attempts"),
            (r#"{"max_attempts": 3, "max_attempts": 4}"#, ""),
        ] {
            let problems = policy_document(text).unwrap_err();
            assert_eq!(problems.0[0].path, path, "{text}");
        }
    }
}
