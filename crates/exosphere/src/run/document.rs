//! The jobs of a run, as they are enqueued.

use crate::name::queue_of;
use redrive_engine::{Engine, JobPolicy, Submission};
use redrive_ojs::{Limits, PolicyOrigin, body, policy_text};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Start};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The type of the jobs that are states.
pub const STATE: &str = "exosphere.state";
/// How long a lease lasts where there is none: no worker is ever late.
const NO_LEASE: Span = Span::from_secs(100 * 365 * 86_400);

/// After how long a state is taken from a runtime that has not reported it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leases {
    /// Where the namespace of the graph has no lease of its own; absent, never.
    pub server: Option<Span>,
    /// By namespace.
    pub namespaces: BTreeMap<String, Span>,
}

impl Leases {
    fn of(&self, namespace: &str) -> Option<Span> {
        self.namespaces.get(namespace).copied().or(self.server)
    }
}

/// A state to be enqueued.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    /// The namespace of the graph.
    pub(super) owner: String,
    /// The namespace of the node.
    pub(super) namespace: String,
    pub(super) node: String,
    pub(super) identifier: String,
    pub(super) graph: String,
    pub(super) run: String,
    pub(super) inputs: Map<String, Value>,
    pub(super) retry: Map<String, Value>,
    /// From when on it may run, in microseconds of the wall clock.
    pub(super) from_us: Option<i64>,
}

impl Document {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the document of a state is damaged: {error}"))
    }

    pub(super) fn write(&self) -> Vec<u8> {
        // Writing into memory cannot fail, and every key is a text.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn submission(self, engine: &Engine, limits: &Limits, leases: &Leases) -> Result<Submission, String> {
        let queue = queue_of(&self.namespace, &self.node);
        let args = json!([self.inputs]).to_string();
        if args.len() > limits.args_bytes {
            let (found, most) = (args.len(), limits.args_bytes);
            return Err(format!("the inputs have {found} bytes; at most {most} are allowed (limits.args_bytes)"));
        }
        let policy = json!({ "dialect": "exosphere", "policy": self.retry }).to_string();
        let effective = engine.effective(Some(policy_text(&policy)), STATE, &queue);
        let effective = effective.map_err(|problems| problems.to_string())?;
        let meta = json!({
            "namespace": self.namespace, "graph": self.graph, "run_id": self.run,
            "node": self.node, "identifier": self.identifier,
        });
        let mut text = body::begin(&PolicyOrigin::from(&*effective), &args, Some(&meta.to_string()), None, 1);
        text.push(b'}');
        let lease = Some(leases.of(&self.owner).unwrap_or(NO_LEASE));
        Ok(Submission {
            start: self.from_us.map_or(Start::Available, |from| Start::Scheduled(Moment::from_micros(from))),
            lease,
            timeout: lease,
            policy: JobPolicy::Effective(effective),
            ..Submission::new(STATE, queue, Blob::from(text))
        })
    }
}
