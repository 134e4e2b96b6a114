//! A file with all jobs, which replaces the log up to a segment.
//!
//! It is written while the verbs go on, some jobs at a time, each as it stands at that moment. That does
//! no harm: the log is read after it from the segment on that began before the first of them was looked
//! at, and its records say how things stand, not how they changed.

use super::disk::{Disk, DiskFile};
use super::fault::{Doing, IoError};
use super::frame::Frame;
use super::header::{FIRST_FRAME, FileHeader, Kind, fresh_salt};
use super::names::Name;
use super::record;
use super::store_state::StoreState;
use crate::{Group, RunId};
use std::path::{Path, PathBuf};

/// How much is written before it is flushed, so that the flushes of the log never wait for long.
const FLUSH_BYTES: u64 = 16 << 20;
/// A chunk ends early when it is this long: large payloads take time, too.
const CHUNK_BYTES: usize = 1 << 20;

/// What a snapshot has of the state so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    /// The next numbers of shared specifications and policies.
    numbers: (u64, u64),
    queue_indexes: usize,
    clock: bool,
    /// How often the number of a removed queue had been reused by then.
    retaken: u64,
    place: usize,
    pub(super) jobs: u64,
    /// The last run.
    run: Option<RunId>,
    /// The last group.
    group: Option<Group>,
    /// Whether all runs are written.
    runs: bool,
}

impl Cursor {
    /// Queues, policies and shared specifications that were added since the last call.
    pub(super) fn write_common(&mut self, store_state: &StoreState, out: &mut Vec<u8>) {
        // A queue that reuses the number of a removed one is behind the cursor. To write all of them again
        // does no harm.
        if store_state.indexes.retaken != self.retaken {
            (self.queue_indexes, self.retaken) = (0, store_state.indexes.retaken);
        }
        for queue_index in store_state.indexes.queue_indexes_from(self.queue_indexes) {
            record::queue(out, &queue_index.name, queue_index.paused, queue_index.created);
        }
        self.queue_indexes = store_state.indexes.queue_indexes.len();
        self.numbers = store_state.catalogue.write(self.numbers, out);
        if !std::mem::replace(&mut self.clock, true) {
            if let Some((at, ahead_us)) = store_state.clock {
                record::clock(out, at, ahead_us);
            }
            // What was written later, the log says.
            if store_state.runs.last_message() > 0 {
                record::last_message(out, store_state.runs.last_message());
            }
        }
    }

    /// The next jobs, about `most`, after what they refer to. False when there are no more.
    pub(super) fn write_jobs(&mut self, store_state: &StoreState, most: usize, out: &mut Vec<u8>) -> bool {
        self.write_common(store_state, out);
        let end = self.place.saturating_add(most.max(1));
        for (place, slot) in store_state.slots.range(self.place..end) {
            let job = slot.job();
            record::put(out, &job, slot.shared_spec.number, store_state.key(place).map(|key| &**key));
            for run in &job.failures {
                record::failure(out, job.id, run);
            }
            for revision in &job.revisions {
                record::revision(out, job.id, revision);
            }
            self.jobs += 1;
            if out.len() > CHUNK_BYTES {
                self.place = place as usize + 1;
                return self.place < store_state.slots.places();
            }
        }
        self.place = end;
        end < store_state.slots.places()
    }

    /// The next runs and their messages, about `most` runs, then what is stored of limited groups. False when there
    /// are no more.
    pub(super) fn write_runs(&mut self, store_state: &StoreState, most: usize, out: &mut Vec<u8>) -> bool {
        if !self.runs {
            for (written, slot) in store_state.runs.behind(self.run).enumerate() {
                if written >= most.max(1) || out.len() > CHUNK_BYTES {
                    return true;
                }
                slot.write(out);
                self.run = Some(slot.run.id);
            }
            self.runs = true;
        }
        self.group = store_state.groups.write(self.group.take(), most, out);
        self.group.is_some()
    }
}

/// A snapshot that is being written under its preliminary name.
pub(super) struct Draft<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    file: Box<dyn DiskFile>,
    path: PathBuf,
    header: FileHeader,
    offset: u64,
    flushed: u64,
    sequence: u64,
}

impl<'a> Draft<'a> {
    pub(super) fn create(disk: &'a dyn Disk, dir: &'a Path, number: u64) -> Result<Self, IoError> {
        let path = Name::Draft(number).within(dir);
        let header = FileHeader {
            kind: Kind::Snapshot,
            number,
            length: 0,
            salt: fresh_salt().doing("choose a salt for", &path)?,
        };
        let mut file = disk.create(&path).doing("create", &path)?;
        file.write_at(0, &header.encode()).doing("write to", &path)?;
        Ok(Self { disk, dir, file, path, header, offset: FIRST_FRAME, flushed: 0, sequence: 1 })
    }

    pub(super) fn append(&mut self, frame: &mut Frame) -> Result<(), IoError> {
        let bytes = frame.finish(self.header.salt, self.sequence);
        self.file.write_at(self.offset, bytes).doing("write to", &self.path)?;
        self.offset += bytes.len() as u64;
        self.sequence += 1;
        if self.offset - self.flushed > FLUSH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Gives it its final name. Returns its length.
    pub(super) fn publish(mut self) -> Result<u64, IoError> {
        self.flush()?;
        let path = Name::Snapshot(self.header.number).within(self.dir);
        self.disk.rename(&self.path, &path).doing("rename", &self.path)?;
        self.disk.sync_dir(self.dir).doing("flush the folder", self.dir)?;
        Ok(self.offset)
    }

    /// Removes what was written.
    pub(super) fn discard(self) -> Result<(), IoError> {
        self.disk.remove(&self.path).doing("remove", &self.path)
    }

    fn flush(&mut self) -> Result<(), IoError> {
        self.flushed = self.offset;
        self.file.sync().doing("flush", &self.path)
    }
}
