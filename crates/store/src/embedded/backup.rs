//! Copies of a store, each complete as of one moment.

use super::check::{Findings, check_on, find, lock_if_there};
use super::disk::{Disk, NativeDisk};
use super::fault::{Doing, IoError, OpenError};
use super::frame::Frame;
use super::gather::{LogEnd, Part, gather, open_all};
use super::header::{FIRST_FRAME, FileHeader};
use super::high_water::HighWater;
use super::names::{HIGH_WATER, Name};
use super::read::{LoadProgress, Reader};
use super::record;
use super::store::Embedded;
use std::path::Path;
use std::sync::Arc;

/// How much is copied at a time.
const PIECE: u64 = 1 << 20;
/// What is left free at the end of the copied log, so that a store that is opened there can go on.
const ROOM: usize = 4_096;

impl Embedded {
    /// Copies the store into an empty folder while it goes on, then reads the whole copy to see that it
    /// is good. The copy has everything that was acknowledged when this was called.
    ///
    /// # Errors
    /// That the folder is not empty, or what the disk says. Then there is no copy.
    pub fn backup(&self, to: impl AsRef<Path>, progress: &mut dyn FnMut(LoadProgress)) -> Result<Findings, OpenError> {
        let (parts, end) = gather(&*self.disk, &self.dir, &|| Ok(self.shared.written().last_frame))?;
        copy(&*self.disk, parts, end, to.as_ref(), progress)
    }
}

/// Copies a store, also while another process has it open. See [`Embedded::backup`].
///
/// # Errors
/// As [`Embedded::backup`]; or that the store is missing, damaged or of a newer format.
pub fn backup(
    dir: impl AsRef<Path>,
    to: impl AsRef<Path>,
    progress: &mut dyn FnMut(LoadProgress),
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
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<Findings, OpenError> {
    let dir = dir.as_ref();
    find(&*disk, dir)?;
    let (parts, end) = match lock_if_there(&*disk, dir) {
        Ok(_lock) => at_rest(&*disk, dir)?,
        Err(OpenError::InUse { dir, holder }) => {
            // What has been acknowledged is not above the mark, also where a server runs the store.
            let flushed =
                || HighWater::read(&*disk, &dir)?.ok_or_else(|| OpenError::InUse { dir: dir.clone(), holder });
            gather(&*disk, &dir, &flushed)?
        }
        Err(error) => return Err(error),
    };
    copy(&*disk, parts, end, to.as_ref(), progress)
}

/// The files of a store that no process runs: all of its log that can be read, marked or not.
fn at_rest(disk: &dyn Disk, dir: &Path) -> Result<(Vec<Part>, LogEnd), OpenError> {
    let found = find(disk, dir)?;
    let contents = Reader::new(disk, dir, false, &mut |_| {}).read(&found)?;
    let missing = || OpenError::Missing(dir.to_owned());
    let tail = contents.tail.ok_or_else(missing)?;
    let parts = open_all(disk, dir, &found)?.ok_or_else(missing)?;
    let last_frame = tail.next_sequence.saturating_sub(1);
    Ok((parts, LogEnd { segment: tail.header.number, offset: tail.offset, last_frame }))
}

/// Copies everything up to a position in the log. Where that fails, what was copied is removed: it would only
/// take room.
fn copy(
    disk: &dyn Disk,
    parts: Vec<Part>,
    end: LogEnd,
    to: &Path,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<Findings, OpenError> {
    disk.create_dir(to).doing("create", to)?;
    if !disk.list(to).doing("list", to)?.is_empty() {
        return Err(OpenError::NotEmpty(to.to_owned()));
    }
    let in_log = |part: &Part| !matches!(part.name, Name::Segment(number) if number > end.segment);
    let parts: Vec<Part> = parts.into_iter().filter(in_log).collect();
    let names: Vec<Name> = parts.iter().map(|part| part.name).collect();
    let copied = copy_parts(disk, parts, end, to, progress).map_err(OpenError::from);
    let copied = copied.and_then(|()| check_on(disk, to, &mut |_| {}));
    if copied.is_err() {
        let own = names.into_iter().map(|name| name.within(to)).chain([to.join(HIGH_WATER)]);
        own.for_each(|path| drop(disk.remove(&path)));
    }
    copied
}

fn copy_parts(
    disk: &dyn Disk,
    parts: Vec<Part>,
    end: LogEnd,
    to: &Path,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<(), IoError> {
    let mut jobs = Vec::new();
    for mut part in parts {
        let is_last = part.name == Name::Segment(end.segment);
        let size = part.file.size().doing("measure", &part.path)?;
        jobs.push((part, if is_last { end.offset } else { size }, is_last));
    }
    let mut seen = LoadProgress { done: 0, total: jobs.iter().map(|(_, length, _)| length).sum() };
    for (mut part, length, is_last) in jobs {
        let mut copied = |bytes| {
            seen.done += bytes;
            progress(seen);
        };
        let path = part.name.within(to);
        copy_file(disk, &mut part, &path, length, is_last.then_some(end.last_frame + 1), &mut copied)?;
    }
    HighWater::create(disk, to, end.last_frame + 1)?;
    match to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => disk.sync_dir(parent).doing("flush the folder", parent),
        None => Ok(()),
    }
}

/// Copies the first `length` bytes of a file. The last segment gets a new end, close behind them: a frame of this
/// number, which says that the store was closed cleanly.
fn copy_file(
    disk: &dyn Disk,
    part: &mut Part,
    to: &Path,
    length: u64,
    closing: Option<u64>,
    copied: &mut dyn FnMut(u64),
) -> Result<(), IoError> {
    let mut tail = Vec::new();
    let mut target = disk.create(to).doing("create", to)?;
    let mut bytes = vec![0; PIECE.min(length) as usize];
    let mut offset = 0;
    while offset < length {
        let piece = (length - offset).min(PIECE) as usize;
        let read = part.read(offset, &mut bytes[..piece])?;
        if read == 0 {
            break;
        }
        if offset == 0
            && let Some(number) = closing
            && let Ok(header) = FileHeader::decode(&bytes[..read])
        {
            tail = closed_tail(header.salt, number);
            let shortened = FileHeader { length: length + tail.len() as u64, ..header }.encode();
            bytes[..FIRST_FRAME as usize].copy_from_slice(&shortened);
        }
        target.write_at(offset, &bytes[..read]).doing("write to", to)?;
        offset += read as u64;
        copied(read as u64);
    }
    target.write_at(length, &tail).doing("write to", to)?;
    target.sync().doing("flush", to)
}

/// What follows the copied log: the mark of a store that was closed cleanly, and room to go on.
fn closed_tail(salt: u32, number: u64) -> Vec<u8> {
    let mut frame = Frame::new();
    record::closed(frame.records());
    let mut tail = frame.finish(salt, number).to_vec();
    tail.resize(tail.len() + ROOM, 0);
    tail
}
