//! The thread that replaces the log by snapshots.

use super::core::{Base, Rotated, Shared};
use super::disk::Disk;
use super::fault::{Doing, IoError};
use super::frame::Frame;
use super::high_water::MarkFlusher;
use super::names::Name;
use super::notice::Notice;
use super::options::Options;
use super::read::survey;
use super::record;
use super::snapshot::{Cursor, Draft};
use crate::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The longest time between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The compactor's own.
pub(super) struct Compactor {
    pub(super) shared: Arc<Shared>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) options: Options,
    pub(super) mark: MarkFlusher,
}

/// What is to be done next.
enum Next {
    Compact,
    /// There was nothing to do for a while.
    Look,
    End,
}

/// Where a snapshot begins.
struct Start {
    rotated: Rotated,
    cursor: Cursor,
    /// The records of what those in the new segment may refer to.
    common: Vec<u8>,
}

/// Why a snapshot did not come about.
enum Stopped {
    /// The store has stopped, or is being closed.
    Store(StoreError),
    Disk(IoError),
}

impl From<IoError> for Stopped {
    fn from(io_error: IoError) -> Self {
        Self::Disk(io_error)
    }
}

impl Compactor {
    /// Makes a snapshot whenever one is wanted, and looks after the files, until it is stopped.
    pub(super) fn run(mut self) {
        let (mut start, mut retry_at) = (None, None);
        loop {
            let notices = match self.wait(retry_at) {
                Next::End => return,
                Next::Look => {
                    self.mark.flush(self.shared.written().last_frame);
                    self.look(&mut start).into_iter().collect()
                }
                Next::Compact => {
                    let begun = Instant::now();
                    let outcome = catch_unwind(AssertUnwindSafe(|| self.compact(&mut start)));
                    let outcome = outcome.unwrap_or_else(|_| {
                        let why = "the log was not compacted because the compactor panicked; this is a bug".to_owned();
                        Err(Stopped::Store(StoreError::Broken(why)))
                    });
                    self.shared.observer.compacted(begun.elapsed(), outcome.is_ok());
                    let notices = self.conclude(outcome.map_err(|why| self.explain(why)));
                    self.shared.compacted.notify_all();
                    let failures = self.shared.lock().compaction.failures;
                    retry_at = self.pause(failures).map(|pause| Instant::now() + pause);
                    notices
                }
            };
            notices.iter().for_each(|notice| self.shared.notices.tell(notice));
        }
    }

    /// Looks whether a file is gone without which the store could not be opened again. All jobs are in memory,
    /// so that a new snapshot makes up for it.
    fn look(&self, start: &mut Option<Start>) -> Option<Notice> {
        let lost = self.lost_file()?;
        let mut core = self.shared.lock();
        if core.stopped().is_some() {
            return None;
        }
        let known = std::mem::replace(&mut core.compaction.file_lost, true);
        if known {
            return None;
        }
        core.compaction.wanted += 1;
        // An earlier beginning may need the very file that is gone.
        *start = None;
        Some(Notice::FileLost(lost))
    }

    /// A file before the present segment that is not there any more. Where the folder cannot be read, the next
    /// write finds out why.
    fn lost_file(&self) -> Option<PathBuf> {
        let base = self.shared.lock().base.number;
        let found = survey(&*self.disk, &self.dir).ok()?;
        let snapshot = (base > 0 && found.snapshot != Some(base)).then_some(Name::Snapshot(base));
        let lost = snapshot.or(found.missing.map(Name::Segment))?;
        Some(lost.within(&self.dir))
    }

    /// Takes note of how a compaction ended. Answers what the operator should know.
    fn conclude(&self, outcome: Result<(), StoreError>) -> Vec<Notice> {
        let mut core = self.shared.lock();
        // A store that stops, or is being closed, has its own reasons.
        let own_failure = core.stopped().is_none() && !core.compactor_ends;
        let compaction = &mut core.compaction;
        compaction.over = compaction.begun;
        compaction.last = Some(outcome.clone());
        let failures = compaction.failures;
        match outcome {
            Ok(()) => {
                compaction.failures = 0;
                let replaced = std::mem::take(&mut compaction.file_lost);
                let works = (failures > 0).then_some(Notice::CompactionWorks);
                works.into_iter().chain(replaced.then_some(Notice::FileReplaced)).collect()
            }
            Err(why) => {
                compaction.failures = failures.saturating_add(1);
                (failures == 0 && own_failure).then_some(Notice::CompactionFails(why)).into_iter().collect()
            }
        }
    }

    /// Waits until there is something to do; at `retry_at`, what failed is tried again.
    fn wait(&self, retry_at: Option<Instant>) -> Next {
        let mut core = self.shared.lock();
        loop {
            if core.compactor_ends {
                return Next::End;
            }
            if core.compaction.wanted > core.compaction.over {
                core.compaction.begun = core.compaction.wanted;
                return Next::Compact;
            }
            let look = self.options.look_every;
            let retry = retry_at.map(|at| at.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
            let pause = retry.map_or(look, |left| left.min(look));
            let woken = self.shared.to_compact.wait_timeout(core, pause).unwrap_or_else(PoisonError::into_inner);
            core = woken.0;
            if !woken.1.timed_out() {
                continue;
            }
            let is_wanted = self.shared.is_long(&core, &self.options) || core.compaction.file_lost;
            match retry_at.is_some_and(|at| at <= Instant::now()) && is_wanted {
                true => core.compaction.wanted += 1,
                false => return Next::Look,
            }
        }
    }

    /// How long to wait after a number of failures in a row: the cause may persist.
    fn pause(&self, failures: u32) -> Option<Duration> {
        let doublings = failures.checked_sub(1)?.min(20);
        Some(self.options.retry_compaction_after.saturating_mul(1 << doublings).min(LONGEST_PAUSE))
    }

    /// Makes a snapshot. Where it fails, `kept` has the place where it began, for the next attempt: otherwise
    /// every attempt would take another segment of a disk that may be full.
    fn compact(&self, kept: &mut Option<Start>) -> Result<(), Stopped> {
        let is_near = |start: &Start| {
            let since = self.shared.written().appended.saturating_sub(start.rotated.appended);
            since <= self.options.snapshot_after_bytes
        };
        let start = match kept.take().filter(is_near) {
            Some(start) => start,
            None => self.rotate()?,
        };
        let Start { rotated, cursor, common } = &*kept.insert(start);
        let mut frame = Frame::new();
        record::begin(frame.records(), rotated.next_sequence);
        frame.records().extend_from_slice(common);
        let mut draft = Draft::create(&*self.disk, &self.dir, rotated.segment)?;
        if let Err(why) = self.fill(&mut draft, frame, cursor.clone()) {
            // The next opening removes it, where this does not.
            let _ = draft.discard();
            return Err(why);
        }
        let (bytes, number) = (draft.publish()?, rotated.segment);
        self.shared.lock().base = Base { number, at: rotated.appended, bytes };
        *kept = None;
        Ok(self.remove_before(number)?)
    }

    /// Starts a new segment, and notes in the same step what its records may refer to.
    fn rotate(&self) -> Result<Start, Stopped> {
        let mut cursor = Cursor::default();
        let (sender, receiver) = channel();
        let mut common = Vec::new();
        let mut core = self.shared.lock();
        if let Some(why) = core.stopped() {
            return Err(Stopped::Store(why.clone()));
        }
        cursor.write_common(&core.store_state, &mut common);
        core.cut(sender);
        drop(core);
        self.shared.to_flush.notify_one();
        let rotated = receiver.recv().map_err(|_| self.stopped())??;
        Ok(Start { rotated, cursor, common })
    }

    fn fill(&self, draft: &mut Draft<'_>, mut frame: Frame, mut cursor: Cursor) -> Result<(), Stopped> {
        loop {
            let core = self.shared.lock();
            if core.compactor_ends || core.stopped().is_some() {
                drop(core);
                return Err(self.stopped());
            }
            let (state, most) = (&core.store_state, self.options.snapshot_chunk_jobs);
            let more =
                cursor.write_jobs(state, most, frame.records()) || cursor.write_runs(state, most, frame.records());
            drop(core);
            if !more {
                break;
            }
            draft.append(&mut frame)?;
            frame.clear(usize::MAX);
        }
        record::end(frame.records(), cursor.jobs);
        draft.append(&mut frame)?;
        // What the snapshot has must be in the log too before it counts: otherwise a power cut could
        // leave a part of a verb that was never flushed.
        let waiter = self.shared.lock().waiter();
        self.shared.to_flush.notify_one();
        waiter.wait().map_err(Stopped::Store)
    }

    /// Removes the files that a snapshot replaces.
    fn remove_before(&self, number: u64) -> Result<(), IoError> {
        let names = self.disk.list(&self.dir).doing("list", &self.dir)?;
        for name in names.iter().filter_map(|name| Name::parse(name)) {
            if matches!(name, Name::Segment(n) | Name::Snapshot(n) if n < number) {
                let path = name.within(&self.dir);
                self.disk.remove(&path).doing("remove", &path)?;
            }
        }
        self.disk.sync_dir(&self.dir).doing("flush the folder", &self.dir)
    }

    fn stopped(&self) -> Stopped {
        let why = self.shared.lock().stopped().cloned();
        Stopped::Store(why.unwrap_or_else(|| StoreError::Unavailable("the store is being closed".to_owned())))
    }

    fn explain(&self, why: Stopped) -> StoreError {
        match why {
            Stopped::Store(error) => error,
            Stopped::Disk(io_error) => {
                let way_out = io_error.way_out();
                StoreError::Unavailable(format!(
                    "the log was not compacted because the store {io_error}; it goes on, and the log grows: {way_out}"
                ))
            }
        }
    }
}
