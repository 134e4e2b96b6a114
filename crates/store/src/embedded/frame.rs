//! The unit that is written with one flush, and read whole or not at all.
//!
//! ```text
//! 0   magic, four bytes that are not zero
//! 4   length of the records, u32
//! 8   sequence number, u64
//! 16  mask of the records, u32
//! 20  checksum of the masked records and the byte behind them, u32
//! 24  checksum of the 24 bytes before, u32
//! 28  records, masked; then one byte that is not zero; then zeros up to a whole sector
//! ```
//!
//! Both checksums start from the salt of the file, so that no client can craft a payload that makes one
//! that reads as a frame.
//!
//! A frame has its sectors for itself, so that writing it never touches what is safe already. It goes to
//! an area that held only zeros before. So that a sector that was never written can be distinguished from
//! one that was, no sector of a frame is all zero: the first has the magic, the last the final byte, and
//! between them the mask is chosen so.

use std::borrow::Cow;

/// The length of what stands before the records.
pub(super) const HEADER: usize = 28;
/// What a frame has beside its records, without the zeros at its end.
const OVERHEAD: usize = HEADER + 1;
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
        (self.0.len() + 1).next_multiple_of(SECTOR)
    }

    /// Empties it, keeping at most `keep` bytes of its memory.
    pub(super) fn clear(&mut self, keep: usize) {
        self.0.truncate(HEADER);
        self.0.shrink_to(keep);
    }

    /// Completes it.
    pub(super) fn finish(&mut self, salt: u32, sequence: u64) -> &[u8] {
        let end = self.0.len();
        self.0.push(LAST);
        self.0.resize((end + 1).next_multiple_of(SECTOR), 0);
        let mut mask = 0_u32;
        loop {
            self.stamp(end, salt, sequence, mask);
            if !has_zero_sector(&self.0) {
                return &self.0;
            }
            // Each sector rules out one mask at most, so that one more than there are sectors suffice.
            apply(mask, &mut self.0[HEADER..end]);
            mask = mask.wrapping_add(mask_step(salt));
            apply(mask, &mut self.0[HEADER..end]);
        }
    }

    /// Writes the header, for records that end at `end`.
    fn stamp(&mut self, end: usize, salt: u32, sequence: u64, mask: u32) {
        let (header, rest) = self.0.split_at_mut(HEADER);
        let checksum = checksum(salt, &rest[..=end - HEADER]);
        header[..4].copy_from_slice(&MAGIC);
        header[4..8].copy_from_slice(&((end - HEADER) as u32).to_le_bytes());
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
    /// The checksum of the header is wrong; the length of the frame is unknown.
    Header,
    /// The header is right and the rest is not; the frame has this length.
    Records(usize),
    /// The header is right, and the frame would end behind the end of the file.
    TooLong(usize),
}

/// Reads the frame that `bytes` start with; `None` where there are only zeros instead of a header.
pub(super) fn parse(bytes: &[u8], salt: u32) -> Option<Result<Parsed<'_>, Flaw>> {
    let head = &bytes[..bytes.len().min(HEADER)];
    if is_zero(head) {
        return None;
    }
    let Some(header) = Header::read(head, salt) else { return Some(Err(Flaw::Header)) };
    let size = header.size();
    let Some(rest) = bytes.get(HEADER..size) else { return Some(Err(Flaw::TooLong(size))) };
    Some(header.check(rest, salt).map(|records| Parsed { sequence: header.sequence, records, size }))
}

/// The header of a frame, for who reads a file piece by piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Of the records.
    length: usize,
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

    /// The length of the whole frame on disk.
    pub(super) const fn size(&self) -> usize {
        (self.length + OVERHEAD).next_multiple_of(SECTOR)
    }

    /// The records, from the bytes between the header and the end of the frame.
    pub(super) fn check<'a>(&self, rest: &'a [u8], salt: u32) -> Result<Cow<'a, [u8]>, Flaw> {
        let flaw = Flaw::Records(self.size());
        let (covered, padding) = rest.split_at_checked(self.length + 1).ok_or(flaw)?;
        let (records, last) = covered.split_at(self.length);
        if last != [LAST] || checksum(salt, covered) != self.checksum || !is_zero(padding) {
            return Err(flaw);
        }
        let mut records = Cow::Borrowed(records);
        if self.mask != 0 {
            apply(self.mask, records.to_mut());
        }
        Ok(records)
    }
}

/// The first sector at or after `from`, which is one, at which a whole frame can be read, and its sequence
/// number.
pub(super) fn find(bytes: &[u8], from: usize, salt: u32) -> Option<(usize, u64)> {
    (from..bytes.len()).step_by(SECTOR).find_map(|at| match parse(&bytes[at..], salt) {
        Some(Ok(frame)) => Some((at, frame.sequence)),
        _ => None,
    })
}

/// Whether a sector of a frame is all zero.
pub(super) fn has_zero_sector(bytes: &[u8]) -> bool {
    bytes.chunks(SECTOR).any(is_zero)
}

/// Whether the byte that ends every frame is there, by the length in its header, which is right.
pub(super) fn ends_whole(bytes: &[u8]) -> bool {
    let length = bytes.get(4..8).and_then(|length| length.try_into().ok()).map_or(0, u32::from_le_bytes);
    bytes.get(HEADER + length as usize).is_some_and(|last| *last != 0)
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
/// that no payload can be crafted that exhausts many.
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

    fn frame(records: &[u8], sequence: u64) -> Vec<u8> {
        let mut frame = Frame::new();
        frame.records().extend_from_slice(records);
        let size = frame.size();
        let bytes = frame.finish(9, sequence).to_vec();
        assert_eq!((bytes.len(), bytes.len() % SECTOR), (size, 0));
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        for length in [0, 1, 482, 483, 484, 700, 5_000] {
            for filler in [0, 0xff] {
                let records = vec![filler; length];
                let bytes = frame(&records, 7);
                let parsed = parse(&bytes, 9).unwrap().unwrap();
                assert_eq!((parsed.sequence, &*parsed.records, parsed.size), (7, &records[..], bytes.len()));
            }
        }
    }

    #[test]
    fn no_sector_of_a_frame_is_all_zero_whatever_the_records() {
        // Records made of the very masks that are tried first, at every phase.
        let masks: Vec<u32> = (0..6).map(|step: u32| step.wrapping_mul(mask_step(9))).collect();
        for shift in 0..600 {
            let mut records = vec![1; shift];
            records.extend(masks.iter().flat_map(|mask| mask.to_le_bytes().repeat(300)));
            let bytes = frame(&records, 1);
            assert!(!has_zero_sector(&bytes), "shift {shift}");
            assert_eq!(*parse(&bytes, 9).unwrap().unwrap().records, *records);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = frame(b"some records", 3);
        for bit in 0..bytes.len() * 8 {
            let mut copy = bytes.clone();
            copy[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&copy, 9).unwrap().is_err(), "bit {bit}");
        }
        assert!(parse(&bytes, 8).unwrap().is_err(), "another salt");
    }

    #[test]
    fn a_frame_is_found_behind_garbage() {
        let mut bytes = vec![0xf5; 3 * SECTOR];
        bytes.extend(frame(b"abc", 12));
        assert_eq!(find(&bytes, 0, 9), Some((3 * SECTOR, 12)));
        assert_eq!(find(&bytes, 4 * SECTOR, 9), None);
        assert_eq!(find(&bytes, 100 * SECTOR, 9), None);
    }
}
