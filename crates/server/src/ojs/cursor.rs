//! Where a list goes on, as text that callers hand back unread.

use redrive_policy::Moment;
use redrive_store::{Entry, Filter};
use std::fmt;

/// A place in a list of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// How many entries came before it.
    pub(super) before: usize,
    /// The last entry that was looked at.
    pub(super) after: Entry,
    /// How many are still to be passed over.
    pub(super) offset: usize,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.", self.before, self.offset)?;
        match self.after.ended {
            Some(ended) => write!(f, "{}", ended.micros())?,
            None => f.write_str("-")?,
        }
        write!(f, ".{}", self.after.id)
    }
}

impl Cursor {
    /// Reads a cursor of the list that this filter gives; `None` where it is none.
    pub(super) fn parse(text: &str, filter: &Filter) -> Option<Self> {
        let mut parts = text.splitn(4, '.');
        let (before, offset) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let ended = match parts.next()? {
            "-" => None,
            micros => Some(Moment::from_micros(micros.parse().ok()?)),
        };
        let id = parts.next()?.parse().ok()?;
        (ended.is_some() == filter.is_by_end()).then_some(Self { before, after: Entry { ended, id }, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_back_by_lists_of_the_same_order_only() {
        let id = "0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c".parse().unwrap();
        let (all, dead) = (Filter::default(), Filter { dead: Some(true), ..Filter::default() });
        for (ended, filter, other) in [(None, &all, &dead), (Some(Moment::from_micros(-5)), &dead, &all)] {
            let cursor = Cursor { before: 7, after: Entry { ended, id }, offset: 2 };
            assert_eq!(Cursor::parse(&cursor.to_string(), filter), Some(cursor));
            assert_eq!(Cursor::parse(&cursor.to_string(), other), None);
        }
        for text in ["", "3", "1.2.3", "1.0.-.x", "-1.0.-.0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c"] {
            assert_eq!(Cursor::parse(text, &all), None, "{text}");
        }
    }
}
