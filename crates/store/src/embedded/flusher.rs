//! The thread that writes frames. While it waits for the disk, the next frame fills; a frame with a
//! single record does not wait for more.

use super::core::{Core, Parcel, Rotated, Rotation, Shared};
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
        self.shared.set_position(self.log.position());
        parcel.ticket.serve(Ok(()));
        let rotation = match parcel.rotate.take() {
            Some(asker) => match self.rotate() {
                Ok(rotation) => Some((asker, rotation)),
                Err(trouble) => return Err((trouble, parcel)),
            },
            None => None,
        };
        let mut core = self.shared.lock();
        core.figures.flushes += u64::from(written > 0);
        core.figures.appended += written;
        core.recycle(parcel.frame);
        if let Some((asker, rotation)) = rotation {
            let appended = core.figures.appended;
            // Who asked may have given up, and then nobody needs the answer.
            let _ = asker.send(rotation.map(|rotated| Rotated { appended, ..rotated }));
        }
        Ok(())
    }

    /// Only what happens after the next segment is there concerns the log itself.
    fn rotate(&mut self) -> Result<Rotation, Trouble> {
        let next = match self.log.prepare(0) {
            Ok(next) => next,
            Err(trouble) => return Ok(Err(trouble)),
        };
        self.log.rotate(next)?;
        let position = self.log.position();
        self.shared.set_position(position);
        Ok(Ok(Rotated { segment: position.0, next_sequence: self.log.next_sequence(), appended: 0 }))
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
