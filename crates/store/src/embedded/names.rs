//! The names of the files.

use std::path::{Path, PathBuf};

/// The file that stands for the lock.
pub(super) const LOCK: &str = "lock";
/// The file that says how far the log was flushed.
pub(super) const HIGH_WATER: &str = "high-water";

/// Whether a file of this name is one of a store.
#[must_use]
pub fn is_own(name: &str) -> bool {
    [LOCK, HIGH_WATER].contains(&name) || Name::parse(name).is_some()
}

/// A file of the store, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// A part of the log.
    Segment(u64),
    /// All jobs at the beginning of the segment of the same number, or a little later.
    Snapshot(u64),
    /// A segment that is being prepared.
    Spare(u64),
    /// A snapshot that is being written.
    Draft(u64),
}

impl Name {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (number, ending) = name.split_once('.')?;
        let number = number.parse().ok()?;
        let parsed = match ending {
            "log" => Self::Segment(number),
            "snapshot" => Self::Snapshot(number),
            "spare" => Self::Spare(number),
            "draft" => Self::Draft(number),
            _ => return None,
        };
        // One spelling only, so that no two files have the same number.
        (parsed.text() == name).then_some(parsed)
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Segment(number) => format!("{number:08}.log"),
            Self::Snapshot(number) => format!("{number:08}.snapshot"),
            Self::Spare(number) => format!("{number:08}.spare"),
            Self::Draft(number) => format!("{number:08}.draft"),
        }
    }

    pub(super) fn within(self, dir: &Path) -> PathBuf {
        dir.join(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        for name in [Name::Segment(1), Name::Snapshot(123_456_789), Name::Spare(7), Name::Draft(u64::MAX)] {
            assert_eq!(Name::parse(&name.text()), Some(name));
        }
        for other in ["1.log", "+0000001.log", "00000001.LOG", "lock", "00000001.log.gz", "00000001"] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
