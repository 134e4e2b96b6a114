//! Lists of jobs: which jobs, in which order, and which part of them.

use crate::{Job, JobId, State};
use redrive_policy::Moment;
use std::sync::Arc;

/// Which jobs to list. What is absent fits all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// In this queue.
    pub queue: Option<Arc<str>>,
    /// Of this kind.
    pub kind: Option<Arc<str>>,
    /// In this state.
    pub state: Option<State>,
    /// Among the dead letters, or not.
    pub dead: Option<bool>,
    /// Ended at this time or later.
    pub finished_since: Option<Moment>,
    /// Ended before this time.
    pub finished_before: Option<Moment>,
}

impl Filter {
    /// Whether a job fits.
    #[must_use]
    pub fn fits(&self, job: &Job) -> bool {
        let finished = job.times.finished;
        self.queue.as_ref().is_none_or(|queue| *queue == job.spec.queue)
            && self.kind.as_ref().is_none_or(|kind| *kind == job.spec.kind)
            && self.state.is_none_or(|state| state == job.state)
            && self.dead.is_none_or(|dead| dead == job.dead)
            && self.finished_since.is_none_or(|since| finished.is_some_and(|at| at >= since))
            && self.finished_before.is_none_or(|before| finished.is_some_and(|at| at < before))
    }

    /// Whether the list is in the order of ends: that of dead letters is, all others are in the order of ids.
    #[must_use]
    pub fn is_by_end(&self) -> bool {
        self.dead == Some(true)
    }

    /// Whether stores know how many jobs fit without looking at them: where queue, state and dead letters
    /// are all that the filter asks for.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        self.kind.is_none() && self.finished_since.is_none() && self.finished_before.is_none()
    }

    /// The place of a job in the list.
    #[must_use]
    pub fn entry(&self, job: &Job) -> Entry {
        Entry { ended: job.times.finished.filter(|_| self.is_by_end()), id: job.id }
    }
}

/// The place of a job in a list. Lists begin with the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// When the job ended; present in a list of dead letters, and only there.
    pub ended: Option<Moment>,
    /// Its id.
    pub id: JobId,
}

/// Which part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The page begins behind this entry, which need not exist any more; absent, at the beginning.
    pub after: Option<Entry>,
    /// How many that fit to pass over from there.
    pub offset: usize,
    /// How many jobs to answer.
    pub limit: usize,
    /// About how many bytes the jobs may have together, by [`Job::bytes`]. The page ends before the job that
    /// would exceed it. The first job is always on the page.
    pub bytes: usize,
    /// Whether jobs come with their bodies, revisions and results. Without them, these are empty and count no bytes.
    pub payloads: bool,
}

impl Page {
    /// So many jobs after the first `offset`, whatever their size, with all that belongs to them.
    #[must_use]
    pub const fn new(offset: usize, limit: usize) -> Self {
        Self { after: None, offset, limit, bytes: usize::MAX, payloads: true }
    }

    /// A job as it is shown on this page.
    pub(crate) fn shown(self, mut job: Job) -> Job {
        if !self.payloads {
            job.strip();
        }
        job
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The jobs of the page.
    pub jobs: Vec<Job>,
    /// The page that goes on from here; absent at the end of the list. A store looks at a limited number of jobs
    /// in one call: then the page has fewer jobs than were asked for, or none, and the list still goes on.
    pub next: Option<Page>,
    /// How many fit the filter in all, where [`Filter::is_counted`].
    pub total: Option<usize>,
}

/// A page that is being put together, entry by entry.
#[derive(Debug)]
pub(crate) struct Gathering<T> {
    /// What is left of the page: it begins behind the last entry that was looked at.
    rest: Page,
    found: Vec<T>,
    bytes: usize,
}

impl<T> Gathering<T> {
    pub(crate) const fn new(page: Page) -> Self {
        Self { rest: page, found: Vec::new(), bytes: 0 }
    }

    pub(crate) const fn rest(&self) -> Page {
        self.rest
    }

    /// Records an entry that does not match the filter.
    pub(crate) fn pass(&mut self, entry: Entry) {
        self.rest.after = Some(entry);
    }

    /// Takes an entry that fits; false where the page is full, and ends before it.
    pub(crate) fn take(&mut self, entry: Entry, bytes: usize, item: impl FnOnce() -> T) -> bool {
        if self.rest.offset > 0 {
            self.rest.offset -= 1;
        } else {
            let total = self.bytes.saturating_add(bytes);
            if self.found.len() >= self.rest.limit || (total > self.rest.bytes && !self.found.is_empty()) {
                return false;
            }
            self.found.push(item());
            self.bytes = total;
        }
        self.pass(entry);
        true
    }

    pub(crate) fn into_found(self) -> Vec<T> {
        self.found
    }
}
