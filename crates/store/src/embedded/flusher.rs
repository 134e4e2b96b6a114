//! The thread that writes frames. While it waits for the disk, the next frame fills; a frame with a
//! single record does not wait for more.

use super::core::{Core, FlushBatch, OnDisk, Rotated, Rotation, Shared};
use super::fault::{IoError, IoErrorKind};
use super::log::Log;
use super::notice::Notice;
use super::options::Options;
use crate::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How soon is tried again to get a descriptor, at first and at last.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// What is to be done next.
enum Next {
    Write(FlushBatch),
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
    /// Writes until it is stopped, or fails.
    pub(super) fn run(self) {
        let shared = Arc::clone(&self.shared);
        let why = match catch_unwind(AssertUnwindSafe(|| self.write_all())) {
            Ok(Ok(())) => return,
            Ok(Err(io_error)) => stopped(&io_error),
            Err(_) => {
                StoreError::Broken("the store has stopped because its flusher panicked; this is a bug".to_owned())
            }
        };
        let waiting = shared.lock().stop(why.clone());
        for waiter in waiting {
            waiter.serve(Err(why.clone()));
        }
        shared.notices.tell(&Notice::Stopped(why));
    }

    fn write_all(mut self) -> Result<(), IoError> {
        loop {
            match self.next() {
                Next::Write(batch) => self.write(batch)?,
                Next::Rest => self.log.rest()?,
                Next::End => break,
            }
        }
        if let Err(io_error) = self.log.close() {
            self.shared.lock().close_failed = Some(stopped(&io_error));
        }
        Ok(())
    }

    fn next(&self) -> Next {
        let mut core = self.shared.lock();
        loop {
            self.ask_for_compaction(&mut core);
            if let Some(batch) = core.take() {
                return Next::Write(batch);
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

    fn write(&mut self, mut batch: FlushBatch) -> Result<(), IoError> {
        if !batch.frame.is_empty() {
            let size = batch.frame.size() as u64;
            let begun = Instant::now();
            self.make_room(size)?;
            self.log.append(&mut batch.frame)?;
            self.note(1, size);
            self.shared.observer.flushed(batch.changes, begun.elapsed());
        }
        batch.waiter.serve(Ok(()));
        if let Some(asker) = batch.rotate {
            match self.rotate() {
                // The caller may have gone, and then the answer is not needed.
                Ok(rotation) => drop(asker.send(rotation)),
                Err(io_error) => {
                    // Who asked loses the other end now, and looks here for the reason.
                    self.shared.lock().refuse(stopped(&io_error));
                    return Err(io_error);
                }
            }
        }
        self.shared.lock().recycle(batch.frame);
        Ok(())
    }

    /// Ensures that a frame of this size fits. Without a descriptor for the next segment nothing is in
    /// doubt, and others will give theirs back: so this waits for one, as long as the store is not being closed.
    fn make_room(&mut self, size: u64) -> Result<(), IoError> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.log.make_room(size) {
                Err(io_error) if io_error.kind == IoErrorKind::Descriptors && !self.shared.lock().flusher_ends => {
                    self.wait_for_descriptor(&io_error);
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
    fn wait_for_descriptor(&self, io_error: &IoError) {
        let way_out = io_error.way_out();
        let why = format!("writes wait because the store {io_error}; to go on, {way_out} soon");
        if self.shared.lock().waiting.replace(why.clone()).is_none() {
            self.shared.notices.tell(&Notice::Waits(why));
        }
    }

    /// Only what happens after the next segment is there concerns the log itself.
    fn rotate(&mut self) -> Result<Rotation, IoError> {
        let next = match self.log.prepare(0) {
            Ok(next) => next,
            Err(io_error) => return Ok(Err(io_error)),
        };
        self.log.rotate(next)?;
        let OnDisk { segment, appended, .. } = self.note(0, 0);
        Ok(Ok(Rotated { segment, next_sequence: self.log.next_sequence(), appended }))
    }

    /// Takes note of how far the log is safe.
    fn note(&self, flushes: u64, bytes: u64) -> OnDisk {
        let before = self.shared.written();
        let segment = self.log.segment();
        let (flushes, appended) = (before.flushes + flushes, before.appended + bytes);
        let last_frame = self.log.next_sequence() - 1;
        let written = OnDisk { segment, last_frame, flushes, appended };
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

/// The error of every later call.
fn stopped(io_error: &IoError) -> StoreError {
    let lost = match io_error.kind {
        IoErrorKind::Gone => "No write was acknowledged after that",
        IoErrorKind::Full | IoErrorKind::Descriptors | IoErrorKind::Other => "Nothing that was acknowledged is lost",
    };
    let way_out = io_error.way_out();
    StoreError::Unavailable(format!(
        "the store has stopped because it {io_error}. {lost}. To go on, {way_out} and start again"
    ))
}
