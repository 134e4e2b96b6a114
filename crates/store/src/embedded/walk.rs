//! Reading a segment frame by frame, and telling a torn write from damage.
//!
//! A frame is written to sectors where there were zeros, and only when the frame before it is safe. A
//! power cut during that leaves, of this last frame only, some sectors as written and the others as
//! they were: zero. A process that dies, or a write that fails half way, leaves the beginning of it. So
//! what cannot be read is a torn write exactly if it is the last thing in the log and a sector of it is
//! still zero, or its end is. It was never acknowledged, and may be cut off. Everything else
//! was safe once, and has been damaged since.

use super::frame::{Flaw, HEADER, SECTOR, ends_whole, find, has_zero_sector, is_zero, parse};
use super::header::FIRST_FRAME;

/// What follows the last frame that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Zeros up to the end of the file.
    Clean,
    /// The rest of a write that never became safe.
    Torn,
    /// Something that was written, became safe, and is not readable now.
    Damaged { found: String, expected: String },
}

/// How far a segment can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walked {
    /// Where the readable part ends.
    pub(super) offset: usize,
    pub(super) next_sequence: u64,
    pub(super) frames: u64,
    pub(super) end: End,
}

/// Hands the records of each frame to `visit`, which answers what is wrong with them, if anything.
pub(super) fn walk(
    bytes: &[u8],
    salt: u32,
    from: usize,
    sequence: u64,
    mut visit: impl FnMut(&[u8]) -> Result<(), String>,
) -> Walked {
    let mut walked = Walked { offset: from, next_sequence: sequence, frames: 0, end: End::Clean };
    loop {
        let rest = bytes.get(walked.offset..).unwrap_or_default();
        let expected = || format!("the frame with number {}", walked.next_sequence);
        let damaged = |found| End::Damaged { found, expected: expected() };
        let frame = match parse(rest, salt) {
            Some(Ok(frame)) => frame,
            Some(Err(flaw)) => {
                walked.end = decide(bytes, walked.offset, Some(flaw), salt).unwrap_or_else(damaged);
                return walked;
            }
            None => {
                walked.end = decide(bytes, walked.offset, None, salt).unwrap_or_else(damaged);
                return walked;
            }
        };
        if frame.sequence != walked.next_sequence {
            walked.end = damaged(format!("the frame with number {}", frame.sequence));
            return walked;
        }
        if let Err(found) = visit(&frame.records) {
            walked.end = End::Damaged { found, expected: "records of this format that fit together".to_owned() };
            return walked;
        }
        walked.offset += frame.size;
        walked.next_sequence += 1;
        walked.frames += 1;
    }
}

/// Whether what stands at `offset` is the end or a torn write; if not, what it is.
fn decide(bytes: &[u8], offset: usize, flaw: Option<Flaw>, salt: u32) -> Result<End, String> {
    let rest = bytes.get(offset..).unwrap_or_default();
    if is_zero(rest) {
        return Ok(End::Clean);
    }
    let what = match flaw {
        None => "zeros",
        Some(Flaw::Header) => "a frame whose header has a wrong checksum",
        Some(Flaw::Records(_)) => "a frame whose records have a wrong checksum",
        Some(Flaw::TooLong(_)) => "a frame that is longer than its file",
    };
    if let Some((at, sequence)) = find(bytes, offset + SECTOR, salt) {
        return Err(format!("{what}, and behind it, at byte {at}, the frame with number {sequence}"));
    }
    let is_torn = match flaw {
        // Its first sector was never written.
        None => is_zero(&rest[..rest.len().min(SECTOR)]),
        // Its first sector was not written to the end: then nothing was behind that.
        Some(Flaw::Header) => is_zero(rest.get(HEADER - 1..).unwrap_or_default()),
        Some(Flaw::Records(size)) => {
            let (frame, behind) = rest.split_at(size.min(rest.len()));
            if !is_zero(behind) {
                return Err(format!("{what}, and something else behind it"));
            }
            // A sector was never written, or the last one not to its end, which is not zero.
            has_zero_sector(frame) || !ends_whole(frame)
        }
        Some(Flaw::TooLong(size)) => return Err(format!("{what}: {size} bytes")),
    };
    if is_torn { Ok(End::Torn) } else { Err(format!("{what}, although all of it was written")) }
}

/// Where the frames of a segment begin.
pub(super) const START: usize = FIRST_FRAME as usize;
