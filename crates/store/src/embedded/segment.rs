//! The files of the log: made in full length before they are used, so that a flush never makes a file
//! longer, which would cost a second write to the file system's own journal.

use super::disk::{Disk, DiskFile, Identity};
use super::fault::{Doing, IoError};
use super::frame::SECTOR;
use super::header::{FileHeader, Kind, fresh_salt};
use super::names::Name;
use std::path::{Path, PathBuf};

/// How many zeros are written at a time.
const PIECE: usize = 1 << 20;

/// A segment that is open for writing.
pub(super) struct Segment {
    pub(super) file: Box<dyn DiskFile>,
    pub(super) path: PathBuf,
    /// What must be found at that path as long as the store is open.
    pub(super) identity: Identity,
    pub(super) header: FileHeader,
}

impl Segment {
    /// Makes a segment of zeros under its preliminary name, and returns once it is safe.
    pub(super) fn prepare(disk: &dyn Disk, dir: &Path, number: u64, length: u64) -> Result<Self, IoError> {
        let path = Name::Spare(number).within(dir);
        let header =
            FileHeader { kind: Kind::Segment, number, length, salt: fresh_salt().doing("choose a salt for", &path)? };
        let mut file = disk.create(&path).doing("create", &path)?;
        let mut write = || {
            file.write_at(0, &header.encode())?;
            let zeros = vec![0; PIECE.min(length as usize)];
            let mut offset = SECTOR as u64;
            while offset < length {
                let piece = (length - offset).min(zeros.len() as u64);
                file.write_at(offset, &zeros[..piece as usize])?;
                offset += piece;
            }
            file.sync()
        };
        if let Err(error) = write() {
            // What was written of it may be what the disk lacks now. A leftover does no harm.
            let _ = disk.remove(&path);
            return Err(error).doing("prepare", &path);
        }
        let identity = disk.identity(&path).doing("find", &path)?;
        Ok(Self { file, path, identity, header })
    }

    /// Gives it its final name in the log.
    pub(super) fn publish(&mut self, disk: &dyn Disk, dir: &Path) -> Result<(), IoError> {
        let path = Name::Segment(self.header.number).within(dir);
        disk.rename(&self.path, &path).doing("rename", &self.path)?;
        disk.sync_dir(dir).doing("flush the folder", dir)?;
        self.path = path;
        Ok(())
    }
}
