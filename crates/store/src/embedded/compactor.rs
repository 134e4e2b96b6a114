//! The thread that replaces the log by snapshots.

use super::core::{Base, Rotated, Shared};
use super::disk::Disk;
use super::fault::{Doing, Trouble};
use super::frame::Frame;
use super::names::Name;
use super::options::Options;
use super::record;
use super::snapshot::{Cursor, Draft};
use crate::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

/// The compactor's own.
pub(super) struct Compactor {
    pub(super) shared: Arc<Shared>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) options: Options,
    /// Held by whoever removes files, or wants none to be removed.
    pub(super) files: Arc<Mutex<()>>,
}

/// Why a snapshot did not come about.
enum Stopped {
    /// The store has stopped, or is being closed.
    Store(StoreError),
    Disk(Trouble),
}

impl From<Trouble> for Stopped {
    fn from(trouble: Trouble) -> Self {
        Self::Disk(trouble)
    }
}

impl Compactor {
    /// Makes a snapshot whenever one is wanted, until it is told to end.
    pub(super) fn run(self) {
        while self.wait() {
            let outcome = catch_unwind(AssertUnwindSafe(|| self.compact()));
            let outcome = outcome.unwrap_or_else(|_| {
                let why = "the log was not compacted because the compactor panicked; this is a bug".to_owned();
                Err(Stopped::Store(StoreError::Broken(why)))
            });
            let mut core = self.shared.lock();
            let appended = self.shared.written().appended;
            let compaction = &mut core.compaction;
            compaction.over = compaction.begun;
            compaction.last = Some(outcome.map_err(|why| self.explain(why)));
            if compaction.last.as_ref().is_some_and(Result::is_err) {
                // Not at once again: what stood in the way will still be there.
                compaction.not_before = appended.saturating_add(self.options.snapshot_after_bytes);
            }
            drop(core);
            self.shared.compacted.notify_all();
        }
    }

    /// False when it is time to end.
    fn wait(&self) -> bool {
        let mut core = self.shared.lock();
        loop {
            if core.compactor_ends {
                return false;
            }
            if core.compaction.wanted > core.compaction.over {
                core.compaction.begun = core.compaction.wanted;
                return true;
            }
            core = self.shared.to_compact.wait(core).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn compact(&self) -> Result<(), Stopped> {
        let mut frame = Frame::new();
        let (rotated, cursor) = self.rotate(&mut frame)?;
        let mut draft = Draft::create(&*self.disk, &self.dir, rotated.segment)?;
        if let Err(why) = self.fill(&mut draft, frame, cursor) {
            // The next opening removes it, where this does not.
            let _ = draft.discard();
            return Err(why);
        }
        let bytes = draft.publish()?;
        self.shared.lock().base = Base { at: rotated.appended, bytes };
        Ok(self.remove_before(rotated.segment)?)
    }

    /// Starts a new segment, and notes in the same step what its records may refer to.
    fn rotate(&self, frame: &mut Frame) -> Result<(Rotated, Cursor), Stopped> {
        let mut cursor = Cursor::default();
        let (sender, receiver) = channel();
        let mut common = Vec::new();
        let mut core = self.shared.lock();
        if let Some(why) = core.stopped() {
            return Err(Stopped::Store(why.clone()));
        }
        cursor.write_common(&core.ledger, &mut common);
        core.cut(sender);
        drop(core);
        self.shared.to_flush.notify_one();
        let rotated = receiver.recv().map_err(|_| self.stopped())??;
        record::begin(frame.records(), rotated.next_sequence);
        frame.records().extend_from_slice(&common);
        Ok((rotated, cursor))
    }

    fn fill(&self, draft: &mut Draft<'_>, mut frame: Frame, mut cursor: Cursor) -> Result<(), Stopped> {
        loop {
            let core = self.shared.lock();
            if core.compactor_ends || core.stopped().is_some() {
                drop(core);
                return Err(self.stopped());
            }
            let more = cursor.write_jobs(&core.ledger, self.options.snapshot_chunk_jobs, frame.records());
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
        let ticket = self.shared.lock().ticket();
        self.shared.to_flush.notify_one();
        ticket.wait().map_err(Stopped::Store)
    }

    /// Removes the files that a snapshot replaces.
    fn remove_before(&self, number: u64) -> Result<(), Trouble> {
        let _files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
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
            Stopped::Disk(trouble) => {
                let way_out = if trouble.full { "make room on the disk" } else { "see to the disk" };
                StoreError::Unavailable(format!(
                    "the log was not compacted because the store {trouble}; it goes on, and the log grows: {way_out}"
                ))
            }
        }
    }
}
