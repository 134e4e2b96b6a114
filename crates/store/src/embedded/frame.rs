//! The unit that is written with one flush, and read whole or not at all.
//!
//! ```text
//! 0   magic, four bytes that are not zero
//! 4   length of the records, u32
//! 8   sequence number, u64
//! 16  mask of the records, u32
//! 20  checksum of the masked records, u32
//! 24  checksum of the 24 bytes before, u32
//! 28  records, masked; then one byte that is not zero
//! ```
//!
//! Both checksums start from the salt of the file, so that nobody who hands in a payload can make one
//! that reads as a frame.
//!
//! A frame goes to a place where there were only zeros before. So that a sector that was never written
//! can be told from one that was, no sector of a frame is all zero: the first has the magic, the last
//! the final byte, and between them the mask is chosen so.

use std::borrow::Cow;

/// The length of what stands before the records.
pub(super) const HEADER: usize = 28;
/// What a frame costs beside its records.
pub(super) const OVERHEAD: usize = HEADER + 1;
/// The smallest unit that disks write whole or not at all.
pub(super) const SECTOR: usize = 512;

const MAGIC: [u8; 4] = [0xf5, b'r', b'd', b'f'];
const LAST: u8 = 0xe5;

/// A frame that is being filled.
#[derive(Debug)]
pub(super) struct Frame(Vec<u8>);

impl Frame {
    pub(super) fn new() -> Self {
        Self(vec![0; HEADER])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == HEADER
    }

    /// Where records are appended.
    pub(super) fn records(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// The length that it will have on disk.
    pub(super) fn size(&self) -> usize {
        self.0.len() + 1
    }

    /// Empties it, keeping at most `keep` bytes of its memory.
    pub(super) fn clear(&mut self, keep: usize) {
        self.0.truncate(HEADER);
        self.0.shrink_to(keep);
    }

    /// Completes it for its place in the file.
    pub(super) fn finish(&mut self, salt: u32, sequence: u64, offset: u64) -> &[u8] {
        self.0.push(LAST);
        let mut mask = 0_u32;
        loop {
            self.stamp(salt, sequence, mask);
            if !has_zero_sector(&self.0, offset) {
                return &self.0;
            }
            // Each sector rules out one mask at most, so that one more than there are sectors suffice.
            apply(mask, self.records_mut());
            mask = mask.wrapping_add(mask_step(salt));
            apply(mask, self.records_mut());
        }
    }

    fn records_mut(&mut self) -> &mut [u8] {
        let end = self.0.len() - 1;
        &mut self.0[HEADER..end]
    }

    fn stamp(&mut self, salt: u32, sequence: u64, mask: u32) {
        let length = self.0.len() - OVERHEAD;
        let checksum = checksum(salt, &self.0[HEADER..]);
        let header = &mut self.0[..HEADER];
        header[..4].copy_from_slice(&MAGIC);
        header[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        header[8..16].copy_from_slice(&sequence.to_le_bytes());
        header[16..20].copy_from_slice(&mask.to_le_bytes());
        header[20..24].copy_from_slice(&checksum.to_le_bytes());
        let own = self::checksum(salt, &header[..24]);
        header[24..].copy_from_slice(&own.to_le_bytes());
    }
}

/// A frame that was read.
#[derive(Debug)]
pub(super) struct Parsed<'a> {
    pub(super) sequence: u64,
    pub(super) records: Cow<'a, [u8]>,
    /// Its length on disk.
    pub(super) size: usize,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The header is incomplete, or its checksum is wrong; the length of the frame is unknown.
    Header,
    /// The header is right and the rest is not; the frame has this length.
    Records(usize),
    /// The header is right, and the frame would end behind the end of the file.
    TooLong(usize),
}

/// Reads the frame that `bytes` start with; `None` where there are only zeros in the place of its header.
pub(super) fn parse(bytes: &[u8], salt: u32) -> Option<Result<Parsed<'_>, Flaw>> {
    let head = &bytes[..bytes.len().min(HEADER)];
    if is_zero(head) {
        return None;
    }
    let Some(header) = Header::read(head, salt) else { return Some(Err(Flaw::Header)) };
    let size = header.length + OVERHEAD;
    let Some(rest) = bytes.get(HEADER..size) else { return Some(Err(Flaw::TooLong(size))) };
    Some(header.check(rest, salt).map(|records| Parsed { sequence: header.sequence, records, size }))
}

/// The header of a frame, for who reads a file piece by piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Of the records.
    pub(super) length: usize,
    pub(super) sequence: u64,
    mask: u32,
    checksum: u32,
}

impl Header {
    pub(super) fn read(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes: &[u8; HEADER] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..4] != MAGIC || word(24) != checksum(salt, &bytes[..24]) {
            return None;
        }
        let sequence = u64::from(word(8)) | u64::from(word(12)) << 32;
        Some(Self { length: word(4) as usize, sequence, mask: word(16), checksum: word(20) })
    }

    /// The records, from the bytes between the header and the end of the frame.
    pub(super) fn check<'a>(&self, rest: &'a [u8], salt: u32) -> Result<Cow<'a, [u8]>, Flaw> {
        let Some((last, records)) = rest.split_last() else { return Err(Flaw::Records(OVERHEAD)) };
        if *last != LAST || checksum(salt, rest) != self.checksum {
            return Err(Flaw::Records(self.length + OVERHEAD));
        }
        let mut records = Cow::Borrowed(records);
        if self.mask != 0 {
            apply(self.mask, records.to_mut());
        }
        Ok(records)
    }
}

/// The first place at or after `from` where a whole frame can be read, and its sequence number.
pub(super) fn find(bytes: &[u8], from: usize, salt: u32) -> Option<(usize, u64)> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == MAGIC[0])?;
        if let Some(Ok(frame)) = parse(&bytes[at..], salt) {
            return Some((at, frame.sequence));
        }
        at += 1;
    }
}

/// Whether a part of `bytes` that lies within one sector of the file is all zero.
pub(super) fn has_zero_sector(bytes: &[u8], offset: u64) -> bool {
    let first = SECTOR - (offset % SECTOR as u64) as usize;
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    is_zero(head) || rest.chunks(SECTOR).any(is_zero)
}

/// Whether all bytes are zero.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    // In pieces without an early exit, which compile to wide loads.
    bytes.chunks(64).all(|piece| piece.iter().fold(0, |seen, byte| seen | byte) == 0)
}

fn checksum(salt: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    hasher.update(bytes);
    hasher.finalize()
}

/// The distance between the masks that are tried: odd, so that all are different, and from the salt, so
/// that nobody can hand in a payload that wears out many.
const fn mask_step(salt: u32) -> u32 {
    salt.wrapping_mul(0x9e37_79b9) | 1
}

fn apply(mask: u32, records: &mut [u8]) {
    let mask = mask.to_le_bytes();
    for (index, byte) in records.iter_mut().enumerate() {
        *byte ^= mask[index % 4];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(records: &[u8], sequence: u64, offset: u64) -> Vec<u8> {
        let mut frame = Frame::new();
        frame.records().extend_from_slice(records);
        frame.finish(9, sequence, offset).to_vec()
    }

    #[test]
    fn what_is_written_is_read() {
        for records in [&b""[..], b"x", &[0; 5000], &[0xff; 700]] {
            let bytes = frame(records, 7, 100);
            let parsed = parse(&bytes, 9).unwrap().unwrap();
            assert_eq!((parsed.sequence, &*parsed.records, parsed.size), (7, records, bytes.len()));
        }
    }

    #[test]
    fn no_sector_of_a_frame_is_all_zero_whatever_the_records() {
        // Records made of the very masks that are tried first, at every phase and at every place in a sector.
        let masks: Vec<u32> = (0..6).map(|step: u32| step.wrapping_mul(mask_step(9))).collect();
        for shift in 0..4 {
            let mut records = vec![1; shift];
            records.extend(masks.iter().flat_map(|mask| mask.to_le_bytes().repeat(300)));
            for offset in (0..1024).step_by(7) {
                let bytes = frame(&records, 1, offset);
                assert!(!has_zero_sector(&bytes, offset), "shift {shift}, offset {offset}");
                assert_eq!(*parse(&bytes, 9).unwrap().unwrap().records, *records);
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = frame(b"some records", 3, 0);
        for bit in 0..bytes.len() * 8 {
            let mut copy = bytes.clone();
            copy[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&copy, 9).unwrap().is_err(), "bit {bit}");
        }
        assert!(parse(&bytes, 8).unwrap().is_err(), "another salt");
    }

    #[test]
    fn a_frame_is_found_behind_garbage() {
        let mut bytes = vec![0xf5; 77];
        bytes.extend(frame(b"abc", 12, 77));
        assert_eq!(find(&bytes, 0, 9), Some((77, 12)));
        assert_eq!(find(&bytes, 78, 9), None);
        assert_eq!(find(&bytes, 1000, 9), None);
    }
}
