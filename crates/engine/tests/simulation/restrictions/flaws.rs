//! Stores in memory that do one thing wrong with unique jobs or limits.

use crate::common::wrapped::in_place;
use crate::store_kind::StoreKind;
use redrive_policy::{Moment, Span};
use redrive_store::testing::Wrapper;
use redrive_store::{
    Bounds, Claim, Claimed, EnqueueRefusal, Enqueued, Group, JobId, Limits, Memory, NewJob, OnConflict, OwnLimit, Rate,
    Redrive, Refusal, Retention, Setting, Spec, State, States, Store, StoreFuture, Transition, Unique,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Now and then it does not look whether a job is a duplicate.
    IgnoresUniqueness,
    /// After a restart it knows no keys for a while.
    ForgetsKeysAtRestart,
    /// Only jobs that wait make another one a duplicate.
    LooksAtWaitingJobsOnly,
    /// A job counts, however old it is.
    IgnoresPeriods,
    /// A job that is replaced goes on.
    ReplacesWithoutCancelling,
    /// A job that took over a time does not.
    ForgetsSchedules,
    /// What is to be refused is ignored.
    IgnoresInsteadOfRejecting,
    /// A redriven job may be a duplicate.
    RedrivesDuplicates,
    /// The limits that a job brings are lost.
    ForgetsLimits,
    /// One more at once than allowed.
    RunsOneTooMany,
    /// What operators set is not looked at.
    IgnoresSettings,
    /// The starts of runs are gone after a restart.
    ForgetsStartsAtRestart,
    /// A window is two seconds shorter than it should be.
    ShortensWindows,
    /// Rates are not looked at, only how many run at once.
    IgnoresRates,
    /// A group that was held is not.
    IgnoresHolds,
    /// A group that was full once stays full.
    NeverOpensAgain,
}

impl Flaw {
    pub(crate) const ALL: [Self; 16] = [
        Self::IgnoresUniqueness,
        Self::ForgetsKeysAtRestart,
        Self::LooksAtWaitingJobsOnly,
        Self::IgnoresPeriods,
        Self::ReplacesWithoutCancelling,
        Self::ForgetsSchedules,
        Self::IgnoresInsteadOfRejecting,
        Self::RedrivesDuplicates,
        Self::ForgetsLimits,
        Self::RunsOneTooMany,
        Self::IgnoresSettings,
        Self::ForgetsStartsAtRestart,
        Self::ShortensWindows,
        Self::IgnoresRates,
        Self::IgnoresHolds,
        Self::NeverOpensAgain,
    ];

    /// The checks that may find it.
    pub(crate) const fn seen_by(self) -> &'static [&'static str] {
        match self {
            Self::RedrivesDuplicates => &["redrive"],
            Self::ForgetsLimits | Self::IgnoresSettings => &["limit", "rate", "held"],
            Self::RunsOneTooMany => &["limit"],
            Self::ForgetsStartsAtRestart => &["rate", "held"],
            Self::ShortensWindows | Self::IgnoresRates => &["rate"],
            Self::IgnoresHolds => &["held"],
            Self::NeverOpensAgain => &["stuck"],
            _ => &["unique", "redrive"],
        }
    }
}

/// Where such a store stands.
pub(crate) struct FlawedRestrictions {
    flaw: Flaw,
    memory: Memory,
}

impl FlawedRestrictions {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self { flaw, memory: Memory::new() }
    }

    fn store(&self, unaware: u64) -> Arc<dyn Store> {
        Arc::new(FlawedStore { flaw: self.flaw, inner: self.memory.clone(), calls: 0.into(), unaware: unaware.into() })
    }
}

impl StoreKind for FlawedRestrictions {
    fn open(&mut self) -> Arc<dyn Store> {
        self.memory = Memory::new();
        self.store(0)
    }

    fn reopen(&mut self) -> Arc<dyn Store> {
        self.memory = self.memory.reopened();
        if self.flaw == Flaw::ForgetsStartsAtRestart {
            // Nothing is old enough to be removed but what is known of groups.
            let retention = Retention { finished: Span::MAX, dead: Span::MAX };
            let later = Moment::from_micros(i64::MAX / 2);
            in_place(self.memory.prune(retention, 1, later)).expect("memory answers");
        }
        self.store(5)
    }
}

struct FlawedStore {
    flaw: Flaw,
    inner: Memory,
    calls: AtomicU64,
    /// For how many more jobs it knows no keys.
    unaware: AtomicU64,
}

impl FlawedStore {
    /// Whether it is this store's flaw, and its turn: every third call.
    fn errs(&self, flaw: Flaw) -> bool {
        self.flaw == flaw && (self.calls.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(3)
    }

    fn is_unaware(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.flaw == Flaw::ForgetsKeysAtRestart
            && self.unaware.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn unique(&self, unique: &Arc<Unique>) -> Option<Arc<Unique>> {
        let replaces = matches!(unique.on_conflict, OnConflict::Replace | OnConflict::ReplaceExceptSchedule);
        if self.errs(Flaw::IgnoresUniqueness)
            || self.is_unaware()
            || (replaces && self.flaw == Flaw::ReplacesWithoutCancelling)
        {
            return None;
        }
        let mut unique = Unique::clone(unique);
        match (self.flaw, unique.on_conflict) {
            (Flaw::LooksAtWaitingJobsOnly, _) => {
                let waiting: States = [State::Scheduled, State::Available].into_iter().collect();
                unique.states = States::from_bits(unique.states.bits() & waiting.bits());
            }
            (Flaw::IgnoresPeriods, _) => unique.period = None,
            (Flaw::ForgetsSchedules, OnConflict::ReplaceExceptSchedule) => unique.on_conflict = OnConflict::Replace,
            (Flaw::IgnoresInsteadOfRejecting, OnConflict::Reject) => unique.on_conflict = OnConflict::Ignore,
            _ => {}
        }
        Some(Arc::new(unique))
    }

    fn limits(&self, limits: &Arc<Limits>) -> Option<Arc<Limits>> {
        if self.flaw == Flaw::ForgetsLimits {
            return None;
        }
        let own = limits.own.as_ref().map(|own| OwnLimit { bounds: self.bounds(own.bounds), ..own.clone() });
        Some(Arc::new(Limits { own, ..**limits }))
    }

    fn bounds(&self, bounds: Bounds) -> Bounds {
        let shorter = |rate: Rate| Rate { period: Span::saturating_ms(rate.period.ms() - 2_000.0), ..rate };
        match self.flaw {
            Flaw::RunsOneTooMany => Bounds { concurrency: bounds.concurrency.map(|most| most + 1), ..bounds },
            Flaw::ShortensWindows => Bounds { rate: bounds.rate.map(shorter), ..bounds },
            Flaw::IgnoresRates => Bounds { rate: None, throttle: None, ..bounds },
            _ => bounds,
        }
    }
}

impl Wrapper for FlawedStore {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn enqueue(&self, mut jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        for job in &mut jobs {
            job.unique = job.unique.as_ref().and_then(|unique| self.unique(unique));
            let limits = job.spec.limits.as_ref().and_then(|limits| self.limits(limits));
            job.spec = Arc::new(Spec { limits, ..Spec::clone(&job.spec) });
        }
        self.inner.enqueue(jobs, now)
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move {
            let answer = self.inner.redrive(id, redrive, now).await?;
            match (self.flaw, &answer, self.inner.get(id).await?) {
                (Flaw::RedrivesDuplicates, Err(Refusal::Duplicate(_)), Some(job)) => {
                    self.inner.redrive(id, Redrive { spec: Some(job.spec), ..Redrive::default() }, now).await
                }
                _ => Ok(answer),
            }
        })
    }

    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        Box::pin(async move {
            let claimed = self.inner.claim(claim, now).await?;
            for full in claimed.full.iter().filter(|_| self.flaw == Flaw::NeverOpensAgain) {
                let setting =
                    Setting { bounds: Bounds { concurrency: Some(0), ..Bounds::default() }, ..Setting::default() };
                self.inner.set_limit(full.group.clone(), Some(setting), now).await?;
            }
            Ok(claimed)
        })
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        let kept = setting.filter(|_| self.flaw != Flaw::IgnoresSettings);
        let changed = kept.map(|setting| Setting { bounds: self.bounds(setting.bounds), ..setting });
        self.inner.set_limit(group, changed, now)
    }

    fn hold_group(&self, group: Group, until: Moment, now: Moment) -> StoreFuture<'_, ()> {
        let until = if self.flaw == Flaw::IgnoresHolds { now } else { until };
        self.inner.hold_group(group, until, now)
    }
}
