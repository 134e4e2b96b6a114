//! How far running jobs have come. Stored in memory only: it is for people who watch, and gone with the
//! run or the process.

use crate::engine::refused;
use crate::{Engine, EngineError};
use redrive_policy::{Moment, Problem, Problems};
use redrive_store::{Blob, Job, JobId, LeaseRef, LeaseToken, Transition};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// For how many jobs it is stored. With more, that of the oldest job is dropped.
const MOST_JOBS: usize = 10_000;
/// The longest message, in bytes; a longer one is cut.
const MESSAGE_BYTES: usize = 1_000;
/// The longest data, in bytes of JSON (OJS progress, 5.2).
const DATA_BYTES: usize = 4_096;

/// What a worker reports of its run. What is absent stays as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgressReport {
    /// The part that is done, from 0 to 1; what lies outside is moved to the nearest end.
    pub fraction: Option<f64>,
    /// A word for people.
    pub message: Option<String>,
    /// Whatever else, as JSON text.
    pub data: Option<Blob>,
}

/// How far a run has come.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The part that is done, from 0 to 1. It never shrinks within a run (OJS progress, 5.1).
    pub fraction: Option<f64>,
    /// A word for people.
    pub message: Option<Arc<str>>,
    /// Whatever else, as JSON text.
    pub data: Option<Blob>,
    /// When it was last reported.
    pub at: Moment,
}

/// The progress of jobs, each with the lease that it was reported under.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    runs: Mutex<BTreeMap<JobId, (LeaseToken, Progress)>>,
    /// How many there are, so that those who never report pay nothing.
    count: AtomicUsize,
}

impl Watch {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<JobId, (LeaseToken, Progress)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, id: JobId, lease: LeaseToken, report: ProgressReport, at: Moment) {
        let mut runs = self.runs();
        let before = runs.remove(&id).filter(|(token, _)| *token == lease).map(|(_, progress)| progress);
        let (fraction, message, data) = before.map_or((None, None, None), |p| (p.fraction, p.message, p.data));
        let reported = report.fraction.map(|fraction| fraction.clamp(0.0, 1.0));
        let progress = Progress {
            fraction: [fraction, reported].into_iter().flatten().reduce(f64::max),
            message: report.message.map(|message| Arc::from(cut(&message))).or(message),
            data: report.data.or(data),
            at,
        };
        if runs.len() >= MOST_JOBS {
            runs.pop_first();
        }
        runs.insert(id, (lease, progress));
        self.count.store(runs.len(), Ordering::Release);
    }

    /// Drops the runs that have ended.
    pub(crate) fn forget<'a>(&self, transitions: impl Iterator<Item = &'a Transition>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut runs = self.runs();
        let ended = transitions.filter(|transition| transition.lease.is_some());
        ended.for_each(|transition| drop(runs.remove(&transition.job.id)));
        self.count.store(runs.len(), Ordering::Release);
    }

    fn latest(&self, id: JobId) -> Option<Progress> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.runs().get(&id).map(|(_, progress)| progress.clone())
    }

    fn of(&self, job: &Job) -> Option<Progress> {
        let lease = job.lease.as_ref().filter(|_| self.count.load(Ordering::Acquire) > 0)?;
        self.runs().get(&job.id).filter(|(token, _)| *token == lease.token).map(|(_, progress)| progress.clone())
    }
}

fn cut(message: &str) -> &str {
    let end = (0..=message.len().min(MESSAGE_BYTES)).rev().find(|end| message.is_char_boundary(*end));
    &message[..end.unwrap_or(0)]
}

impl Engine {
    /// Records how far a run has come. A report of progress is a heartbeat too.
    ///
    /// # Errors
    /// The report says nothing or too much, the job does not allow it, or the store did not answer.
    pub async fn report_progress(&self, lease_ref: LeaseRef, report: ProgressReport) -> Result<Job, EngineError> {
        check(&report)?;
        let id = lease_ref.id;
        let now = self.clock.now();
        let extended = self.extend(vec![lease_ref], None).await?.pop();
        let job = extended.unwrap_or_else(|| refused(id, Err(redrive_store::Refusal::NotFound)))?;
        if let Some(lease) = &job.lease {
            self.watch.note(id, lease.token, report, now);
            self.event_log.announce();
        }
        Ok(job)
    }

    /// What was last reported of a job that runs.
    #[must_use]
    pub fn latest_progress(&self, id: JobId) -> Option<Progress> {
        let progress = self.watch.latest(id)?;
        Some(Progress { at: self.shown(progress.at), ..progress })
    }

    /// How far the present run of a job has come, where its worker has reported it.
    #[must_use]
    pub fn progress(&self, job: &Job) -> Option<Progress> {
        let progress = self.watch.of(job)?;
        Some(Progress { at: self.shown(progress.at), ..progress })
    }
}

fn check(report: &ProgressReport) -> Result<(), EngineError> {
    let mut problems = Vec::new();
    if *report == ProgressReport::default() {
        problems.push(Problem::with_message("/progress", "missing; a fraction, a message or data is required"));
    }
    if report.fraction.is_some_and(f64::is_nan) {
        problems.push(Problem::new("/progress", "not a number", "a number from 0 to 1"));
    }
    if let Some(data) = report.data.as_ref().filter(|data| data.len() > DATA_BYTES) {
        let allowed = format!("at most {DATA_BYTES} bytes; keep large data elsewhere and report its name");
        problems.push(Problem::new("/data", format!("{} bytes", data.len()), allowed));
    }
    if problems.is_empty() { Ok(()) } else { Err(EngineError::Invalid(Problems(problems))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let watch = Watch::default();
        let at = Moment::from_micros(1_770_976_800_000_000);
        let id = |number: usize| JobId::new(at, number as u128);
        for number in 0..MOST_JOBS + 5 {
            let report = ProgressReport { fraction: Some(0.5), ..ProgressReport::default() };
            watch.note(id(number), LeaseToken::derive(1, id(number), 1), report, at);
        }
        assert_eq!(watch.runs().len(), MOST_JOBS);
        assert!(!watch.runs().contains_key(&id(4)) && watch.runs().contains_key(&id(5)), "the oldest jobs leave");
        let long = "ü".repeat(MESSAGE_BYTES);
        assert_eq!(cut(&long).len(), MESSAGE_BYTES);
        assert_eq!(cut(&format!("x{long}")).len(), MESSAGE_BYTES - 1, "between two characters");
    }
}
