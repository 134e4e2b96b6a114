//! The thread that writes frames. While it waits for the disk, the next frame fills; a frame with a
//! single record does not wait for more.

use super::core::{Core, Parcel, Rotated, Rotation, Shared, Written};
use super::fault::{Trouble, TroubleKind};
use super::log::Log;
use super::notice::Notice;
use super::options::Options;
use crate::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

/// How soon is tried again to get a descriptor, at first and at last.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// What is to be done next.
enum Next {
    Write(Parcel),
    /// There was nothing to write for a while.
    Rest,
    End,
}

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
        shared.notices.tell(&Notice::Stopped(why));
    }

    fn write_all(mut self) -> Result<(), Trouble> {
        loop {
            match self.next() {
                Next::Write(parcel) => self.write(parcel)?,
                Next::Rest => self.log.rest()?,
                Next::End => break,
            }
        }
        if let Err(trouble) = self.log.close() {
            self.shared.lock().close_failed = Some(stopped(&trouble));
        }
        Ok(())
    }

    fn next(&self) -> Next {
        let mut core = self.shared.lock();
        loop {
            self.ask_for_compaction(&mut core);
            if let Some(parcel) = core.take() {
                return Next::Write(parcel);
            }
            if core.flusher_ends {
                return Next::End;
            }
            core.flusher_sleeps = true;
            let woken = self.shared.to_flush.wait_timeout(core, self.options.look_every);
            let (guard, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            core = guard;
            core.flusher_sleeps = false;
            if timeout.timed_out() && !core.has_work() && !core.flusher_ends {
                return Next::Rest;
            }
        }
    }

    fn write(&mut self, mut parcel: Parcel) -> Result<(), Trouble> {
        if !parcel.frame.is_empty() {
            let size = parcel.frame.size() as u64;
            self.make_room(size)?;
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

    /// Sees to it that a frame of this size has a place. Without a descriptor for the next segment nothing is in
    /// doubt, and others will give theirs back: so this waits for one, as long as the store is not being closed.
    fn make_room(&mut self, size: u64) -> Result<(), Trouble> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.log.make_room(size) {
                Err(trouble) if trouble.kind == TroubleKind::Descriptors && !self.shared.lock().flusher_ends => {
                    self.wait_for_descriptor(&trouble);
                    thread::sleep(pause);
                    pause = LONGEST_PAUSE.min(2 * pause);
                }
                outcome => {
                    if self.shared.lock().waiting.take().is_some() {
                        self.shared.notices.tell(&Notice::GoesOn);
                    }
                    return outcome;
                }
            }
        }
    }

    /// Says why the store waits, once.
    fn wait_for_descriptor(&self, trouble: &Trouble) {
        let way_out = trouble.way_out();
        let why = format!("writes wait because the store {trouble}; to go on, {way_out} soon");
        if self.shared.lock().waiting.replace(why.clone()).is_none() {
            self.shared.notices.tell(&Notice::Waits(why));
        }
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
        let segment = self.log.segment();
        let (flushes, appended) = (before.flushes + flushes, before.appended + bytes);
        let last_frame = self.log.next_sequence() - 1;
        let written = Written { segment, last_frame, flushes, appended };
        self.shared.set_written(written);
        written
    }

    fn ask_for_compaction(&self, core: &mut Core) {
        let compaction = &core.compaction;
        // One that failed is tried again by the compactor, when it is time.
        let may = compaction.wanted == compaction.over && compaction.failures == 0;
        if may && self.shared.is_long(core, &self.options) {
            core.compaction.wanted += 1;
            self.shared.to_compact.notify_one();
        }
    }
}

/// What everybody is told from now on.
fn stopped(trouble: &Trouble) -> StoreError {
    let lost = match trouble.kind {
        TroubleKind::Gone => "No write was acknowledged after that",
        TroubleKind::Full | TroubleKind::Descriptors | TroubleKind::Other => "Nothing that was acknowledged is lost",
    };
    let way_out = trouble.way_out();
    StoreError::Unavailable(format!(
        "the store has stopped because it {trouble}. {lost}. To go on, {way_out} and start again"
    ))
}
