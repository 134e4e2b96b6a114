//! How far the log was flushed, stored beside the log.
//!
//! Zeros behind the last frame can be the end of the log, or stand where frames were lost. The
//! high-water mark distinguishes the two: the number of the last frame that was flushed. It is written after each
//! flush and before the acknowledgement, and costs no flush of its own: another thread flushes it now and then, and
//! the log does so at the end of a segment, when it rests, and when it is closed. So it is never ahead of the
//! log; it is exact when the process was killed, and may be a little behind when the power failed.
//!
//! ```text
//! two slots of 512 bytes, written in turn, so that one is whole whatever happens to the other:
//! 0   "hi-water"
//! 8   number of the frame, u64
//! 16  checksum of the 16 bytes before, u32
//! 20  zeros up to 512
//! ```

use super::disk::{Disk, DiskFile};
use super::fault::{Doing, IoError};
use super::frame::{SECTOR, is_zero};
use super::names::HIGH_WATER;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"hi-water";

/// Flushes the mark from another thread, so that the log never waits for it.
pub(super) struct MarkFlusher {
    file: Box<dyn DiskFile>,
    /// The frame up to which the mark was flushed.
    flushed: u64,
}

impl MarkFlusher {
    pub(super) fn new(disk: &dyn Disk, dir: &Path) -> Result<Self, IoError> {
        let path = dir.join(HIGH_WATER);
        Ok(Self { file: disk.open(&path, true).doing("open", &path)?, flushed: 0 })
    }

    /// Flushes the mark where it has moved to another frame. A failure is met by the log as well, which stops
    /// for it.
    pub(super) fn flush(&mut self, last_frame: u64) {
        if self.flushed != last_frame && self.file.sync().is_ok() {
            self.flushed = last_frame;
        }
    }
}

/// The mark of an open store.
pub(super) struct HighWater {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    /// Whether it was written since it was flushed.
    dirty: bool,
}

impl HighWater {
    /// Makes the file, and returns once it is safe.
    pub(super) fn create(disk: &dyn Disk, dir: &Path, frame: u64) -> Result<Self, IoError> {
        let path = dir.join(HIGH_WATER);
        let file = disk.create(&path).doing("create", &path)?;
        let mut mark = Self { file, path, dirty: true };
        // In its full length, so that a full disk has room for it as well.
        mark.file.write_at(0, &[0; 2 * SECTOR]).doing("write to", &mark.path)?;
        mark.note(frame)?;
        mark.flush()?;
        disk.sync_dir(dir).doing("flush the folder", dir)?;
        Ok(mark)
    }

    /// Opens the file for a log that ends with this frame.
    pub(super) fn open(disk: &dyn Disk, dir: &Path, frame: u64) -> Result<Self, IoError> {
        let path = dir.join(HIGH_WATER);
        let file = disk.open(&path, true).doing("open", &path)?;
        let mut mark = Self { file, path, dirty: false };
        mark.note(frame)?;
        mark.flush()?;
        Ok(mark)
    }

    /// The number of the last frame that is known to have been flushed; `None` where nothing is known.
    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<u64>, IoError> {
        let path = dir.join(HIGH_WATER);
        let mut file = match disk.open(&path, false) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.doing("open", &path)?,
        };
        let mut bytes = [0; 2 * SECTOR];
        file.read_at(0, &mut bytes).doing("read", &path)?;
        Ok(bytes.chunks(SECTOR).filter_map(decode).max())
    }

    /// Frames up to this one are flushed.
    pub(super) fn note(&mut self, frame: u64) -> Result<(), IoError> {
        self.dirty = true;
        self.file.write_at(frame % 2 * SECTOR as u64, &encode(frame)).doing("write to", &self.path)
    }

    /// Returns once the mark itself is safe.
    pub(super) fn flush(&mut self) -> Result<(), IoError> {
        if std::mem::take(&mut self.dirty) { self.file.sync().doing("flush", &self.path) } else { Ok(()) }
    }
}

fn encode(frame: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&frame.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..16]);
    bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(slot: &[u8]) -> Option<u64> {
    let (head, zeros) = slot.split_first_chunk::<20>()?;
    let whole = head[..8] == *MAGIC && head[16..] == crc32fast::hash(&head[..16]).to_le_bytes() && is_zero(zeros);
    let frame = head[8..16].try_into().ok()?;
    whole.then(|| u64::from_le_bytes(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_survives_and_every_flipped_bit_is_noticed() {
        let bytes = encode(12_345);
        assert_eq!(decode(&bytes), Some(12_345));
        for bit in 0..SECTOR * 8 {
            let mut copy = bytes;
            copy[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&copy), None, "bit {bit}");
        }
        assert_eq!(decode(&[0; SECTOR]), None);
        assert_eq!(decode(&bytes[..10]), None);
    }
}
