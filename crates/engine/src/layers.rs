//! Which policy applies to a job: resolved once, when it is enqueued, from the most specific layer
//! to the most general. Operators' caps only ever tighten.

use redrive_policy::dialect::Dialect;
use redrive_policy::{AttemptLimit, Policy, Problems, Span};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// A policy as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyDocument {
    /// The dialect that it is written in.
    pub dialect: Dialect,
    /// The text of it.
    pub value: Value,
}

/// A policy with the text that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    written: PolicyDocument,
    policy: Arc<Policy>,
    /// Whether an operator or producer wrote it, and not merely the specification.
    configured: bool,
}

impl Layer {
    /// Reads an operator's policy, which leaves nothing to workers.
    ///
    /// # Errors
    /// Every problem of the policy.
    pub fn read(written: PolicyDocument) -> Result<Self, Problems> {
        let layer = Self::brought(written)?;
        let policy = match layer.policy.delegated {
            Some(_) => Arc::new(layer.policy.with_limit_of(&layer.policy)),
            None => layer.policy,
        };
        Ok(Self { policy, ..layer })
    }

    /// Reads the policy that a job brings.
    fn brought(written: PolicyDocument) -> Result<Self, Problems> {
        let policy = Arc::new(written.dialect.read(&written.value)?.policy);
        Ok(Self { written, policy, configured: true })
    }
}

/// A limit that an operator puts on every policy of a queue, or of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OperatorCap {
    /// At most so many attempts.
    pub max_attempts: Option<u32>,
    /// At most so long since the job was enqueued.
    pub max_elapsed: Option<Span>,
}

/// The layers of a server.
#[derive(Clone, Debug)]
pub struct Layers {
    /// What applies where nothing else does.
    pub server: Layer,
    /// Policies of queues.
    pub queues: HashMap<String, Layer>,
    /// Policies of kinds of jobs: of one, such as `mail.send`, or of all that begin alike, such as `mail.*`.
    pub kinds: HashMap<String, Layer>,
    /// The operator's cap on everything.
    pub cap: OperatorCap,
    /// The operator's caps on queues.
    pub queue_caps: HashMap<String, OperatorCap>,
}

/// What applies to a job, and where each part of it came from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Effective {
    /// The policy, caps included.
    pub policy: Arc<Policy>,
    /// The policy as it was written, in the layer that counts.
    pub written: PolicyDocument,
    /// `job`, `type`, `queue` or `server`.
    pub layer: &'static str,
    /// Which caps tightened it: `job`, where it left its timing to another layer; `queue`, `server`.
    pub capped_by: Vec<&'static str>,
}

impl Layers {
    /// The defaults of Open Job Spec, and no caps.
    ///
    /// # Errors
    /// Never, as long as the empty OJS policy is valid; a test says so.
    pub fn ojs_default() -> Result<Self, Problems> {
        let server = Layer::read(PolicyDocument { dialect: Dialect::Ojs, value: json!({}) })?;
        let server = Layer { configured: false, ..server };
        let none = OperatorCap::default();
        Ok(Self { server, queues: HashMap::new(), kinds: HashMap::new(), cap: none, queue_caps: HashMap::new() })
    }

    /// What applies to a job of this kind in this queue that brings this policy, or none.
    ///
    /// # Errors
    /// Every problem of the policy that the job brings.
    pub fn resolve(&self, own: Option<PolicyDocument>, kind: &str, queue: &str) -> Result<Effective, Problems> {
        let (layer, name) = self.configured(kind, queue);
        let mut tightened_by = Vec::new();
        let (policy, written, layer) = match own.map(Layer::brought).transpose()? {
            None => (Arc::clone(&layer.policy), layer.written.clone(), name),
            Some(own) if own.policy.delegated.is_some() && layer.configured => {
                let policy = layer.policy.with_limit_of(&own.policy);
                if policy != *layer.policy {
                    tightened_by.push("job");
                }
                (Arc::new(policy), layer.written.clone(), name)
            }
            Some(own) => (own.policy, own.written, "job"),
        };
        let (policy, capped_by) = self.capped(policy, queue);
        tightened_by.extend(capped_by);
        Ok(Effective { policy, written, layer, capped_by: tightened_by })
    }

    /// The name under which a policy for a type of jobs is stored: its own, else that of the longest prefix.
    #[must_use]
    pub fn name_of_kind(&self, kind: &str) -> Option<&str> {
        if self.kinds.is_empty() {
            return None;
        }
        let named = |name: &str| self.kinds.get_key_value(name).map(|(name, _)| name.as_str());
        let mut prefixes = kind.rmatch_indices('.').map(|(dot, _)| format!("{}.*", &kind[..dot]));
        named(kind).or_else(|| prefixes.find_map(|prefix| named(&prefix)))
    }

    /// The most specific layer that an operator wrote for such a job, else what the specification says.
    fn configured(&self, kind: &str, queue: &str) -> (&Layer, &'static str) {
        match (self.name_of_kind(kind).and_then(|name| self.kinds.get(name)), self.queues.get(queue)) {
            (Some(layer), _) => (layer, "type"),
            (None, Some(layer)) => (layer, "queue"),
            (None, None) => (&self.server, "server"),
        }
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

    fn ojs(value: Value) -> PolicyDocument {
        PolicyDocument { dialect: Dialect::Ojs, value }
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
    fn a_policy_for_all_types_that_begin_alike_applies_to_them_and_the_longest_prefix_counts() {
        let mut layers = layers();
        for (name, attempts) in [("mail.*", 11), ("mail.bulk.*", 12)] {
            layers.kinds.insert(name.into(), Layer::read(ojs(json!({"max_attempts": attempts}))).expect("valid"));
        }
        for (kind, layer, attempts) in [
            ("mail.send", "type", 9),
            ("mail.receive", "type", 11),
            ("mail.send.now", "type", 11),
            ("mail.bulk.eu.north", "type", 12),
            ("mail.bulk", "type", 11),
            ("mail", "queue", 7),
            ("mailing.send", "queue", 7),
        ] {
            let effective = layers.resolve(None, kind, "slow").expect("valid");
            assert_eq!((effective.layer, effective.policy.attempts), (layer, AttemptLimit::AtMost(attempts)), "{kind}");
        }
    }

    #[test]
    fn taskharbor_a_job_that_leaves_its_timing_takes_what_an_operator_wrote() {
        let harbor = |value| Some(PolicyDocument { dialect: Dialect::TaskHarbor, value });
        let mut layers = layers();
        let resolve = |layers: &Layers, value, kind: &str, queue: &str| {
            let effective = layers.resolve(harbor(value), kind, queue).expect("valid");
            let delegated = effective.policy.delegated.is_some();
            (effective.layer, effective.policy.attempts, delegated, effective.capped_by)
        };
        let five = || json!({"job": {"max_attempts": 5}});
        let limit = AttemptLimit::AtMost;
        assert_eq!(
            resolve(&layers, five(), "a", "default"),
            ("job", limit(5), true, vec![]),
            "OJS section 8 is nobody's policy"
        );
        assert_eq!(resolve(&layers, five(), "a", "slow"), ("queue", limit(5), false, vec!["job"]));
        assert_eq!(resolve(&layers, five(), "mail.send", "slow"), ("type", limit(5), false, vec!["job"]));
        assert_eq!(resolve(&layers, json!({}), "a", "slow"), ("queue", limit(7), false, vec![]));
        assert_eq!(resolve(&layers, json!({"policy": {}}), "a", "slow"), ("job", limit(25), false, vec![]));
        layers.server = Layer::read(ojs(json!({}))).expect("valid");
        assert_eq!(resolve(&layers, five(), "a", "default"), ("server", limit(3), false, vec![]));
        layers.server = Layer::read(PolicyDocument { dialect: Dialect::TaskHarbor, value: json!({}) }).expect("valid");
        let plain = layers.resolve(None, "a", "default").expect("valid");
        assert_eq!((plain.policy.delegated, plain.policy.attempts), (None, limit(25)), "operators leave nothing open");
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
