//! What revivals replaced, on disk.

use super::{Decoder, Encode, Malformed};
use crate::Revision;

/// Writes a revision.
pub(crate) fn encode(revision: &Revision, out: &mut Vec<u8>) {
    out.count(revision.generation.into());
    out.moment(revision.at);
    out.text(&revision.by);
    out.bytes(&revision.body);
}

/// Reads a revision.
pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Revision, Malformed> {
    let (generation, at) = (from.small()?, from.moment()?);
    Ok(Revision { generation, at, by: from.text()?.into(), body: from.bytes()?.into() })
}
