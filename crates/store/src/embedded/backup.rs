//! Copies of a store, each complete as of one moment.

use super::check::{Findings, check_on, find};
use super::core::Written;
use super::disk::{Disk, NativeDisk};
use super::fault::{Doing, OpenError, Trouble};
use super::header::{FIRST_FRAME, FileHeader};
use super::high_water::HighWater;
use super::names::Name;
use super::open::Folder;
use super::read::{Progress, Reader, Survey};
use super::store::Embedded;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// How much is copied at a time.
const PIECE: u64 = 1 << 20;
/// What is left free at the end of the copied log, so that a store that is opened there can go on.
const ROOM: u64 = 4_096;

impl Embedded {
    /// Copies the store into an empty folder while it goes on, then reads the whole copy to see that it
    /// is good. The copy has everything that was acknowledged when this was called.
    ///
    /// # Errors
    /// That the folder is not empty, or what the disk says. Then the copy is not complete, and cannot be
    /// opened.
    pub fn backup(&self, to: impl AsRef<Path>, progress: &mut dyn FnMut(Progress)) -> Result<Findings, OpenError> {
        let _files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // In this order, so that the files of the position are among those that are found. A snapshot
            // that came in between begins behind the position; then once more.
            let Written { segment, offset, last_frame, .. } = self.shared.written();
            let found = find(&*self.disk, &self.dir)?;
            if found.snapshot.is_none_or(|snapshot| snapshot <= segment) {
                let end = CopyEnd { segment, offset, last_frame };
                return copy(&*self.disk, &self.dir, to.as_ref(), &found, end, progress);
            }
        }
    }
}

/// Copies a store that nobody has open. See [`Embedded::backup`].
///
/// # Errors
/// As [`Embedded::backup`]; or that the store is missing, in use, damaged or of a newer format.
pub fn backup(
    dir: impl AsRef<Path>,
    to: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings, OpenError> {
    backup_on(Arc::new(NativeDisk), dir, to, progress)
}

/// As [`backup`], on a disk of one's own.
///
/// # Errors
/// As [`backup`].
pub fn backup_on(
    disk: Arc<dyn Disk>,
    dir: impl AsRef<Path>,
    to: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings, OpenError> {
    let dir = dir.as_ref();
    find(&*disk, dir)?;
    let folder = Folder::lock(disk, dir)?;
    let found = find(&*folder.disk, dir)?;
    let contents = Reader::new(&*folder.disk, dir, false, &mut |_| {}).read(&found)?;
    let Some(tail) = contents.tail else { return Err(OpenError::Missing(dir.to_owned())) };
    let end =
        CopyEnd { segment: tail.header.number, offset: tail.offset, last_frame: tail.next_sequence.saturating_sub(1) };
    copy(&*folder.disk, dir, to.as_ref(), &found, end, progress)
}

/// How far the log is copied.
#[derive(Clone, Copy)]
struct CopyEnd {
    segment: u64,
    offset: u64,
    /// The number of the last frame before that.
    last_frame: u64,
}

/// Copies everything up to a place in the log.
fn copy(
    disk: &dyn Disk,
    dir: &Path,
    to: &Path,
    found: &Survey,
    end: CopyEnd,
    progress: &mut dyn FnMut(Progress),
) -> Result<Findings, OpenError> {
    disk.create_dir(to).doing("create", to)?;
    if !disk.list(to).doing("list", to)?.is_empty() {
        return Err(OpenError::NotEmpty(to.to_owned()));
    }
    let last = end.segment;
    let segments = found.segments.iter().copied().filter(|number| *number <= last).map(Name::Segment);
    let names: Vec<Name> = found.snapshot.map(Name::Snapshot).into_iter().chain(segments).collect();
    let mut jobs = Vec::new();
    for name in names {
        let path = name.within(dir);
        let size = disk.open(&path, false).and_then(|mut file| file.size()).doing("measure", &path)?;
        jobs.push((name, if name == Name::Segment(last) { end.offset } else { size }));
    }
    let mut seen = Progress { done: 0, total: jobs.iter().map(|(_, length)| length).sum() };
    for (name, length) in jobs {
        let mut copied = |bytes| {
            seen.done += bytes;
            progress(seen);
        };
        copy_file(disk, &name.within(dir), &name.within(to), length, name == Name::Segment(last), &mut copied)?;
    }
    HighWater::create(disk, to, end.last_frame)?;
    check_on(disk, to, &mut |_| {})
}

/// Copies the first `length` bytes of a file. The last segment gets a new end, close behind them.
fn copy_file(
    disk: &dyn Disk,
    from: &Path,
    to: &Path,
    length: u64,
    is_last: bool,
    copied: &mut dyn FnMut(u64),
) -> Result<(), Trouble> {
    let mut source = disk.open(from, false).doing("open", from)?;
    let mut target = disk.create(to).doing("create", to)?;
    let mut bytes = vec![0; PIECE.min(length) as usize];
    let mut offset = 0;
    while offset < length {
        let piece = (length - offset).min(PIECE) as usize;
        let read = source.read_at(offset, &mut bytes[..piece]).doing("read", from)?;
        if read == 0 {
            break;
        }
        if offset == 0
            && is_last
            && let Ok(header) = FileHeader::decode(&bytes[..read])
        {
            let shortened = FileHeader { length: length + ROOM, ..header }.encode();
            bytes[..FIRST_FRAME as usize].copy_from_slice(&shortened);
        }
        target.write_at(offset, &bytes[..read]).doing("write to", to)?;
        offset += read as u64;
        copied(read as u64);
    }
    if is_last {
        target.write_at(length, &[0; ROOM as usize]).doing("write to", to)?;
    }
    target.sync().doing("flush", to)
}
