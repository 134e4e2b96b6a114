//! The thread that writes frames. While it waits for the disk, the next frame fills; a frame with a
//! single record does not wait for more.

use super::core::{Core, Parcel, Rotated, Rotation, Shared, Written};
use super::fault::Trouble;
use super::log::Log;
use super::options::Options;
use crate::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

/// The flusher's own.
pub(super) struct Flusher {
    pub(super) shared: Arc<Shared>,
    pub(super) log: Log,
    pub(super) options: Options,
}

impl Flusher {
    /// Writes until it is told to end, or cannot.
    pub(super) fn run(self) {
        let shared = Arc::clone(&self.shared);
        let why = match catch_unwind(AssertUnwindSafe(|| self.write_all())) {
            Ok(Ok(())) => return,
            Ok(Err(trouble)) => stopped(&trouble),
            Err(_) => {
                StoreError::Broken("the store has stopped because its flusher panicked; this is a bug".to_owned())
            }
        };
        let waiting = shared.lock().stop(why.clone());
        for ticket in waiting {
            ticket.serve(Err(why.clone()));
        }
    }

    fn write_all(mut self) -> Result<(), Trouble> {
        while let Some(parcel) = self.next() {
            self.write(parcel)?;
        }
        if let Err(trouble) = self.log.close() {
            self.shared.lock().close_failed = Some(stopped(&trouble));
        }
        Ok(())
    }

    fn next(&self) -> Option<Parcel> {
        let mut core = self.shared.lock();
        loop {
            self.ask_for_compaction(&mut core);
            if let Some(parcel) = core.take() {
                return Some(parcel);
            }
            if core.flusher_ends {
                return None;
            }
            core.flusher_sleeps = true;
            core = self.shared.to_flush.wait(core).unwrap_or_else(PoisonError::into_inner);
            core.flusher_sleeps = false;
        }
    }

    fn write(&mut self, mut parcel: Parcel) -> Result<(), Trouble> {
        if !parcel.frame.is_empty() {
            let size = parcel.frame.size() as u64;
            self.log.append(&mut parcel.frame)?;
            self.note(1, size);
        }
        parcel.ticket.serve(Ok(()));
        if let Some(asker) = parcel.rotate {
            match self.rotate() {
                // Who asked may have given up, and then nobody needs the answer.
                Ok(rotation) => drop(asker.send(rotation)),
                Err(trouble) => {
                    // Who asked loses the other end now, and looks here for the reason.
                    self.shared.lock().refuse(stopped(&trouble));
                    return Err(trouble);
                }
            }
        }
        self.shared.lock().recycle(parcel.frame);
        Ok(())
    }

    /// Only what happens after the next segment is there concerns the log itself.
    fn rotate(&mut self) -> Result<Rotation, Trouble> {
        let next = match self.log.prepare(0) {
            Ok(next) => next,
            Err(trouble) => return Ok(Err(trouble)),
        };
        self.log.rotate(next)?;
        let Written { segment, appended, .. } = self.note(0, 0);
        Ok(Ok(Rotated { segment, next_sequence: self.log.next_sequence(), appended }))
    }

    /// Takes note of how far the log is safe.
    fn note(&self, flushes: u64, bytes: u64) -> Written {
        let before = self.shared.written();
        let (segment, offset) = self.log.position();
        let (flushes, appended) = (before.flushes + flushes, before.appended + bytes);
        let written = Written { segment, offset, flushes, appended };
        self.shared.set_written(written);
        written
    }

    fn ask_for_compaction(&self, core: &mut Core) {
        let appended = self.shared.written().appended;
        let log = appended.saturating_sub(core.base.at);
        let least = self.options.snapshot_after_bytes.max(2 * core.ledger.live_bytes);
        let compaction = &mut core.compaction;
        if log > least && appended >= compaction.not_before && compaction.wanted == compaction.over {
            compaction.wanted += 1;
            self.shared.to_compact.notify_one();
        }
    }
}

/// What everybody is told from now on.
fn stopped(trouble: &Trouble) -> StoreError {
    let way_out = if trouble.full { "Make room on the disk" } else { "See to the disk" };
    StoreError::Unavailable(format!(
        "the store has stopped because it {trouble}. Nothing that was acknowledged is lost. {way_out} and start again"
    ))
}
