//! Which policy applies to a job, remembered by its text: jobs of one kind bring the same policy
//! again and again.

use crate::json::{Members, check_nested, member, push_u64};
use redrive_engine::{Effective, Layers, PolicyDocument};
use redrive_policy::dialect::Dialect;
use redrive_policy::{AttemptLimit, Policy, Problem, Problems};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// A policy and where it came from.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) policy: Arc<Policy>,
    /// Where it came from, as JSON; empty for the plain default of the server.
    pub(crate) origin: Vec<u8>,
}

/// The policies met lately.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    /// By the text that was handed in.
    resolved: RwLock<HashMap<String, Arc<Resolved>>>,
    /// Those of workers, by their text.
    workers: RwLock<HashMap<String, Arc<Policy>>>,
    /// What envelopes say of a policy, by where it is in memory, which stays its own while it is here.
    worded: RwLock<HashMap<usize, Worded>>,
}

#[derive(Debug)]
struct Worded {
    _policy: Arc<Policy>,
    members: Box<[u8]>,
}

/// How many are remembered; when there are more, all are forgotten.
const REMEMBERED: usize = 1_000;
/// The longest text that is remembered, in bytes.
const LONGEST: usize = 4_096;

impl Policies {
    /// What applies to a job of this kind in this queue that brings this policy, or none.
    ///
    /// # Errors
    /// Every problem of the policy that the job brings.
    pub(crate) fn resolve(
        &self,
        layers: &Layers,
        own: Option<&RawValue>,
        kind: &str,
        queue: &str,
    ) -> Result<Arc<Resolved>, Problems> {
        let key = key(layers, own, kind, queue);
        if let Some(known) = self.resolved.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let effective = layers.resolve(own.map(written).transpose()?, kind, queue)?;
        let resolved = Arc::new(Resolved::new(&effective));
        if key.len() <= LONGEST {
            remember(&self.resolved, key, Arc::clone(&resolved));
        }
        Ok(resolved)
    }

    /// The policy that a worker brings.
    ///
    /// # Errors
    /// Every problem of it.
    pub(crate) fn of_worker(&self, brought: &RawValue) -> Result<Arc<Policy>, Problems> {
        let text = brought.get();
        if let Some(known) = self.workers.read().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(Arc::clone(known));
        }
        let PolicyDocument { dialect, value } = written(brought)?;
        let policy = Arc::new(dialect.read(&value)?.policy);
        if text.len() <= LONGEST {
            remember(&self.workers, text.to_owned(), Arc::clone(&policy));
        }
        Ok(policy)
    }

    /// Writes what an envelope says of a policy: `max_attempts` and `retry`.
    pub(crate) fn push_members(&self, out: &mut Vec<u8>, policy: &Arc<Policy>) {
        let address = Arc::as_ptr(policy).addr();
        if let Some(known) = self.worded.read().unwrap_or_else(PoisonError::into_inner).get(&address) {
            out.extend_from_slice(&known.members);
            return;
        }
        let members = envelope_members(policy);
        out.extend_from_slice(&members);
        remember(&self.worded, address, Worded { _policy: Arc::clone(policy), members: members.into() });
    }
}

fn remember<K: Eq + Hash, V>(memory: &RwLock<HashMap<K, V>>, key: K, value: V) {
    let mut memory = memory.write().unwrap_or_else(PoisonError::into_inner);
    if memory.len() >= REMEMBERED {
        memory.clear();
    }
    memory.insert(key, value);
}

/// Everything that the answer depends on. Kinds and queues count only where a layer names them, so
/// that jobs of many kinds share one entry. They count beside a job's own policy too: it may leave its
/// timing to them.
fn key(layers: &Layers, own: Option<&RawValue>, kind: &str, queue: &str) -> String {
    let own = own.map_or("", RawValue::get);
    let kind = layers.name_of_kind(kind).unwrap_or_default();
    let named = layers.queues.contains_key(queue) || layers.queue_caps.contains_key(queue);
    let queue = if named { queue } else { "" };
    [own, kind, queue].join("\0")
}

/// A policy as it is handed in: the object of OJS, or `{"dialect": …, "policy": …}`.
fn written(own: &RawValue) -> Result<PolicyDocument, Problems> {
    const DEEPEST: usize = 32;
    let refused = |problem| Problems(vec![problem]);
    check_nested(own, DEEPEST).map_err(|message| refused(Problem::with_message("", message)))?;
    let value: Value =
        serde_json::from_str(own.get()).map_err(|error| refused(Problem::with_message("", error.to_string())))?;
    let Some(name) = value.get("dialect") else { return Ok(PolicyDocument { dialect: Dialect::Ojs, value }) };
    let dialect = name.as_str().and_then(|name| name.parse::<Dialect>().ok()).ok_or_else(|| {
        let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
        refused(Problem::new("/dialect", name, names.join(", ")))
    })?;
    let mut problems = Vec::new();
    let members = Members::parse(own.get()).unwrap_or_default();
    for (key, _) in members.iter().filter(|(key, _)| !matches!(&***key, "dialect" | "policy")) {
        problems
            .push(Problem::with_message(format!("/{key}"), "unknown field; beside a dialect only policy is allowed"));
    }
    match value.get("policy") {
        Some(policy) if problems.is_empty() => Ok(PolicyDocument { dialect, value: policy.clone() }),
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

impl Resolved {
    fn new(effective: &Effective) -> Self {
        let Effective { policy, written, layer, capped_by } = effective;
        let mut origin = Map::new();
        if *layer != "server" {
            origin.insert("layer".to_owned(), (*layer).into());
        }
        if written.dialect != Dialect::Ojs {
            origin.insert("dialect".to_owned(), written.dialect.name().into());
        }
        Self { policy: Arc::clone(policy), origin: origin_text(origin, capped_by) }
    }

    /// A policy that a job has already, under the caps of the queue that it moves to.
    pub(crate) fn moved(layers: &Layers, policy: &Arc<Policy>, origin: &[u8], queue: &str) -> Self {
        let (policy, capped_by) = layers.capped(Arc::clone(policy), queue);
        let origin = serde_json::from_slice(origin).unwrap_or_default();
        Self { policy, origin: origin_text(origin, &capped_by) }
    }
}

/// Where a policy came from, as it is kept: only what is not the default.
fn origin_text(mut origin: Map<String, Value>, capped_by: &[&str]) -> Vec<u8> {
    if !capped_by.is_empty() {
        origin.insert("capped_by".to_owned(), json!(capped_by));
    }
    if origin.is_empty() { Vec::new() } else { Value::Object(origin).to_string().into_bytes() }
}

/// Where a policy came from, in full.
pub(crate) fn origin_of(kept: &[u8]) -> Value {
    let mut origin = json!({ "layer": "server", "dialect": "ojs", "capped_by": [] });
    let noted: Map<String, Value> = serde_json::from_slice(kept).unwrap_or_default();
    for (key, value) in noted {
        origin[key] = value;
    }
    origin
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

/// The number of runs that a policy allows; the largest there is where it sets no limit. 0 is echoed
/// as 0, though it runs once, as 1 does (C21).
pub(crate) fn max_attempts(policy: &Policy) -> u32 {
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

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_same_text_is_resolved_once() {
        let (policies, layers) = (Policies::default(), Layers::ojs_default().unwrap());
        let own = raw(r#"{"max_attempts": 5}"#);
        let first = policies.resolve(&layers, Some(&own), "a.b", "x").unwrap();
        let second = policies.resolve(&layers, Some(&own), "c.d", "y").unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(origin_of(&first.origin), json!({ "layer": "job", "dialect": "ojs", "capped_by": [] }));
        let default = policies.resolve(&layers, None, "a.b", "x").unwrap();
        assert!(default.origin.is_empty());
    }

    #[test]
    fn a_dialect_is_named_beside_its_policy() {
        let (policies, layers) = (Policies::default(), Layers::ojs_default().unwrap());
        let own = raw(r#"{"dialect": "azolla", "policy": {"stop": {"max_attempts": 7}}}"#);
        let resolved = policies.resolve(&layers, Some(&own), "a", "q").unwrap();
        assert_eq!(max_attempts(&resolved.policy), 7);
        for (text, path) in [
            (r#"{"dialect": "perl", "policy": {}}"#, "/dialect"),
            (r#"{"dialect": "azolla"}"#, "/policy"),
            (r#"{"dialect": "azolla", "policy": {}, "max_attempts": 3}"#, "/max_attempts"),
            (r#"{"max_attempts": 3, "max_attempts": 4}"#, ""),
        ] {
            let problems = policies.resolve(&layers, Some(&raw(text)), "a", "q").unwrap_err();
            assert_eq!(problems.0[0].path, path, "{text}");
        }
    }
}
