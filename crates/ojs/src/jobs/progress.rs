//! How far a running job has come, as it is answered.

use super::envelope::push_moment;
use crate::json::{member, push_str};
use redrive_policy::Moment;
use std::io::Write;

/// How far a run has come; what was not reported is absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// How much is done, from 0 to 1.
    pub fraction: Option<f64>,
    /// A message for people.
    pub message: Option<&'a str>,
    /// Anything else, as JSON text.
    pub data: Option<&'a [u8]>,
    /// When it was reported.
    pub at: Moment,
}

impl Progress<'_> {
    /// Writes one part as a value: `progress`, `message` or `data`. False where there is none.
    pub fn push_part(&self, out: &mut Vec<u8>, part: &str) -> bool {
        match (part, self.fraction, self.message, self.data) {
            // Writing into a vector cannot fail.
            ("progress", Some(fraction), ..) => drop(write!(out, "{fraction}")),
            ("message", _, Some(message), _) => push_str(out, message),
            ("data", .., Some(data)) => out.extend_from_slice(data),
            _ => return false,
        }
        true
    }

    /// Writes what the envelope of a running job says of it.
    pub(crate) fn push_members(&self, out: &mut Vec<u8>) {
        for (key, part) in [("progress", "progress"), ("progress_message", "message"), ("progress_data", "data")] {
            let start = out.len();
            member(out, key);
            if !self.push_part(out, part) {
                out.truncate(start);
            }
        }
        push_moment(out, "progress_updated_at", self.at);
    }
}
