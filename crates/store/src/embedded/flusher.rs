//! The thread that writes frames. While it waits for the disk, the next frame fills; a frame with a
//! single record does not wait for more.

use super::core::{Core, Parcel, Rotated, Shared};
use super::fault::Trouble;
use super::log::Log;
use super::options::Options;
use crate::StoreError;
use std::sync::{Arc, PoisonError};

/// The flusher's own.
pub(super) struct Flusher {
    pub(super) shared: Arc<Shared>,
    pub(super) log: Log,
    pub(super) options: Options,
}

impl Flusher {
    /// Writes until it is told to end.
    pub(super) fn run(mut self) {
        while let Some(parcel) = self.next() {
            if let Err((trouble, parcel)) = self.write(parcel) {
                return self.fail(&trouble, parcel);
            }
        }
        if let Err(trouble) = self.log.close() {
            self.shared.lock().close_failed = Some(stopped(&trouble));
        }
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

    /// Answers who waits, and hands the parcel back where that failed.
    fn write(&mut self, mut parcel: Parcel) -> Result<(), (Trouble, Parcel)> {
        let mut written = 0;
        if !parcel.frame.is_empty() {
            written = parcel.frame.size() as u64;
            if let Err(trouble) = self.log.append(&mut parcel.frame) {
                return Err((trouble, parcel));
            }
        }
        parcel.ticket.serve(Ok(()));
        if parcel.rotate.is_some()
            && let Err(trouble) = self.log.rotate(0)
        {
            return Err((trouble, parcel));
        }
        let mut core = self.shared.lock();
        core.figures.flushes += u64::from(written > 0);
        core.figures.appended += written;
        core.figures.position = self.log.position();
        core.recycle(parcel.frame);
        if let Some(wanted) = parcel.rotate {
            let (segment, next_sequence) = (self.log.position().0, self.log.next_sequence());
            // Who asked may have given up, and then nobody needs the answer.
            let _ = wanted.send(Rotated { segment, next_sequence, appended: core.figures.appended });
        }
        Ok(())
    }

    fn fail(self, trouble: &Trouble, parcel: Parcel) {
        let why = stopped(trouble);
        let waiting = self.shared.lock().stop(why.clone());
        for ticket in waiting.into_iter().chain([parcel.ticket]) {
            ticket.serve(Err(why.clone()));
        }
    }

    fn ask_for_compaction(&self, core: &mut Core) {
        let log = core.figures.log_bytes();
        let least = self.options.snapshot_after_bytes.max(2 * core.ledger.live_bytes);
        let compaction = &mut core.compaction;
        if log > least && core.figures.appended >= compaction.not_before && compaction.wanted == compaction.over {
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
