//! New jobs: all of a batch or none, each key once, and what is unique.

use super::contents::{Contents, sorted};
use super::event::Event;
use super::recorded::Recorded;
use crate::{
    Duplicate, EnqueueRefusal, Enqueued, EventKind, Job, JobId, NewJob, OnConflict, QueueFull, Start, State,
    Transition, Unique, UniqueKey,
};
use redrive_policy::Moment;
use std::sync::Arc;

/// Jobs as they were before a batch changed them; absent, they were not there.
pub(super) type Changed = Vec<(JobId, Option<Recorded>)>;

/// What becomes of a new job.
enum Decided {
    /// It is not stored: this one is there.
    Ignore(Box<Job>),
    /// It is stored, and these are cancelled.
    Store(NewJob, Vec<JobId>),
}

/// The earlier job of a batch that has the key of a new one, as it was when it was stored.
fn stored_before(earlier: &[NewJob], answers: &[Enqueued], new: &NewJob) -> Option<Job> {
    let key = new.idempotency_key.as_ref()?;
    let mut both = earlier.iter().zip(answers);
    let found = both.find(|(other, answer)| other.idempotency_key.as_ref() == Some(key) && answer.is_new());
    found.map(|(_, answer)| answer.job().clone())
}

impl Contents {
    pub(super) fn enqueue(&mut self, jobs: &[NewJob], now: Moment) -> Result<Vec<Enqueued>, EnqueueRefusal> {
        let depths: Vec<u64> = jobs.iter().map(|new| self.depth(new)).collect();
        let mut changed = Changed::default();
        let mut answers = Vec::new();
        for (index, new) in jobs.iter().enumerate() {
            if let Some(job) = stored_before(&jobs[..index], &answers, new) {
                answers.push(Enqueued::Existing(job));
                continue;
            }
            match self.enqueue_one(index, new, &mut changed, now) {
                Ok(answer) => answers.push(answer),
                Err(refusal) => {
                    self.take_back(changed);
                    return Err(refusal);
                }
            }
        }
        if let Some(refusal) = self.too_deep(jobs, &answers, &depths) {
            self.take_back(changed);
            return Err(refusal);
        }
        for answer in &answers {
            if let Enqueued::Replaced { replaced, .. } = answer {
                for transition in replaced {
                    self.runs.learn(transition);
                }
            }
            if answer.is_new() {
                self.named(&answer.job().spec.queue, now);
                self.runs.learn(&Transition::new(answer.job().clone(), EventKind::Enqueued, None, now));
            }
        }
        Ok(answers)
    }

    /// How many jobs wait in the queue of a new job that brings a bound.
    fn depth(&self, new: &NewJob) -> u64 {
        let waits = |job: &&Job| {
            let waiting = [State::Scheduled, State::Pending, State::Available, State::Retryable];
            job.spec.queue == new.spec.queue && waiting.contains(&job.state)
        };
        new.depth.map_or(0, |_| self.all().filter(waits).count() as u64)
    }

    /// Why a batch that was stored must not have been: a queue has grown, and beyond what one of its new jobs allows.
    fn too_deep(&self, jobs: &[NewJob], answers: &[Enqueued], before: &[u64]) -> Option<EnqueueRefusal> {
        let mut stored =
            jobs.iter().zip(answers).zip(before).enumerate().filter(|(_, ((_, answer), _))| answer.is_new());
        stored.find_map(|(index, ((new, _), depth))| {
            let (bound, after) = (new.depth?, self.depth(new));
            let full = QueueFull {
                queue: Arc::clone(&new.spec.queue),
                depth: *depth,
                bound,
                jobs: after.saturating_sub(*depth),
            };
            (after > *depth && after > bound).then_some(EnqueueRefusal::QueueFull { index, full })
        })
    }

    fn enqueue_one(
        &mut self,
        index: usize,
        new: &NewJob,
        changed: &mut Changed,
        now: Moment,
    ) -> Result<Enqueued, EnqueueRefusal> {
        let key = new.idempotency_key.as_ref();
        if let Some(job) = key.and_then(|key| self.keys.get(key)).and_then(|id| self.jobs.get(id)) {
            return Ok(Enqueued::Existing(job.job().clone()));
        }
        if self.jobs.contains_key(&new.id) {
            return Err(EnqueueRefusal::IdTaken { index, id: new.id });
        }
        match self.decide(new, now).map_err(|duplicate| EnqueueRefusal::Duplicate { index, duplicate })? {
            Decided::Ignore(job) => Ok(Enqueued::Ignored(*job)),
            Decided::Store(new, cancelled) => {
                self.keys.extend(key.map(|key| (Arc::clone(key), new.id)));
                let (job, replaced) = self.put(&new, cancelled, changed, now);
                Ok(if replaced.is_empty() { Enqueued::Created(job) } else { Enqueued::Replaced { job, replaced } })
            }
        }
    }

    /// Stores a job in the place of others. Their runs do not learn of it yet.
    pub(super) fn put(
        &mut self,
        new: &NewJob,
        cancelled: Vec<JobId>,
        changed: &mut Changed,
        now: Moment,
    ) -> (Job, Vec<Transition>) {
        let mut replaced = Vec::new();
        for id in cancelled {
            changed.push((id, self.jobs.get(&id).cloned()));
            replaced.extend(self.recorded(id).and_then(|job| job.happen(Event::Cancelled, now)));
        }
        let recorded = Recorded::new(new, now);
        let job = recorded.job().clone();
        changed.push((new.id, None));
        self.jobs.insert(new.id, recorded);
        (job, replaced)
    }

    /// Makes jobs what they were, the last change first.
    pub(super) fn take_back(&mut self, changed: Changed) {
        for (id, before) in changed.into_iter().rev() {
            match before {
                Some(recorded) => drop(self.jobs.insert(id, recorded)),
                None => self.forget(id),
            }
        }
    }

    /// What becomes of a new job: it is a duplicate of all jobs with its key that its policy is about.
    fn decide(&self, new: &NewJob, now: Moment) -> Result<Decided, Duplicate> {
        let Some(unique) = &new.unique else { return Ok(Decided::Store(new.clone(), Vec::new())) };
        let same = self.duplicates(unique, new.id, now);
        let duplicate =
            |job: &Job, irreplaceable| Duplicate { id: job.id, state: job.state, key: unique.key, irreplaceable };
        match (same.first(), unique.on_conflict) {
            (None, _) => Ok(Decided::Store(new.clone(), Vec::new())),
            (Some(first), OnConflict::Reject) => Err(duplicate(first, false)),
            (Some(first), OnConflict::Ignore) => Ok(Decided::Ignore(Box::new((*first).clone()))),
            (Some(first), OnConflict::Replace | OnConflict::ReplaceExceptSchedule) => {
                if let Some(over) = same.iter().find(|job| job.times.finished.is_some()) {
                    return Err(duplicate(over, true));
                }
                if same.len() > 100 {
                    return Err(duplicate(first, true));
                }
                let mut new = new.clone();
                let scheduled = same.iter().find(|job| job.state == State::Scheduled).and_then(|job| job.due);
                if let Some(due) = scheduled.filter(|_| unique.on_conflict == OnConflict::ReplaceExceptSchedule) {
                    new.start = Start::Scheduled(due);
                    new.unique = Some(Arc::new(Unique { schedule: Some(due), ..Unique::clone(unique) }));
                }
                Ok(Decided::Store(new, same.iter().map(|job| job.id).collect()))
            }
        }
    }

    /// The same for a job of a run, which would wait for ever for one that is ignored.
    pub(super) fn decide_child(&self, new: &NewJob, now: Moment) -> Result<(NewJob, Vec<JobId>), Duplicate> {
        match self.decide(new, now)? {
            Decided::Store(new, cancelled) => Ok((new, cancelled)),
            Decided::Ignore(job) => {
                let key = new.unique.as_ref().map_or(UniqueKey([0; 32]), |unique| unique.key);
                Err(Duplicate { id: job.id, state: job.state, key, irreplaceable: false })
            }
        }
    }

    /// The jobs other than this one that have a key, are in one of the states and younger than the period, the first
    /// one first.
    pub(super) fn duplicates(&self, unique: &Unique, other_than: JobId, now: Moment) -> Vec<&Job> {
        let counts = |job: &&Job| {
            let same = job.id != other_than && job.unique.as_ref().is_some_and(|other| other.key == unique.key);
            let over = unique.period.is_some_and(|period| job.times.created.after(period) <= now);
            same && !over && unique.states.iter().any(|state| state == job.state)
        };
        sorted(self.all().filter(counts), |job| (job.times.created, job.id))
    }
}
