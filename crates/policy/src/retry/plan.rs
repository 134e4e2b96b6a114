//! What every loop needs between two runs: the history, and the way from an error to a verdict.

use super::{Both, Classify, Ordinary, Unwatched, Watch};
use crate::{Ambient, Entropy, Failure, History, Moment, Policy, Span, Verdict, decide};

/// The past of one call. It is empty until something must be remembered, so that a call that
/// succeeds the first time pays for nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct PastFailures(Option<History>);

impl PastFailures {
    /// Takes note of the start, where the policy has a limit that counts from it.
    #[inline]
    pub(super) fn start(&mut self, policy: &Policy, now: impl FnOnce() -> Moment) {
        if policy.max_elapsed.is_some() {
            self.start_at(now);
        }
    }

    /// Out of the way of policies without such a limit.
    #[cold]
    fn start_at(&mut self, now: impl FnOnce() -> Moment) {
        self.0.get_or_insert_with(|| History::new(now()));
    }

    /// Decides on a failure, and takes note of the verdict.
    pub(super) fn settle(
        &mut self,
        policy: &Policy,
        failure: &Failure<'_>,
        now: impl FnOnce() -> Moment,
        entropy: &mut impl Entropy,
    ) -> Verdict {
        // Without a limit on elapsed time no verdict depends on the clock.
        let now = if policy.max_elapsed.is_some() { now() } else { Moment::ORIGIN };
        let history = self.0.get_or_insert_with(|| History::new(Moment::ORIGIN));
        let verdict = decide(policy, history, failure, now, entropy.draw());
        history.record(&verdict);
        verdict
    }
}

/// How one call is retried, apart from the waiting.
#[derive(Clone, Debug)]
pub(super) struct Plan<'p, C, W, N> {
    policy: &'p Policy,
    past: PastFailures,
    classify: C,
    watch: W,
    entropy: N,
}

impl<'p> Plan<'p, Ordinary, Unwatched, Ambient> {
    #[inline]
    pub(super) fn new(policy: &'p Policy) -> Self {
        Self { policy, past: PastFailures(None), classify: Ordinary, watch: Unwatched, entropy: Ambient }
    }
}

impl<'p, C, W, N> Plan<'p, C, W, N> {
    #[inline]
    pub(super) fn classified<D>(self, more: D) -> Plan<'p, Both<C, D>, W, N> {
        let Self { policy, past, classify, watch, entropy } = self;
        Plan { policy, past, classify: Both(classify, more), watch, entropy }
    }

    #[inline]
    pub(super) fn watched<V>(self, more: V) -> Plan<'p, C, Both<W, V>, N> {
        let Self { policy, past, classify, watch, entropy } = self;
        Plan { policy, past, classify, watch: Both(watch, more), entropy }
    }

    #[inline]
    pub(super) fn drawing<M>(self, entropy: M) -> Plan<'p, C, W, M> {
        let Self { policy, past, classify, watch, .. } = self;
        Plan { policy, past, classify, watch, entropy }
    }

    #[inline]
    pub(super) fn start(&mut self, now: impl FnOnce() -> Moment) {
        self.past.start(self.policy, now);
    }

    /// The wait before the next run, or that there is none.
    #[cold]
    pub(super) fn settle<E>(&mut self, error: &E, now: impl FnOnce() -> Moment) -> Option<Span>
    where
        C: Classify<E>,
        W: Watch<E>,
        N: Entropy,
    {
        let failure = self.classify.classify(error, Failure::default());
        let verdict = self.past.settle(self.policy, &failure, now, &mut self.entropy);
        let delay = verdict.delay();
        match delay {
            Some(_) => self.watch.before_retry(error, &verdict),
            None => self.watch.on_stop(error, &verdict),
        }
        delay
    }
}
