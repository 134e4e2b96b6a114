//! The files of a store as of one moment, while it may go on.
//!
//! Files that are open can be read to their end after they were removed, so that a compaction does no harm
//! once all are open. The log is cut behind a frame that was flushed before the files were opened, and after
//! they were listed: so everything before it is there, and everything that the snapshot has seen comes before
//! it.

use super::check::find;
use super::disk::{Disk, DiskFile};
use super::fault::{Doing, IoError, IoErrorKind, OpenError};
use super::frame::{HEADER, Header};
use super::header::{FIRST_FRAME, FileHeader};
use super::names::Name;
use super::read::Survey;
use super::record;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How often is looked again when files were replaced meanwhile.
const TRIES: usize = 1_000;

/// A file of a store, open for reading.
pub(super) struct Part {
    pub(super) name: Name,
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn DiskFile>,
}

/// How far the log goes.
#[derive(Clone, Copy)]
pub(super) struct LogEnd {
    pub(super) segment: u64,
    pub(super) offset: u64,
    /// The number of the last frame before that.
    pub(super) last_frame: u64,
}

/// Opens the files of a running store. `flushed` says which frame was flushed last; it is asked after the
/// files were listed.
pub(super) fn gather(
    disk: &dyn Disk,
    dir: &Path,
    flushed: &dyn Fn() -> Result<u64, OpenError>,
) -> Result<(Vec<Part>, LogEnd), OpenError> {
    for _ in 0..TRIES {
        let found = find(disk, dir)?;
        let last_frame = flushed()?;
        if let Some(mut parts) = open_all(disk, dir, &found)?
            && let Some(end) = locate(&mut parts, last_frame)?
        {
            return Ok((parts, end));
        }
        std::thread::yield_now();
    }
    let doing = format!("copy {}", dir.display());
    let error = format!("its files were replaced {TRIES} times before they could be opened, or one is missing");
    Err(IoError { doing, error, kind: IoErrorKind::Other }.into())
}

/// Opens the snapshot and the log behind it; `None` where one of them is gone.
pub(super) fn open_all(disk: &dyn Disk, dir: &Path, found: &Survey) -> Result<Option<Vec<Part>>, IoError> {
    if found.missing.is_some() {
        return Ok(None);
    }
    let segments = found.segments.iter().copied().map(Name::Segment);
    let mut parts = Vec::new();
    for name in found.snapshot.map(Name::Snapshot).into_iter().chain(segments) {
        let path = name.within(dir);
        match disk.open(&path, false) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => parts.push(Part { name, file: opened.doing("open", &path)?, path }),
        }
    }
    Ok(Some(parts))
}

/// Where the log can be cut behind a frame; `None` where that frame is in a segment that is not open.
fn locate(parts: &mut [Part], last_frame: u64) -> Result<Option<LogEnd>, OpenError> {
    let mut behind = None;
    for part in parts.iter_mut().rev() {
        let Name::Segment(segment) = part.name else { continue };
        let begin = LogEnd { segment, offset: FIRST_FRAME, last_frame };
        match part.cut_behind(last_frame)? {
            Cut::Later => {}
            Cut::Elsewhere => return Ok(None),
            Cut::At(offset) => return Ok(Some(LogEnd { offset, ..begin })),
            // The log goes on in the next segment, which is empty as of that moment.
            Cut::AtSeal => return Ok(behind),
        }
        behind = Some(begin);
    }
    // The snapshot has everything up to that frame.
    Ok(behind)
}

/// Where a frame is in a segment.
enum Cut {
    /// The segment begins after it, or is empty.
    Later,
    /// The segment ends before it.
    Elsewhere,
    /// It ends here.
    At(u64),
    /// It is the last one of the segment.
    AtSeal,
}

impl Part {
    fn cut_behind(&mut self, last_frame: u64) -> Result<Cut, OpenError> {
        let mut head = [0; FIRST_FRAME as usize];
        self.read(0, &mut head)?;
        let Ok(FileHeader { salt, .. }) = FileHeader::decode(&head) else { return Ok(Cut::Elsewhere) };
        let mut offset = FIRST_FRAME;
        loop {
            let mut bytes = [0; HEADER];
            let read = self.read(offset, &mut bytes)?;
            let Some(header) = Header::read(&bytes[..read], salt) else {
                return Ok(if offset == FIRST_FRAME { Cut::Later } else { Cut::Elsewhere });
            };
            if header.sequence > last_frame {
                return Ok(Cut::Later);
            }
            let size = header.size() as u64;
            if header.sequence == last_frame {
                return Ok(if self.is_seal(offset, &header, salt)? { Cut::AtSeal } else { Cut::At(offset + size) });
            }
            offset += size;
        }
    }

    fn is_seal(&mut self, offset: u64, header: &Header, salt: u32) -> Result<bool, OpenError> {
        let mut rest = vec![0; header.size() - HEADER];
        let read = self.read(offset + HEADER as u64, &mut rest)?;
        Ok(header.check(&rest[..read], salt).is_ok_and(|records| record::is_seal(&records)))
    }

    pub(super) fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<usize, IoError> {
        self.file.read_at(offset, bytes).doing("read", &self.path)
    }
}
