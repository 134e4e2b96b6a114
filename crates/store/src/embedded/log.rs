//! The end of the log, where frames are appended.

use super::disk::Disk;
use super::fault::{Doing, Trouble};
use super::frame::{Frame, SECTOR};
use super::header::FIRST_FRAME;
use super::options::Options;
use super::record;
use super::segment::Segment;
use super::spare::Spares;
use std::path::PathBuf;
use std::sync::Arc;

/// What is kept free at the end of a segment, for the frame that says that the log goes on elsewhere.
const SEAL_BYTES: u64 = SECTOR as u64;

/// The log, open at its end. One thread has it.
pub(super) struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: Options,
    segment: Segment,
    /// Where the next frame goes.
    offset: u64,
    next_sequence: u64,
    spares: Spares,
}

impl Log {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        options: Options,
        segment: Segment,
        offset: u64,
        next_sequence: u64,
    ) -> Self {
        let spares = Spares::new(Arc::clone(&disk), dir.clone());
        Self { disk, dir, options, segment, offset, next_sequence, spares }
    }

    /// Appends a frame, and returns once it is safe from a power cut.
    pub(super) fn append(&mut self, frame: &mut Frame) -> Result<(), Trouble> {
        let size = frame.size() as u64;
        if size > u64::from(u32::MAX) {
            let error = format!("one frame has {size} bytes; at most {} are allowed", u32::MAX);
            return Err(Trouble { doing: format!("write to {}", self.segment.path.display()), error, full: false });
        }
        if self.offset + size + SEAL_BYTES > self.segment.header.length {
            let next = self.prepare(size)?;
            self.rotate(next)?;
        }
        self.write(frame)?;
        if self.offset > self.segment.header.length / 2 {
            let header = &self.segment.header;
            self.spares.ask(header.number + 1, self.options.next_segment(header.length));
        }
        Ok(())
    }

    /// A segment to go on in, with room for a frame of this size. Where that fails, the log is as good as
    /// before.
    pub(super) fn prepare(&mut self, size: u64) -> Result<Segment, Trouble> {
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
    pub(super) fn rotate(&mut self, next: Segment) -> Result<(), Trouble> {
        let mut seal = Frame::new();
        record::sealed(seal.records());
        self.write(&mut seal)?;
        self.segment = next;
        self.offset = FIRST_FRAME;
        Ok(())
    }

    /// Closes the log in good order.
    pub(super) fn close(mut self) -> Result<(), Trouble> {
        let mut last = Frame::new();
        record::closed(last.records());
        self.append(&mut last)?;
        self.spares.discard()
    }

    /// The segment that is written to, and up to where it is safe.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.segment.header.number, self.offset)
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    fn write(&mut self, frame: &mut Frame) -> Result<(), Trouble> {
        let Segment { file, path, header } = &mut self.segment;
        let bytes = frame.finish(header.salt, self.next_sequence);
        file.write_at(self.offset, bytes).doing("write to", path)?;
        file.sync().doing("flush", path)?;
        self.offset += bytes.len() as u64;
        self.next_sequence += 1;
        Ok(())
    }
}
