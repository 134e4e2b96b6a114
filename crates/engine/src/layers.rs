//! Which policy applies to a job: resolved once, when it is handed in, from the most specific layer
//! to the most general. Operators' caps only ever tighten.

use redrive_policy::dialect::Dialect;
use redrive_policy::{AttemptLimit, Policy, Problems, Span};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// A policy as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The dialect that it is written in.
    pub dialect: Dialect,
    /// The text of it.
    pub value: Value,
}

/// A policy with the text that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    written: Written,
    policy: Arc<Policy>,
}

impl Layer {
    /// Reads a policy.
    ///
    /// # Errors
    /// Every problem of the policy.
    pub fn read(written: Written) -> Result<Self, Problems> {
        let policy = Arc::new(written.dialect.read(&written.value)?.policy);
        Ok(Self { written, policy })
    }
}

/// A limit that an operator puts on every policy of a queue, or of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OperatorCap {
    /// At most so many attempts.
    pub max_attempts: Option<u32>,
    /// At most so long since the job was handed in.
    pub max_elapsed: Option<Span>,
}

/// The layers of a server.
#[derive(Clone, Debug)]
pub struct Layers {
    /// What applies where nothing else does.
    pub server: Layer,
    /// Policies of queues.
    pub queues: HashMap<String, Layer>,
    /// Policies of kinds of jobs.
    pub kinds: HashMap<String, Layer>,
    /// The operator's cap on everything.
    pub cap: OperatorCap,
    /// The operator's caps on queues.
    pub queue_caps: HashMap<String, OperatorCap>,
}

/// What applies to a job, and where each part of it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The policy, caps included.
    pub policy: Arc<Policy>,
    /// The policy as it was written, in the layer that counts.
    pub written: Written,
    /// `job`, `type`, `queue` or `server`.
    pub layer: &'static str,
    /// Which caps tightened it: `queue`, `server`.
    pub capped_by: Vec<&'static str>,
}

impl Layers {
    /// The defaults of Open Job Spec, section 8, and no caps.
    ///
    /// # Errors
    /// Never, as long as the empty OJS policy is valid; a test says so.
    pub fn ojs_default() -> Result<Self, Problems> {
        let server = Layer::read(Written { dialect: Dialect::Ojs, value: json!({}) })?;
        let none = OperatorCap::default();
        Ok(Self { server, queues: HashMap::new(), kinds: HashMap::new(), cap: none, queue_caps: HashMap::new() })
    }

    /// What applies to a job of this kind in this queue that brings this policy, or none.
    ///
    /// # Errors
    /// Every problem of the policy that the job brings.
    pub fn resolve(&self, own: Option<Written>, kind: &str, queue: &str) -> Result<Effective, Problems> {
        let (layer, name) = match own {
            Some(written) => (Layer::read(written)?, "job"),
            None => match (self.kinds.get(kind), self.queues.get(queue)) {
                (Some(layer), _) => (layer.clone(), "type"),
                (None, Some(layer)) => (layer.clone(), "queue"),
                (None, None) => (self.server.clone(), "server"),
            },
        };
        let (policy, capped_by) = self.capped(layer.policy, queue);
        Ok(Effective { policy, written: layer.written, layer: name, capped_by })
    }

    /// A policy under the caps of a queue and of the server, and which of them tightened it.
    #[must_use]
    pub fn capped(&self, mut policy: Arc<Policy>, queue: &str) -> (Arc<Policy>, Vec<&'static str>) {
        let mut capped_by = Vec::new();
        for (cap, by) in [(self.queue_caps.get(queue).copied(), "queue"), (Some(self.cap), "server")] {
            let tightened = cap.map(|cap| tightened(&policy, cap)).filter(|tightened| *tightened != *policy);
            if let Some(tightened) = tightened {
                policy = Arc::new(tightened);
                capped_by.push(by);
            }
        }
        (policy, capped_by)
    }
}

fn tightened(policy: &Policy, cap: OperatorCap) -> Policy {
    let attempts = cap.max_attempts.map_or(AttemptLimit::Unlimited, AttemptLimit::AtMost);
    policy.clone().tightened(attempts, cap.max_elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ojs(value: Value) -> Written {
        Written { dialect: Dialect::Ojs, value }
    }

    fn layers() -> Layers {
        let mut layers = Layers::ojs_default().expect("the defaults are valid");
        layers.queues.insert("slow".into(), Layer::read(ojs(json!({"max_attempts": 7}))).expect("valid"));
        layers.kinds.insert("mail.send".into(), Layer::read(ojs(json!({"max_attempts": 9}))).expect("valid"));
        layers
    }

    #[test]
    fn ret_09_the_most_specific_layer_counts() {
        let layers = layers();
        let resolve = |own, kind: &str, queue: &str| {
            let effective = layers.resolve(own, kind, queue).expect("valid");
            (effective.layer, effective.policy.attempts)
        };
        assert_eq!(resolve(None, "a", "default"), ("server", AttemptLimit::AtMost(3)));
        assert_eq!(resolve(None, "a", "slow"), ("queue", AttemptLimit::AtMost(7)));
        assert_eq!(resolve(None, "mail.send", "slow"), ("type", AttemptLimit::AtMost(9)));
        assert_eq!(
            resolve(Some(ojs(json!({"max_attempts": 2}))), "mail.send", "slow"),
            ("job", AttemptLimit::AtMost(2))
        );
    }

    #[test]
    fn caps_only_tighten_and_are_named() {
        let mut layers = layers();
        layers.cap = OperatorCap { max_attempts: Some(5), max_elapsed: None };
        layers.queue_caps.insert("slow".into(), OperatorCap { max_attempts: Some(6), max_elapsed: None });
        let effective = layers.resolve(None, "a", "slow").expect("valid");
        assert_eq!(effective.policy.attempts, AttemptLimit::AtMost(5));
        assert_eq!(effective.capped_by, ["queue", "server"]);
        let effective = layers.resolve(None, "a", "default").expect("valid");
        assert_eq!(effective.policy.attempts, AttemptLimit::AtMost(3), "a cap above the limit changes nothing");
        assert!(effective.capped_by.is_empty());
    }
}
