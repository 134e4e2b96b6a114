//! What the verbs and the threads of the store share.

use super::fault::IoError;
use super::frame::Frame;
use super::notice::Notices;
use super::options::Options;
use super::store_state::StoreState;
use super::waiter::CommitWaiter;
use crate::StoreError;
use crate::observer::Observed;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

/// The one lock of the store, and the signals that go with it.
pub(super) struct Shared {
    core: Mutex<Core>,
    /// How many wait for the lock.
    waiting: AtomicUsize,
    written: Mutex<OnDisk>,
    /// There is something to write, or to stop for.
    pub(super) to_flush: Condvar,
    /// A compaction is wanted, or it is time to stop.
    pub(super) to_compact: Condvar,
    /// A compaction is over.
    pub(super) compacted: Condvar,
    pub(super) notices: Notices,
    pub(super) observer: Observed,
}

/// What is behind the lock.
pub(super) struct Core {
    pub(super) store_state: StoreState,
    outbox: VecDeque<FlushBatch>,
    /// The waiter of the frame that is being filled.
    open: Arc<CommitWaiter>,
    /// The waiter of the newest frame with records.
    latest: Arc<CommitWaiter>,
    /// The waiter of the frame that is being flushed.
    in_hand: Arc<CommitWaiter>,
    /// An empty frame, to be filled next without a new allocation.
    spare: Option<Frame>,
    /// Why the store answers no more.
    stopped: Option<StoreError>,
    /// What writes wait for, besides the disk.
    pub(super) waiting: Option<String>,
    /// Why the end of the log could not be marked.
    pub(super) close_failed: Option<StoreError>,
    pub(super) flusher_sleeps: bool,
    /// The flusher ends once it has nothing left to write.
    pub(super) flusher_ends: bool,
    /// The compactor gives up what it does, and ends.
    pub(super) compactor_ends: bool,
    pub(super) compaction: Compaction,
    pub(super) base: Base,
}

/// What goes to the flusher together.
pub(super) struct FlushBatch {
    pub(super) frame: Frame,
    /// How many changes of jobs the frame has.
    pub(super) changes: usize,
    pub(super) waiter: Arc<CommitWaiter>,
    /// Who wants a new segment after this frame.
    pub(super) rotate: Option<Sender<Rotation>>,
}

/// Where the log goes on after a rotation, or why it goes on where it was.
pub(super) type Rotation = Result<Rotated, IoError>;

/// Where the log goes on after a rotation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotated {
    pub(super) segment: u64,
    pub(super) next_sequence: u64,
    /// What [`OnDisk::appended`] was then.
    pub(super) appended: u64,
}

/// What is wanted of the compactor, and what became of it.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    /// How many were asked for, how many of those were begun, and how many are over.
    pub(super) wanted: u64,
    pub(super) begun: u64,
    pub(super) over: u64,
    /// The outcome of the last one.
    pub(super) last: Option<Result<(), StoreError>>,
    /// How many have failed in a row.
    pub(super) failures: u32,
    /// A file before the present segment is gone, and a new snapshot has to make up for it.
    pub(super) file_lost: bool,
}

/// What is on disk: never behind what was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnDisk {
    /// The segment that is written to.
    pub(super) segment: u64,
    /// The number of the last frame that is safe.
    pub(super) last_frame: u64,
    /// How often was flushed since the store was opened.
    pub(super) flushes: u64,
    /// How many bytes of frames there were then behind the newest snapshot, and were appended since.
    pub(super) appended: u64,
}

/// The newest snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Base {
    /// Its number; 0 where there is none.
    pub(super) number: u64,
    /// What [`OnDisk::appended`] was where it begins.
    pub(super) at: u64,
    /// Its length; 0 where there is none.
    pub(super) bytes: u64,
}

impl Shared {
    pub(super) fn new(store_state: StoreState, base: Base, written: OnDisk) -> Self {
        let core = Core {
            store_state,
            outbox: VecDeque::new(),
            open: Arc::default(),
            latest: CommitWaiter::served(),
            in_hand: CommitWaiter::served(),
            spare: None,
            stopped: None,
            waiting: None,
            close_failed: None,
            flusher_sleeps: false,
            flusher_ends: false,
            compactor_ends: false,
            compaction: Compaction::default(),
            base,
        };
        let [to_flush, to_compact, compacted] = [(); 3].map(|()| Condvar::new());
        Self {
            core: Mutex::new(core),
            waiting: AtomicUsize::new(0),
            written: Mutex::new(written),
            to_flush,
            to_compact,
            compacted,
            notices: Notices::default(),
            observer: Observed::default(),
        }
    }

    /// The core, also after a decision panicked: the state was consistent at that moment.
    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        match self.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                let core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                core
            }
        }
    }

    /// Whether another thread waits for the lock. Work in many steps gives way then: the lock does not queue, and
    /// a thread that takes it again immediately can starve the others.
    pub(super) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    pub(super) fn written(&self) -> OnDisk {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the log is so long that it should be compacted.
    pub(super) fn is_long(&self, core: &Core, options: &Options) -> bool {
        let log = self.written().appended.saturating_sub(core.base.at);
        log > options.snapshot_after_bytes.max(2 * core.store_state.live_bytes)
    }

    pub(super) fn set_written(&self, written: OnDisk) {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = written;
    }
}

impl Core {
    /// Why no more verbs are answered, where that is so.
    pub(super) fn stopped(&self) -> Option<&StoreError> {
        self.stopped.as_ref()
    }

    /// What an answer must wait for that was found now: its own records, or those of others that it
    /// has seen.
    pub(super) fn waiter(&mut self) -> Arc<CommitWaiter> {
        if !self.store_state.frame.is_empty() && !Arc::ptr_eq(&self.latest, &self.open) {
            self.latest = Arc::clone(&self.open);
        }
        Arc::clone(&self.latest)
    }

    pub(super) fn has_work(&self) -> bool {
        !self.outbox.is_empty() || !self.store_state.frame.is_empty()
    }

    /// Everything up to here goes into the present segment, everything after it into another.
    pub(super) fn cut(&mut self, rotate: Sender<Rotation>) {
        let batch = self.wrap(Some(rotate));
        self.outbox.push_back(batch);
    }

    /// What is to be written next.
    pub(super) fn take(&mut self) -> Option<FlushBatch> {
        let next = self.outbox.pop_front();
        let batch = next.or_else(|| (!self.store_state.frame.is_empty()).then(|| self.wrap(None)))?;
        self.in_hand = Arc::clone(&batch.waiter);
        Some(batch)
    }

    /// Returns a frame that is on disk, for reuse.
    pub(super) fn recycle(&mut self, mut frame: Frame) {
        frame.clear(KEPT_FRAME);
        self.spare = Some(frame);
    }

    fn wrap(&mut self, rotate: Option<Sender<Rotation>>) -> FlushBatch {
        let waiter = std::mem::take(&mut self.open);
        let empty = self.spare.take().unwrap_or_else(Frame::new);
        if !self.store_state.frame.is_empty() {
            self.latest = Arc::clone(&waiter);
        }
        let changes = std::mem::take(&mut self.store_state.changes);
        FlushBatch { frame: std::mem::replace(&mut self.store_state.frame, empty), changes, waiter, rotate }
    }

    /// Answers no more verbs, and still writes what is pending. The first reason counts.
    pub(super) fn refuse(&mut self, why: StoreError) {
        self.stopped.get_or_insert(why);
    }

    /// Answers no more, and writes no more. Calls that still wait get an error through the waiters that come
    /// back.
    pub(super) fn stop(&mut self, why: StoreError) -> Vec<Arc<CommitWaiter>> {
        self.refuse(why);
        let waiting = self.outbox.drain(..).map(|batch| batch.waiter);
        waiting.chain([Arc::clone(&self.in_hand), Arc::clone(&self.open)]).collect()
    }
}

/// How much memory of a frame is reused for the next one, in bytes.
const KEPT_FRAME: usize = 1 << 20;
