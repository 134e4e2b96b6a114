//! What redrives replaced, on disk.

use super::{Decoder, Encode, Unreadable, version};
use crate::Revision;

/// The version of these bytes. It counts up whenever they change.
const VERSION: u8 = 1;

/// Writes a revision.
pub(crate) fn encode(revision: &Revision, out: &mut Vec<u8>) {
    out.byte(VERSION);
    out.count(revision.generation.into());
    out.moment(revision.at);
    out.text(&revision.by);
    out.bytes(&revision.body);
}

/// Reads a revision.
pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Revision, Unreadable> {
    version(from, "a revision", VERSION)?;
    let (generation, at) = (from.small()?, from.moment()?);
    Ok(Revision { generation, at, by: from.text()?.into(), body: from.bytes()?.into() })
}
