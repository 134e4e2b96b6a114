//! The first sector of every file: what it is, and of which format.
//!
//! ```text
//! 0   "redrive\n"
//! 8   format, u32: at this offset in every format, now and later
//! 12  kind, u32: 1 a segment of the log, 2 a snapshot
//! 16  number, u64
//! 24  length of the file, u64; 0 where it is not fixed in advance
//! 32  salt of the checksums, u32
//! 36  checksum of the 36 bytes before, u32
//! 40  zeros up to 512
//! ```

use super::frame::{SECTOR, is_zero};
use std::io;

/// The format that this version writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 1;
/// Where the frames begin.
pub(super) const FIRST_FRAME: u64 = SECTOR as u64;

const MAGIC: &[u8; 8] = b"redrive\n";

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Segment = 1,
    Snapshot = 2,
}

/// The head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) kind: Kind,
    pub(super) number: u64,
    /// The length that the file has from its beginning to its end; 0 where it grows.
    pub(super) length: u64,
    pub(super) salt: u32,
}

/// Why a head cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFlaw {
    Unreadable,
    /// Made by a version that writes this format.
    Newer(u32),
}

impl FileHeader {
    pub(super) fn encode(&self) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.length.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.salt.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..36]);
        bytes[36..40].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, HeaderFlaw> {
        let bytes = bytes.first_chunk::<SECTOR>().ok_or(HeaderFlaw::Unreadable)?;
        let small = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let large = |at: usize| u64::from(small(at)) | u64::from(small(at + 4)) << 32;
        if bytes[..8] != *MAGIC || small(36) != crc32fast::hash(&bytes[..36]) {
            return Err(HeaderFlaw::Unreadable);
        }
        match small(8) {
            0 => return Err(HeaderFlaw::Unreadable),
            newer if newer > FORMAT => return Err(HeaderFlaw::Newer(newer)),
            _ => {}
        }
        let kind = match small(12) {
            1 => Kind::Segment,
            2 => Kind::Snapshot,
            _ => return Err(HeaderFlaw::Unreadable),
        };
        if !is_zero(&bytes[40..]) {
            return Err(HeaderFlaw::Unreadable);
        }
        Ok(Self { kind, number: large(16), length: large(24), salt: small(32) })
    }
}

/// A salt that the author of a payload cannot guess. It changes no answer of the store.
///
/// # Errors
/// The operating system gives no random numbers.
pub(super) fn fresh_salt() -> io::Result<u32> {
    getrandom::u32().map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: FileHeader = FileHeader { kind: Kind::Segment, number: 12, length: 4096, salt: 77 };

    #[test]
    fn a_head_survives_and_every_flipped_bit_is_noticed() {
        let bytes = HEADER.encode();
        assert_eq!(FileHeader::decode(&bytes), Ok(HEADER));
        for bit in 0..SECTOR * 8 {
            let mut copy = bytes;
            copy[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&copy), Err(HeaderFlaw::Unreadable), "bit {bit}");
        }
        assert_eq!(FileHeader::decode(&bytes[..100]), Err(HeaderFlaw::Unreadable));
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut bytes = HEADER.encode();
        bytes[8] = 2;
        let checksum = crc32fast::hash(&bytes[..36]);
        bytes[36..40].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(FileHeader::decode(&bytes), Err(HeaderFlaw::Newer(2)));
    }
}
