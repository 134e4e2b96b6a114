//! Unique jobs: no second job with the same key is stored while the first one counts.
//!
//! The policy of the new job says which stored jobs count; the policy of a stored job says nothing about others. Only
//! jobs that have a key are looked at.

use crate::{Job, JobId, NewJob, Start, State};
use redrive_policy::{Moment, Span};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// How many jobs one new job replaces at most. More than one can have a key only where they were enqueued with
/// different policies, or behind a period.
pub const MOST_REPLACED: usize = 100;

/// What a job must be unique in, and what happens if it is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Unique {
    /// Jobs with the same key are duplicates.
    pub key: UniqueKey,
    /// Stored jobs in these states count.
    pub states: States,
    /// Stored jobs count until this time after they were created; absent, always.
    pub period: Option<Span>,
    /// What happens to a duplicate.
    pub on_conflict: OnConflict,
    /// The time that the job took over from the scheduled job that it replaced. Only stores set it.
    pub schedule: Option<Moment>,
}

/// What identifies jobs that are duplicates of each other: a hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UniqueKey(pub [u8; 32]);

impl fmt::Display for UniqueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for UniqueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What happens to a new job that is a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// It is refused, and its whole batch with it.
    Reject,
    /// It is not stored; the answer is the job that is there.
    Ignore,
    /// The job that is there is cancelled, and the new one is stored. A job that has ended cannot be cancelled; then
    /// the new one is refused.
    Replace,
    /// As `Replace`; where the job that is there is scheduled, the new one takes its time over.
    ReplaceExceptSchedule,
}

impl OnConflict {
    /// All of them, in the order in which they are numbered.
    pub const ALL: [Self; 4] = [Self::Reject, Self::Ignore, Self::Replace, Self::ReplaceExceptSchedule];

    /// The word for programs and people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Ignore => "ignore",
            Self::Replace => "replace",
            Self::ReplaceExceptSchedule => "replace_except_schedule",
        }
    }
}

/// A set of states.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct States(u8);

impl States {
    /// Those of jobs that have not ended.
    pub const UNENDED: Self = Self(0b0001_1111);

    /// The set of these bits, the lowest of which is the first of [`State::ALL`].
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The bits of the set.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether a state is in it.
    #[must_use]
    pub const fn contains(self, state: State) -> bool {
        self.0 & (1 << state as u8) != 0
    }

    /// The states in it.
    pub fn iter(self) -> impl Iterator<Item = State> {
        State::ALL.into_iter().filter(move |state| self.contains(*state))
    }
}

impl FromIterator<State> for States {
    fn from_iter<I: IntoIterator<Item = State>>(states: I) -> Self {
        Self(states.into_iter().fold(0, |bits, state| bits | 1 << state as u8))
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The stored job because of which a new one is a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The job that is there.
    pub id: JobId,
    /// Its state.
    pub state: State,
    /// The key that both have.
    pub key: UniqueKey,
    /// Whether the new job was to replace it, which is not possible.
    pub irreplaceable: bool,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the job {}, which is {}, has the same uniqueness key", self.id, self.state)?;
        match self.irreplaceable {
            true if self.state.is_terminal() => write!(f, ", and has ended, so that it cannot be replaced"),
            true => write!(f, ", and so have more than {MOST_REPLACED} jobs, the most that one job replaces"),
            false => Ok(()),
        }
    }
}

/// What decides whether a stored job with the same key counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Holder {
    pub(crate) created: Moment,
    pub(crate) id: JobId,
    pub(crate) state: State,
    pub(crate) due: Option<Moment>,
}

impl Holder {
    pub(crate) fn of(job: &Job) -> Self {
        Self { created: job.times.created, id: job.id, state: job.state, due: job.due }
    }
}

impl Unique {
    /// A job that is a duplicate of every job of its key that has not ended, and is then refused.
    #[must_use]
    pub const fn new(key: UniqueKey) -> Self {
        let (states, on_conflict) = (States::UNENDED, OnConflict::Reject);
        Self { key, states, period: None, on_conflict, schedule: None }
    }

    /// Jobs that were created at this time or earlier do not count, in microseconds.
    pub(crate) fn since(&self, now: Moment) -> i64 {
        self.period.map_or(i64::MIN, |period| now.micros().saturating_sub(Moment::ORIGIN.after(period).micros()))
    }

    /// Whether a stored job with this key counts now.
    pub(crate) fn counts(&self, state: State, created: Moment, now: Moment) -> bool {
        self.states.contains(state) && (self.period.is_none() || created.micros() > self.since(now))
    }

    /// What a job is a duplicate of that is redriven; the stored jobs come in the order in which they were created.
    pub(crate) fn redriven(&self, id: JobId, stored: impl IntoIterator<Item = Holder>) -> Option<Duplicate> {
        let holder = stored.into_iter().find(|holder| holder.id != id)?;
        Some(Duplicate { id: holder.id, state: holder.state, key: self.key, irreplaceable: false })
    }
}

/// What becomes of a new job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Admitted {
    /// It is stored.
    Stored,
    /// It is not stored: it is a duplicate of this job.
    Kept(Duplicate),
    /// It is stored, once these are cancelled; with a time, it is scheduled then.
    Replacing(Vec<JobId>, Option<Moment>),
}

impl Admitted {
    /// The same for a job of a run. A run waits for its own jobs: a duplicate that is ignored is refused too.
    pub(crate) fn of_run(self) -> Result<Self, Duplicate> {
        if let Self::Kept(duplicate) = self { Err(duplicate) } else { Ok(self) }
    }
}

/// What the jobs of a batch do to each other, which is not stored yet.
#[derive(Debug, Default)]
pub(crate) struct BatchKeys {
    /// The jobs that it has stored or replaced, as they are by now.
    touched: HashMap<UniqueKey, Vec<Holder>>,
}

impl BatchKeys {
    /// Decides about the next job of the batch, which would be `job`. `stored` are the jobs with its key that count, in
    /// the order of their creation, then by id; more than [`MOST_REPLACED`] and one are not needed.
    pub(crate) fn admit(
        &mut self,
        unique: &Unique,
        job: &Job,
        stored: impl IntoIterator<Item = Holder>,
        now: Moment,
    ) -> Result<Admitted, Duplicate> {
        let touched = self.touched.entry(unique.key).or_default();
        let stored = stored.into_iter().filter(|holder| touched.iter().all(|other| other.id != holder.id));
        let mut holders: Vec<Holder> = stored.chain(touched.iter().copied()).collect();
        holders.retain(|holder| unique.counts(holder.state, holder.created, now));
        holders.sort_by_key(|holder| (holder.created, holder.id));
        let Some(first) = holders.first() else {
            touched.push(Holder::of(job));
            return Ok(Admitted::Stored);
        };
        let duplicate = |holder: &Holder, irreplaceable| Duplicate {
            id: holder.id,
            state: holder.state,
            key: unique.key,
            irreplaceable,
        };
        match unique.on_conflict {
            OnConflict::Reject => return Err(duplicate(first, false)),
            OnConflict::Ignore => return Ok(Admitted::Kept(duplicate(first, false))),
            OnConflict::Replace | OnConflict::ReplaceExceptSchedule => {}
        }
        if let Some(ended) = holders.iter().find(|holder| holder.state.is_terminal()) {
            return Err(duplicate(ended, true));
        }
        if holders.len() > MOST_REPLACED {
            return Err(duplicate(first, true));
        }
        let keeps = unique.on_conflict == OnConflict::ReplaceExceptSchedule;
        let scheduled = |holder: &&Holder| keeps && holder.state == State::Scheduled;
        let due = holders.iter().find(scheduled).and_then(|holder| holder.due);
        let (state, due_from_now) = due.map_or((job.state, job.due), |due| match due > now {
            true => (State::Scheduled, Some(due)),
            false => (State::Available, None),
        });
        let replaced: Vec<JobId> = holders.iter().map(|holder| holder.id).collect();
        touched.retain(|holder| !replaced.contains(&holder.id));
        touched.extend(holders.iter().map(|holder| Holder { state: State::Cancelled, due: None, ..*holder }));
        touched.push(Holder { state, due: due_from_now, ..Holder::of(job) });
        Ok(Admitted::Replacing(replaced, due))
    }
}

/// A new job that takes over the time of the job that it replaces.
pub(crate) fn rescheduled(new: &NewJob, due: Moment) -> NewJob {
    let unique = new.unique.as_ref().map(|unique| Arc::new(Unique { schedule: Some(due), ..Unique::clone(unique) }));
    NewJob { start: Start::Scheduled(due), unique, ..new.clone() }
}
