//! Opening a folder: read it, repair what a crash has left, and continue the log.

use super::compactor::Compactor;
use super::core::{Base, OnDisk, Shared};
use super::disk::{Disk, Identity, LockError, NativeDisk};
use super::fault::{Damage, Doing, IoError, IoErrorKind, OpenError};
use super::flusher::Flusher;
use super::header::FIRST_FRAME;
use super::high_water::{HighWater, MarkFlusher};
use super::load::Loader;
use super::log::Log;
use super::names::{HIGH_WATER, LOCK, Name, is_own};
use super::options::Options;
use super::read::{Reader, Survey, Tail, no_log_was_lost, survey};
use super::reserve::Reserve;
use super::segment::Segment;
use super::store::{Embedded, Running};
use super::store_state::StoreState;
use crate::State;
use redrive_policy::Moment;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What was found when a store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// How many jobs are in each state, in the order of [`State::ALL`].
    pub jobs: [usize; 8],
    /// How many of the discarded ones are dead letters.
    pub dead: usize,
    /// How long it took.
    pub took: Duration,
    /// Whether the store was new, or was closed cleanly the last time.
    pub clean: bool,
    /// Whether there was a high-water mark, which shows whether frames at the end of the log are missing. Where
    /// they are, the store is refused; without a mark, it would go unnoticed.
    pub confirmed: bool,
    /// What a crash had left, and what was done about it.
    pub repairs: Vec<Repair>,
    /// Files and folders that other users had access to.
    pub access: Vec<Access>,
    /// The latest moment that is known, at which something happened or [`Embedded::keep_clock`] was called.
    pub latest: Option<Moment>,
    /// How far the wall clock was ahead then, as given to [`Embedded::keep_clock`], in microseconds.
    pub wall_ahead_us: i64,
}

/// A file or a folder that other users than its owner had access to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The file or the folder.
    pub path: PathBuf,
    /// The permissions that it had, as in `chmod`; unknown where they could not even be read.
    pub mode: Option<u32>,
    /// Why they could not be taken away; `None` where they were.
    pub error: Option<String>,
}

/// Something that a crash had left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The last write was torn, and it had not been acknowledged: it was cut off.
    CutOff {
        /// The file.
        file: PathBuf,
        /// Where it began.
        offset: u64,
        /// How much there was of it, in bytes.
        bytes: u64,
    },
    /// A file that was not in use yet, or not any more, was removed.
    Removed(PathBuf),
}

impl Opened {
    /// How many jobs are in a state.
    #[must_use]
    pub const fn count(&self, state: State) -> usize {
        self.jobs[state as usize]
    }
}

/// The folder, locked.
pub(super) struct Folder {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) lock: Box<dyn Send + Sync>,
    /// The file that stands for the lock.
    pub(super) lock_file: (PathBuf, Identity),
}

impl Folder {
    pub(super) fn lock(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(LOCK);
        let lock = disk.lock(&path).map_err(|error| match error {
            LockError::Held(holder) => OpenError::InUse { dir: dir.to_owned(), holder },
            LockError::Disk(error) => IoError::new("lock", &path, &error).into(),
        })?;
        let identity = disk.identity(&path).doing("find", &path)?;
        Ok(Self { disk, dir: dir.to_owned(), lock, lock_file: (path, identity) })
    }

    /// Revokes the access of other users to the folder and the files of the store. Where that fails, the store works
    /// all the same, and the operator is notified.
    fn restrict(&self) -> Result<Vec<Access>, IoError> {
        let names = self.disk.list(&self.dir).doing("list", &self.dir)?;
        let own = names.iter().filter(|name| is_own(name));
        let paths = [self.dir.clone()].into_iter().chain(own.map(|name| self.dir.join(name)));
        let access = paths.filter_map(|path| match self.disk.restrict(&path) {
            Ok(None) => None,
            Ok(mode) => Some(Access { path, mode, error: None }),
            Err(error) => Some(Access { path, mode: None, error: Some(error.to_string()) }),
        });
        Ok(access.collect())
    }
}

/// A log that is ready to be written to, and what is in it.
struct Ready {
    store_state: StoreState,
    segment: Segment,
    offset: u64,
    next_sequence: u64,
    high_water: HighWater,
    base: Base,
    log_bytes: u64,
    clean: bool,
    confirmed: bool,
    repairs: Vec<Repair>,
}

impl Embedded {
    /// Opens the store in a folder, which is made where it is missing.
    ///
    /// # Errors
    /// The folder is open in another process, damaged, or of a newer format; or the disk failed.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<(Self, Opened), OpenError> {
        Self::open_on(Arc::new(NativeDisk), dir, options)
    }

    /// As [`Embedded::open`], on a disk that the caller supplies.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn open_on(disk: Arc<dyn Disk>, dir: impl AsRef<Path>, options: Options) -> Result<(Self, Opened), OpenError> {
        let (dir, begun) = (dir.as_ref(), Instant::now());
        disk.create_dir(dir).doing("create", dir)?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            disk.sync_dir(parent).doing("flush the folder", parent)?;
        }
        let folder = Folder::lock(disk, dir)?;
        let survey = survey(&*folder.disk, dir)?;
        let ready = if survey.segments.is_empty() && survey.snapshot.is_none() {
            create(&folder, &options)?
        } else {
            recover(&folder, &survey)?
        };
        let mut opened = Opened {
            jobs: [0; 8],
            dead: ready.store_state.indexes.dead.len(),
            took: Duration::ZERO,
            clean: ready.clean,
            confirmed: ready.confirmed,
            repairs: ready.repairs.clone(),
            access: folder.restrict()?,
            latest: ready.store_state.clock.map(|(at, _)| at),
            wall_ahead_us: ready.store_state.clock.map_or(0, |(_, ahead_us)| ahead_us),
        };
        for (_, slot) in ready.store_state.slots.iter() {
            opened.jobs[slot.state() as usize] += 1;
        }
        let store = start(folder, ready, options)?;
        opened.took = begun.elapsed();
        Ok((store, opened))
    }
}

fn create(folder: &Folder, options: &Options) -> Result<Ready, OpenError> {
    no_log_was_lost(&*folder.disk, &folder.dir)?;
    // Before the log, so that there is no log without it.
    let high_water = HighWater::create(&*folder.disk, &folder.dir, 0)?;
    let mut segment = Segment::prepare(&*folder.disk, &folder.dir, 1, options.first_segment())?;
    segment.publish(&*folder.disk, &folder.dir)?;
    let store_state = finish(Loader::default(), &segment.path)?;
    Ok(Ready {
        store_state,
        segment,
        offset: FIRST_FRAME,
        next_sequence: 1,
        high_water,
        base: Base::default(),
        log_bytes: 0,
        clean: true,
        confirmed: true,
        repairs: Vec::new(),
    })
}

fn recover(folder: &Folder, survey: &Survey) -> Result<Ready, OpenError> {
    let Folder { disk, dir, .. } = folder;
    let mut contents = Reader::new(&**disk, dir, false, &mut |_| {}).read(survey)?;
    let Some(tail) = contents.tail.take() else { return Err(OpenError::Missing(dir.clone())) };
    let (base, log_bytes) =
        (Base { number: survey.snapshot.unwrap_or(0), at: 0, bytes: contents.snapshot_bytes }, contents.log_bytes);
    let path = Name::Segment(tail.header.number).within(dir);
    let clean = contents.loader.marks.closed && tail.torn.is_none();
    let confirmed = contents.high_water.is_some();
    let store_state = finish(contents.loader, &path)?;
    let (segment, repairs) = repair(folder, survey, &tail, path)?;
    let (offset, next_sequence) = (tail.offset, tail.next_sequence);
    let mark = if confirmed { HighWater::open } else { HighWater::create };
    let high_water = mark(&**disk, dir, next_sequence.saturating_sub(1))?;
    Ok(Ready { store_state, segment, offset, next_sequence, high_water, base, log_bytes, clean, confirmed, repairs })
}

/// The state that was read up to the end of the log in `path`.
pub(super) fn finish(loader: Loader, path: &Path) -> Result<StoreState, OpenError> {
    loader.finish().map_err(|found| {
        let expected = "records that fit together".to_owned();
        OpenError::Damaged(Damage { file: path.to_owned(), offset: 0, found, expected })
    })
}

/// Brings the folder into the state in which a store that goes on would have left it.
fn repair(folder: &Folder, survey: &Survey, tail: &Tail, path: PathBuf) -> Result<(Segment, Vec<Repair>), OpenError> {
    let Folder { disk, dir, .. } = folder;
    let mut repairs = Vec::new();
    let mut file = disk.open(&path, true).doing("open", &path)?;
    if let Some(bytes) = tail.torn {
        // Back to zeros, so that the next torn write can be distinguished from damage as this one could.
        let zeros = vec![0; bytes as usize];
        file.write_at(tail.offset, &zeros).doing("write to", &path)?;
        file.sync().doing("flush", &path)?;
        repairs.push(Repair::CutOff { file: path.clone(), offset: tail.offset, bytes });
    }
    let unused = tail.unused.map(Name::Segment);
    for name in survey.leftovers.iter().copied().chain(unused) {
        let path = name.within(dir);
        disk.remove(&path).doing("remove", &path)?;
        repairs.push(Repair::Removed(path));
    }
    if repairs.iter().any(|repair| matches!(repair, Repair::Removed(_))) {
        disk.sync_dir(dir).doing("flush the folder", dir)?;
    }
    let identity = disk.identity(&path).doing("find", &path)?;
    Ok((Segment { file, path, identity, header: tail.header }, repairs))
}

fn start(folder: Folder, ready: Ready, options: Options) -> Result<Embedded, OpenError> {
    let written = OnDisk {
        segment: ready.segment.header.number,
        last_frame: ready.next_sequence.saturating_sub(1),
        flushes: 0,
        appended: ready.log_bytes,
    };
    let shared = Arc::new(Shared::new(ready.store_state, ready.base, written));
    // Backups do without the reserve: they may open many files, and it would be gone when it is needed.
    let reserve = Arc::new(Reserve::new(Arc::clone(&folder.disk), folder.dir.join(HIGH_WATER)));
    let log = Log::new(
        &folder,
        Arc::clone(&reserve) as _,
        options,
        ready.segment,
        ready.offset,
        ready.next_sequence,
        ready.high_water,
    );
    let Folder { disk, dir, lock, .. } = folder;
    let flusher = Flusher { shared: Arc::clone(&shared), log, options };
    let mark = MarkFlusher::new(&*disk, &dir)?;
    let compactor = Compactor { shared: Arc::clone(&shared), disk: reserve, dir: dir.clone(), options, mark };
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name.to_owned()).spawn(work).map_err(|error| {
            let doing = "start a thread of the store".to_owned();
            OpenError::Disk(IoError { doing, error: error.to_string(), kind: IoErrorKind::Other })
        })
    };
    let compactor = spawn("redrive-compact", Box::new(move || compactor.run()))?;
    let flusher = match spawn("redrive-flush", Box::new(move || flusher.run())) {
        Ok(flusher) => flusher,
        Err(error) => {
            shared.lock().compactor_ends = true;
            shared.to_compact.notify_all();
            return Err(error);
        }
    };
    let running = Mutex::new(Some(Running { flusher, compactor, _lock: lock }));
    Ok(Embedded { shared, disk, dir, options, running })
}
