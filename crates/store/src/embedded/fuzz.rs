//! The readers of the log, for the fuzz targets.

use super::frame::{Frame, SECTOR, find, parse};
use super::header::FileHeader;
use super::load::Loader;
use super::walk::walk;

/// Checksums depend on a random number; a fuzzer can use any.
const SALT: u32 = 7;

/// Bytes as a part of a log, and as the records of a frame.
pub fn frame(bytes: &[u8]) {
    if let Some(Ok(parsed)) = parse(bytes, SALT) {
        assert_frame(&parsed.records, parsed.sequence);
    }
    let _ = find(bytes, 0, SALT);
    let walked = walk(bytes, SALT, 0, 1, |_| Ok(()));
    assert!(walked.offset <= bytes.len());
    assert_frame(bytes, 1);
}

/// What is written is read, and is written again as the same bytes.
fn assert_frame(records: &[u8], sequence: u64) {
    let written = |records: &[u8]| {
        let mut frame = Frame::new();
        frame.records().extend_from_slice(records);
        frame.finish(SALT, sequence).to_vec()
    };
    let bytes = written(records);
    assert!(bytes.len().is_multiple_of(SECTOR));
    let parsed = parse(&bytes, SALT).and_then(Result::ok).map(|parsed| (parsed.sequence, parsed.records.into_owned()));
    assert_eq!(parsed, Some((sequence, records.to_vec())));
    assert_eq!(written(records), bytes);
}

/// Bytes as the first sector of a file.
pub fn header(bytes: &[u8]) {
    if let Ok(header) = FileHeader::decode(bytes) {
        assert_eq!(header.encode(), bytes[..SECTOR]);
    }
}

/// Bytes as the records of a log, from which a store is loaded.
pub fn log(bytes: &[u8]) {
    let mut loader = Loader::default();
    if loader.apply(bytes).is_ok() {
        let _ = loader.finish();
    }
}
