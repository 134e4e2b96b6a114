//! What producers enqueue.

use super::common::Seeded;
use super::expectation::Expectation;
use super::plans::Plan;
use super::server_policies::{KINDS, QUEUES, ServerPolicies};
use redrive_engine::{JobPolicy, Randomness, Submission};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Job, JobId, Start};
use std::sync::Arc;

/// A job as it was ordered, or as a redrive changes it.
#[derive(Clone, Debug)]
pub(crate) struct PlannedJob {
    /// Which account of the ledger it belongs to.
    pub(crate) account: usize,
    /// Which order of the account it is, from 0.
    pub(crate) version: usize,
    pub(crate) kind: &'static str,
    pub(crate) queue: &'static str,
    pub(crate) priority: i32,
    pub(crate) start: Start,
    pub(crate) expires: Option<Moment>,
    pub(crate) timeout: Option<Span>,
    pub(crate) lease: Option<Span>,
    pub(crate) own: Option<Plan>,
    /// What applies to it.
    pub(crate) expectation: Expectation,
    pub(crate) key: Option<Arc<str>>,
    pub(crate) id: Option<JobId>,
}

impl PlannedJob {
    pub(crate) fn random(account: usize, policies: &ServerPolicies, now: Moment, rng: &Seeded) -> Self {
        let (kind, queue) = (*rng.pick(&KINDS), *rng.pick(&QUEUES));
        let own = rng.permille(700).then(|| Plan::random(rng));
        let soon = |most_s: u64| now.after(Span::from_millis(rng.below(most_s * 1_000) as u32));
        let start = match rng.below(10) {
            0..=6 => Start::Available,
            7 | 8 => Start::Scheduled(soon(60)),
            _ => Start::Pending,
        };
        let span = |permille, most_s| rng.permille(permille).then(|| Span::from_secs(rng.between(1, most_s) as u32));
        // Most have a name that makes a repetition harmless: a key, an id, or both.
        let named = rng.below(20);
        Self {
            account,
            version: 0,
            kind,
            queue,
            priority: rng.below(3) as i32 - 1,
            start,
            expires: rng.permille(120).then(|| soon(400)),
            timeout: span(300, 120),
            lease: span(400, 90),
            expectation: policies.expectation(own.as_ref(), kind, queue),
            own,
            key: (named < 14).then(|| format!("key {account}").into()),
            id: (8..18)
                .contains(&named)
                .then(|| JobId::new(now, u128::from(rng.bits()) << 64 | u128::from(rng.bits()))),
        }
    }

    /// The same job with another policy and queue, as a revival can bring it.
    pub(crate) fn edited(&self, version: usize, policies: &ServerPolicies, rng: &Seeded) -> Self {
        let own = Some(Plan::random(rng));
        let queue = *rng.pick(&QUEUES);
        let expectation = policies.expectation(own.as_ref(), self.kind, queue);
        Self { version, queue, expectation, own, ..self.clone() }
    }

    /// Whether handing it in twice is as good as once.
    pub(crate) const fn repeatable(&self) -> bool {
        self.key.is_some() || self.id.is_some()
    }

    pub(crate) fn submission(&self) -> Submission {
        Submission {
            limit: None,
            id: self.id,
            kind: self.kind.into(),
            queue: self.queue.into(),
            priority: self.priority,
            start: self.start,
            expires: self.expires,
            timeout: self.timeout,
            lease: self.lease,
            policy: self.own.as_ref().map_or(JobPolicy::Configured, |plan| JobPolicy::Own(plan.written.clone())),
            idempotency_key: self.key.clone(),
            unique: None,
            body: self.body(),
        }
    }

    /// What tells, wherever the job is met again, which order it came from.
    pub(crate) fn body(&self) -> Blob {
        Arc::from(format!("{} {}", self.account, self.version).into_bytes())
    }

    /// The account and the version that a job came from.
    pub(crate) fn of(job: &Job) -> Option<(usize, usize)> {
        let (account, version) = std::str::from_utf8(&job.spec.body).ok()?.split_once(' ')?;
        Some((account.parse().ok()?, version.parse().ok()?))
    }

    /// What of a job is not as it was ordered.
    pub(crate) fn difference(&self, job: &Job) -> Option<&'static str> {
        let spec = &job.spec;
        // A revival that brings no order of its own clears the time at which the job expires.
        let first_generation = job.revisions.last().map_or(0, |replaced| replaced.generation + 1);
        let expires = self.expires.filter(|_| job.generation == first_generation);
        let checks = [
            (&*spec.kind == self.kind, "kind"),
            (&*spec.queue == self.queue, "queue"),
            (spec.priority == self.priority, "priority"),
            (spec.expires == expires, "expires"),
            (spec.timeout == self.timeout, "timeout"),
            (spec.lease == self.lease, "lease"),
            (self.id.is_none_or(|id| id == job.id), "id"),
        ];
        checks.into_iter().find(|(same, _)| !same).map(|(_, part)| part)
    }
}
