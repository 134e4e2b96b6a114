//! What revivals replaced, on disk.

use super::{Decoder, Encode, Malformed};
use crate::Revision;

/// Writes a revision.
pub(crate) fn encode(revision: &Revision, out: &mut Vec<u8>) {
    out.count(revision.life.into());
    out.moment(revision.at);
    out.text(&revision.by);
    out.bytes(&revision.body);
}

/// Reads a revision.
pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Revision, Malformed> {
    let (life, at) = (from.small()?, from.moment()?);
    Ok(Revision { life, at, by: from.text()?.into(), body: from.bytes()?.into() })
}
