//! What the operators of a simulated server have set, and what follows for a job.

use super::common::Seeded;
use super::expectation::Expectation;
use super::plans::Plan;
use redrive_engine::{Layer, Layers, OperatorCap, Settings};
use redrive_policy::Span;
use redrive_store::Retention;
use std::collections::HashMap;

/// The queues of a simulation.
pub(crate) const QUEUES: [&str; 3] = ["default", "slow", "capped"];
/// The kinds of jobs.
pub(crate) const KINDS: [&str; 2] = ["mail.send", "disk.scan"];

pub(crate) const LEASE: Span = Span::from_secs(60);
pub(crate) const TIMEOUT: Span = Span::from_secs(240);
pub(crate) const MOST_RELEASES: u32 = 2;
pub(crate) const RETENTION: Retention = Retention { finished: Span::from_secs(3_600), dead: Span::from_secs(86_400) };

/// A limit of the operators.
#[derive(Clone, Copy, Debug)]
struct Cap {
    max_attempts: Option<u32>,
    max_elapsed: Option<Span>,
}

/// The layers of a server and its caps.
#[derive(Debug)]
pub(crate) struct ServerPolicies {
    server: Plan,
    /// Of the queue `slow`.
    queue: Plan,
    /// Of the kind `disk.scan`.
    kind: Plan,
    /// Of the queue `capped`.
    queue_cap: Cap,
    server_cap: Cap,
}

impl ServerPolicies {
    pub(crate) fn random(rng: &Seeded) -> Self {
        let cap = |often| Cap {
            max_attempts: rng.permille(often).then(|| rng.between(1, 8) as u32),
            max_elapsed: rng.permille(often).then(|| Span::from_secs(rng.between(10, 600) as u32)),
        };
        let (server, queue, kind) = (Plan::random(rng), Plan::random(rng), Plan::random(rng));
        Self { server, queue, kind, queue_cap: cap(700), server_cap: cap(300) }
    }

    /// What applies to a job, by the table of layers: the job's own policy, that of its kind, that of
    /// its queue, that of the server; and every cap tightens.
    pub(crate) fn expectation(&self, own: Option<&Plan>, kind: &str, queue: &str) -> Expectation {
        let plan = match own {
            Some(plan) => plan,
            None if kind == KINDS[1] => &self.kind,
            None if queue == QUEUES[1] => &self.queue,
            None => &self.server,
        };
        let capped =
            |expectation: Expectation, cap: Cap| expectation.capped(cap.max_attempts, cap.max_elapsed.map(Span::ms));
        let expectation = if queue == QUEUES[2] {
            capped(plan.expectation.clone(), self.queue_cap)
        } else {
            plan.expectation.clone()
        };
        capped(expectation, self.server_cap)
    }

    pub(crate) fn settings(&self) -> Settings {
        let layer =
            |plan: &Plan| Layer::read(plan.written.clone()).unwrap_or_else(|problems| panic!("{plan:?}: {problems}"));
        let cap = |cap: Cap| OperatorCap { max_attempts: cap.max_attempts, max_elapsed: cap.max_elapsed };
        let layers = Layers {
            server: layer(&self.server),
            queues: HashMap::from([(QUEUES[1].to_owned(), layer(&self.queue))]),
            kinds: HashMap::from([(KINDS[1].to_owned(), layer(&self.kind))]),
            cap: cap(self.server_cap),
            queue_caps: HashMap::from([(QUEUES[2].to_owned(), cap(self.queue_cap))]),
        };
        Settings {
            layers,
            lease: LEASE,
            timeout: Some(TIMEOUT),
            retention: RETENTION,
            most_releases: MOST_RELEASES,
            max_depth: None,
            most_claimed: 5,
            // Small, so that sweeps take several steps and others come in between.
            sweep_step: 3,
        }
    }
}
