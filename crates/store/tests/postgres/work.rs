//! Jobs and claims to test with.

use redrive_policy::{
    AttemptLimit, Backoff, Disposition, Draw, Failure, Matcher, Moment, Parts, Policy, Rule, Span, Unmatched, decide,
};
use redrive_store::{AttemptOutcome, Claim, Decision, Job, JobId, NewJob, Spec};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

/// The time of all tests that do not care.
pub(crate) fn now() -> Moment {
    Moment::from_micros(1_700_000_000_000_000)
}

/// This many milliseconds after that.
pub(crate) fn later(ms: u32) -> Moment {
    now().after(Span::from_millis(ms))
}

fn policy() -> Arc<Policy> {
    static POLICY: LazyLock<Arc<Policy>> = LazyLock::new(|| {
        let backoff = Backoff::fixed(Span::from_millis(1_000));
        let rules = vec![Rule { matcher: Matcher::default(), budget: None, backoff }];
        let (attempts, on_stop) = (AttemptLimit::AtMost(3), Disposition::Discard);
        let parts =
            Parts { rules, attempts, max_elapsed: None, on_stop, unmatched: Unmatched::NonRetryable, delegated: None };
        Arc::new(Policy::new(parts).unwrap())
    });
    Arc::clone(&POLICY)
}

/// A new job with an id of its own.
pub(crate) fn job(queue: &str) -> NewJob {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let spec = Spec {
        kind: "work".into(),
        queue: queue.into(),
        priority: 0,
        body: Arc::from(*b"{}"),
        policy: policy(),
        timeout: None,
        lease: None,
        expires: None,
        limits: None,
    };
    let id = JobId::new(now(), u128::from(number));
    NewJob::new(id, Arc::new(spec))
}

pub(crate) fn claim(queue: &str, count: usize, seed: u64) -> Claim {
    let lease = Span::from_millis(10_000);
    let (queues, held) = (vec![queue.into()], Arc::default());
    Claim { queues, held, count, bytes: usize::MAX, worker: "ada".into(), lease, timeout: None, seed }
}

/// What the job's own policy decides on an ordinary failure.
pub(crate) fn decision(job: &Job, now: Moment) -> Decision {
    let verdict = decide(&job.spec.policy, &job.history, &Failure::of_type("boom"), now, Draw::LOWEST);
    let due = now.after(verdict.delay().unwrap_or_default());
    Decision { verdict, due, error: (*b"\"boom\"").into(), policy: None }
}

/// An ordinary failure.
pub(crate) fn failed(now: Moment) -> AttemptOutcome {
    AttemptOutcome::Failed(Box::new(move |job| decision(job, now)))
}
