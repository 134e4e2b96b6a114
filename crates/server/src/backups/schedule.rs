//! Backups by a schedule.

use super::progress::Made;
use super::{BackupError, BackupFolder, BackupLabel, BackupSchedule};
use crate::Server;
use crate::app::App;
use crate::local::LocalStore;
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Span};
use redrive_store::embedded::Findings;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use tracing::{error, info};

/// How the names of backups that the schedule has made begin.
pub(crate) const SCHEDULED: &str = "scheduled-";
/// After how long a backup that failed is tried again. The time doubles with each failure.
const RETRY: Span = Span::from_secs(60);
/// The longest of these times.
const LONGEST_RETRY: Span = Span::from_secs(3_600);
/// How long to sleep at most: the clock of the operating system may count less than the time that passes.
const LONGEST_SLEEP: Span = Span::from_secs(60);

impl Server {
    /// Makes backups as the schedule wants it, until `stopped`. Without a schedule it returns at once.
    pub async fn make_backups(&self, stopped: impl Future<Output = ()>) {
        let Some((local, folder, schedule)) = self.app.local.get().and_then(LocalStore::schedule) else { return };
        let mut stopped = pin!(stopped);
        let app = &self.app;
        let mut wait = first(app, local, folder, schedule).await;
        loop {
            let due = app.engine.uptime().plus(wait);
            local.progress().next(app.engine.now().after(wait));
            while app.engine.uptime() < due {
                let left = less(due, app.engine.uptime()).at_most(LONGEST_SLEEP);
                tokio::select! {
                    () = &mut stopped => return,
                    () = tokio::time::sleep(left.into()) => {}
                }
            }
            wait = tokio::select! {
                // What there is of the backup then is removed with the next one.
                () = &mut stopped => return,
                wait = next(app, local, folder, schedule) => wait,
            };
        }
    }
}

/// After how long the first backup is due: servers that are restarted often make backups all the same.
async fn first(app: &App, local: &LocalStore, folder: &Path, schedule: BackupSchedule) -> Span {
    let (folder, store) = (folder.to_owned(), local.dir());
    let looked = tokio::task::spawn_blocking(move || BackupFolder::open(&folder)?.scheduled(&store)).await;
    // A folder that cannot be read is reported with the first backup.
    let Some((_, newest)) = looked.ok().and_then(Result::ok).and_then(|mut scheduled| scheduled.pop()) else {
        return Span::ZERO;
    };
    let taken_at = newest.label.taken_at;
    local.progress().made(Made { path: newest.path, taken_at }, None);
    left(taken_at, app.engine.now(), schedule.every)
}

/// How long it is until the backup after one from `taken_at`. A clock that was set back delays it by one period at
/// most.
fn left(taken_at: Moment, now: Moment, every: Span) -> Span {
    less(every, now.since(taken_at))
}

/// Makes a backup; returns after how long the next one is due.
async fn next(app: &App, local: &LocalStore, folder: &Path, schedule: BackupSchedule) -> Span {
    let begun = app.engine.uptime();
    let (made, deleted) = match made(app, local, folder, schedule).await {
        Ok(made) => made,
        Err(why) => {
            let (times, wait) = local.progress().failed(app.engine.now(), schedule.every, why.clone());
            error!(times, "the backup failed: {why}; the next one is tried in {wait}");
            return wait;
        }
    };
    let (path, taken_at) = (made.0.display(), made.1);
    info!(%path, "backup {path}: {} jobs, {} bytes", made.2, made.3);
    let surplus = match deleted {
        Ok(paths) => {
            paths.iter().for_each(|path| info!("deleted the backup {}: it is one too many", path.display()));
            None
        }
        Err(why) => {
            error!("old backups could not be deleted: {why}");
            Some(why.to_string())
        }
    };
    local.progress().made(Made { path: made.0.clone(), taken_at }, surplus);
    less(schedule.every, less(app.engine.uptime(), begun))
}

/// The backup, its time, jobs and bytes.
type Report = (PathBuf, Moment, usize, u64);

async fn made(
    app: &App,
    local: &LocalStore,
    folder: &Path,
    schedule: BackupSchedule,
) -> Result<(Report, Result<Vec<PathBuf>, BackupError>), String> {
    // A backup that a caller asked for is as good a reason to wait as the disk.
    let alone = Arc::clone(&local.copying).lock_owned().await;
    let (local, folder, taken_at) = (local.clone(), folder.to_owned(), app.engine.now());
    let working = move || {
        let _alone = alone;
        let folder_lock = BackupFolder::open(&folder)?;
        let store = local.dir();
        let number = folder_lock.scheduled(&store)?.last().map_or(1, |(number, _)| number + 1);
        let name = format!("{SCHEDULED}{}-{number}", compact(taken_at));
        let label = BackupLabel { taken_at, store: store.clone(), scheduled: Some(number) };
        let findings = folder_lock.add(&name, &label, |to| local.store.backup(to, &mut |_| {}))?;
        let report = (folder.join(name), taken_at, total(&findings), bytes(&findings));
        Ok((report, folder_lock.retain(&store, schedule.keep)))
    };
    let worked = tokio::task::spawn_blocking(working).await;
    worked.map_err(|error| format!("it broke off: {error}"))?.map_err(|error: BackupError| error.to_string())
}

/// What is left of a length of time after another one; zero if nothing is.
fn less(span: Span, passed: Span) -> Span {
    Span::saturating_ms(span.ms() - passed.ms())
}

fn total(findings: &Findings) -> usize {
    findings.jobs.iter().sum()
}

const fn bytes(findings: &Findings) -> u64 {
    findings.snapshot_bytes + findings.log_bytes
}

/// After how long a backup is tried again that failed `times` times in a row.
pub(super) fn retry_after(times: u32, every: Span) -> Span {
    let doubled = RETRY.times(f64::from(2_u32.pow(times.saturating_sub(1).min(10))));
    doubled.at_most(LONGEST_RETRY).at_most(every)
}

/// The name of a backup that a caller did not name: `redrive-20261118T011500Z`
pub(crate) fn default_name(now: Moment) -> String {
    format!("redrive-{}", compact(now))
}

/// `20261118T011500Z`
fn compact(at: Moment) -> String {
    let digits: String = rfc3339(at).chars().take(19).filter(char::is_ascii_alphanumeric).collect();
    format!("{digits}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(number: u32) -> Span {
        Span::from_secs(number * 60)
    }

    #[test]
    fn a_failed_backup_is_tried_again_later_and_later_but_within_its_period() {
        let waits = [1, 2, 3, 7, 1_000].map(|times| retry_after(times, minutes(1_440)));
        assert_eq!(waits, [minutes(1), minutes(2), minutes(4), minutes(60), minutes(60)]);
        assert_eq!(retry_after(9, minutes(5)), minutes(5));
    }

    #[test]
    fn a_restart_neither_skips_nor_repeats_a_backup_and_a_clock_set_back_delays_it_by_one_period() {
        let at = |minute: i64| Moment::from_micros(minute * 60_000_000);
        assert_eq!(left(at(0), at(20), minutes(60)), minutes(40));
        assert_eq!(left(at(0), at(600), minutes(60)), Span::ZERO);
        assert_eq!(left(at(600), at(0), minutes(60)), minutes(60));
    }
}
