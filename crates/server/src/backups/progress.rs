//! How the schedule of backups is doing, as health tells it.

use super::schedule::retry_after;
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Span};
use serde_json::{Value, json};
use std::path::PathBuf;

/// How the schedule of backups is doing.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    last: Option<Made>,
    failing: Option<Failing>,
    /// Why backups that are not to be kept any more were not deleted.
    surplus: Option<String>,
    next_at: Option<Moment>,
}

/// The last backup that was made.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) path: PathBuf,
    pub(crate) taken_at: Moment,
}

/// Backups that failed in a row.
#[derive(Debug)]
struct Failing {
    since: Moment,
    times: u32,
    why: String,
}

impl Progress {
    /// A backup is there. `surplus` says why older ones are still there too.
    pub(crate) fn made(&mut self, made: Made, surplus: Option<String>) {
        self.last = Some(made);
        self.failing = None;
        self.surplus = surplus;
    }

    /// A backup failed. Returns how many did in a row, and after how long the next one is tried.
    pub(crate) fn failed(&mut self, now: Moment, every: Span, why: String) -> (u32, Span) {
        let (since, times) = self.failing.as_ref().map_or((now, 0), |failing| (failing.since, failing.times));
        let times = times.saturating_add(1);
        self.failing = Some(Failing { since, times, why });
        (times, retry_after(times, every))
    }

    pub(crate) const fn next(&mut self, at: Moment) {
        self.next_at = Some(at);
    }

    pub(crate) fn health(&self) -> Value {
        let last = self.last.as_ref().map(|Made { path, taken_at }| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            json!({ "name": name, "taken_at": rfc3339(*taken_at) })
        });
        json!({
            "status": if self.failing.is_some() { "failing" } else { "ok" },
            "last": last,
            "next_at": self.next_at.map(rfc3339),
        })
    }

    /// What an operator should know.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let surplus = self.surplus.as_ref().map(|why| format!("old backups could not be deleted: {why}"));
        self.failure().into_iter().chain(surplus)
    }

    fn failure(&self) -> Option<String> {
        let Failing { since, times, why } = self.failing.as_ref()?;
        let last = self.last.as_ref().map_or("there is none yet".to_owned(), |made| {
            format!("the last one is {}, taken at {}", made.path.display(), rfc3339(made.taken_at))
        });
        Some(format!("no backup could be made since {} ({times} times): {why}; {last}", rfc3339(*since)))
    }
}
