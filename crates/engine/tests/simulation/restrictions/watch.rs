//! An observer between the faults and the store, who sees everything that happens there in its true order: every job
//! that starts, every end of a run, also those of which no caller has learned.

use super::{limits, unique};
use redrive_engine::Submission;
use redrive_policy::Moment;
use redrive_store::testing::{Verb, Wrapper};
use redrive_store::{
    Bounds, Claim, Claimed, EnqueueRefusal, Enqueued, Filter, Group, Job, JobId, NewJob, Page, Redrive, Refusal,
    Retention, Setting, Store, StoreError, StoreFuture, Transition,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was seen so far, over all restarts.
#[derive(Default)]
pub(crate) struct Seen {
    /// The jobs as clients asked for them, whatever a store makes of that.
    pub(crate) asked: BTreeMap<JobId, Submission>,
    /// The jobs as they are stored now.
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) settings: BTreeMap<Group, Bounds>,
    /// Until when groups are held, and when their runs started, in elapsed time.
    pub(crate) held: BTreeMap<Group, Moment>,
    pub(crate) starts: BTreeMap<Group, Vec<Moment>>,
    pub(crate) violations: Vec<String>,
    /// How many claims passed a full group over.
    pub(crate) full: u64,
    /// How much time has passed, and what time it was last: the clock can be set back, and time cannot.
    elapsed: Moment,
    last: Option<Moment>,
}

impl Seen {
    /// It is `now`; answers how much time has passed.
    pub(crate) fn at(&mut self, now: Moment) -> Moment {
        let forward = self.last.map_or(0, |last| (now.micros() - last.micros()).max(0));
        self.last = Some(now);
        self.elapsed = Moment::from_micros(self.elapsed.micros() + forward);
        self.elapsed
    }

    pub(crate) fn wrong(&mut self, what: String) {
        self.violations.push(what);
    }

    fn look(&mut self, jobs: Vec<Job>) {
        self.jobs = jobs.into_iter().map(|job| (job.id, job)).collect();
        unique::at_any_moment(self);
    }
}

/// What was seen, as the observers of all nodes share it.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store that is watched.
pub(crate) struct Watched {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) watch: Watch,
}

impl Watched {
    /// Sees what is stored now.
    async fn look(&self) -> Result<(), StoreError> {
        let listed = self.inner.list(Filter::default(), Page::new(0, usize::MAX)).await?;
        self.watch.seen().look(listed.jobs);
        Ok(())
    }
}

/// Whether jobs can change by it.
const fn writes(verb: Verb) -> bool {
    matches!(verb, Verb::Settle | Verb::Reclaim | Verb::Promote | Verb::Cancel | Verb::Activate)
}

impl Wrapper for Watched {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        verb: Verb,
        call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let answer = call(&*self.inner).await?;
            if writes(verb) {
                self.look().await?;
            }
            Ok(answer)
        })
    }

    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        Box::pin(async move {
            let ids = jobs.iter().map(|job| job.id).collect::<Vec<_>>();
            let answer = self.inner.enqueue(jobs, now).await?;
            unique::enqueued(&mut self.watch.seen(), &ids, &answer, now);
            self.look().await?;
            Ok(answer)
        })
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move {
            let answer = self.inner.redrive(id, redrive, now).await?;
            unique::redriven(&mut self.watch.seen(), id, &answer, now);
            self.look().await?;
            Ok(answer)
        })
    }

    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        Box::pin(async move {
            let claimed = self.inner.claim(claim, now).await?;
            limits::claimed(&mut self.watch.seen(), &claimed, now);
            self.look().await?;
            Ok(claimed)
        })
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        Box::pin(async move {
            let pruned = self.inner.prune(retention, limit, now).await?;
            self.watch.seen().at(now);
            self.look().await?;
            Ok(pruned)
        })
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let bounds = setting.as_ref().map(|setting| setting.bounds);
            self.inner.set_limit(group.clone(), setting, now).await?;
            let mut seen = self.watch.seen();
            match bounds {
                Some(bounds) => drop(seen.settings.insert(group, bounds)),
                None => drop(seen.settings.remove(&group)),
            }
            Ok(())
        })
    }

    fn hold_group(&self, group: Group, until: Moment, now: Moment) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.inner.hold_group(group.clone(), until, now).await?;
            let mut seen = self.watch.seen();
            let elapsed = seen.at(now);
            seen.held.insert(group, elapsed.after(until.since(now)));
            Ok(())
        })
    }
}
