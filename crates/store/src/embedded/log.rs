//! The end of the log, where frames are appended.

use super::disk::{Disk, Identity};
use super::fault::{Doing, IoError, IoErrorKind};
use super::frame::{Frame, SECTOR};
use super::header::FIRST_FRAME;
use super::high_water::HighWater;
use super::open::Folder;
use super::options::Options;
use super::record;
use super::segment::Segment;
use super::spare::Spares;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// What is reserved at the end of a segment, for the frame that says that the log continues in another one.
const SEAL_BYTES: u64 = SECTOR as u64;

/// The log, open at its end. One thread has it.
pub(super) struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// The file that stands for the lock, and what must be found there.
    lock: (PathBuf, Identity),
    options: Options,
    segment: Segment,
    /// Where the next frame goes.
    offset: u64,
    next_sequence: u64,
    high_water: HighWater,
    spares: Spares,
}

impl Log {
    pub(super) fn new(
        folder: &Folder,
        disk: Arc<dyn Disk>,
        options: Options,
        segment: Segment,
        offset: u64,
        next_sequence: u64,
        high_water: HighWater,
    ) -> Self {
        let (dir, lock) = (folder.dir.clone(), folder.lock_file.clone());
        let spares = Spares::new(Arc::clone(&disk), dir.clone());
        Self { disk, dir, lock, options, segment, offset, next_sequence, high_water, spares }
    }

    /// Appends a frame, and returns once it is safe from a power cut.
    pub(super) fn append(&mut self, frame: &mut Frame) -> Result<(), IoError> {
        let size = frame.size() as u64;
        if size > u64::from(u32::MAX) {
            let error = format!("one frame has {size} bytes; at most {} are allowed", u32::MAX);
            return Err(IoError {
                doing: format!("write to {}", self.segment.path.display()),
                error,
                kind: IoErrorKind::Other,
            });
        }
        self.make_room(size)?;
        self.write(frame)?;
        if self.offset > self.segment.header.length / 2 {
            let header = &self.segment.header;
            self.spares.ask(header.number + 1, self.options.next_segment(header.length));
        }
        Ok(())
    }

    /// Continues in another segment where a frame of this size does not fit into the present one.
    pub(super) fn make_room(&mut self, size: u64) -> Result<(), IoError> {
        if self.offset + size + SEAL_BYTES <= self.segment.header.length {
            return Ok(());
        }
        let next = self.prepare(size)?;
        self.rotate(next)
    }

    /// A segment to go on in, with room for a frame of this size. Where that fails, the log is as good as
    /// before.
    pub(super) fn prepare(&mut self, size: u64) -> Result<Segment, IoError> {
        let header = self.segment.header;
        let least = FIRST_FRAME + size + SEAL_BYTES;
        let wanted = self.options.next_segment(header.length).max(least);
        let mut next = match self.spares.take() {
            Some(spare) if spare.header.length >= least => spare,
            _ => Segment::prepare(&*self.disk, &self.dir, header.number + 1, wanted)?,
        };
        // It has its name before the seal promises that there is one.
        next.publish(&*self.disk, &self.dir)?;
        Ok(next)
    }

    /// Goes on in this segment.
    pub(super) fn rotate(&mut self, next: Segment) -> Result<(), IoError> {
        let mut seal = Frame::new();
        record::sealed(seal.records());
        self.write(&mut seal)?;
        self.segment = next;
        self.offset = FIRST_FRAME;
        self.high_water.flush()
    }

    /// Closes the log cleanly.
    pub(super) fn close(mut self) -> Result<(), IoError> {
        let mut last = Frame::new();
        record::closed(last.records());
        self.append(&mut last)?;
        self.high_water.flush()?;
        self.spares.discard()
    }

    /// What is done when there is nothing to write.
    pub(super) fn rest(&mut self) -> Result<(), IoError> {
        self.look()?;
        self.high_water.flush()
    }

    /// Whether the log and the lock are still where they were. What is written to a file that no name leads
    /// to any more is lost when the process ends; and without the file of the lock, another process could
    /// write here as well.
    fn look(&self) -> Result<(), IoError> {
        let segment = (&self.segment.path, self.segment.identity);
        for (path, expected) in [segment, (&self.lock.0, self.lock.1)] {
            match self.disk.identity(path) {
                Ok(found) if found == expected => {}
                Ok(_) => return Err(IoError::gone(path)),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Err(IoError::gone(path));
                }
                Err(error) => return Err(error).doing("find", path),
            }
        }
        Ok(())
    }

    /// The number of the segment that is written to.
    pub(super) fn segment(&self) -> u64 {
        self.segment.header.number
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    fn write(&mut self, frame: &mut Frame) -> Result<(), IoError> {
        let Segment { file, path, header, .. } = &mut self.segment;
        let bytes = frame.finish(header.salt, self.next_sequence);
        file.write_at(self.offset, bytes).doing("write to", path)?;
        file.sync().doing("flush", path)?;
        self.high_water.note(self.next_sequence)?;
        self.offset += bytes.len() as u64;
        self.next_sequence += 1;
        self.look()
    }
}
