//! Notices of a running store for its operator.

use crate::StoreError;
use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A change in how a store is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The store answers no more.
    Stopped(StoreError),
    /// Writes wait for a resource that other processes have to free; this one.
    Waits(String),
    /// They wait no more.
    GoesOn,
    /// The log cannot be compacted, and grows. This is reported once, and not again until a compaction has succeeded.
    CompactionFails(StoreError),
    /// The log was compacted after that had failed.
    CompactionWorks,
    /// A file is gone without which the store could not be opened again.
    FileLost(PathBuf),
    /// A new snapshot has made up for it.
    FileReplaced,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(why) | Self::CompactionFails(why) => f.write_str(reason(why)),
            Self::Waits(why) => f.write_str(why),
            Self::GoesOn => f.write_str("the store has what it waited for, and goes on"),
            Self::CompactionWorks => f.write_str("the log can be compacted again"),
            Self::FileLost(path) => write!(
                f,
                "{} was deleted or moved while the store was open; without it the store could not be opened again, so \
                 that a new snapshot of all jobs is being written",
                path.display()
            ),
            Self::FileReplaced => f.write_str("the new snapshot is complete; nothing is lost"),
        }
    }
}

/// What an error says, without what kind of error it is to callers.
pub(super) fn reason(error: &StoreError) -> &str {
    match error {
        StoreError::Unavailable(why) | StoreError::Broken(why) => why,
    }
}

type Tell = Box<dyn Fn(&Notice) + Send + Sync>;

/// Where notices go; nowhere until a listener is set.
#[derive(Default)]
pub(super) struct Notices(OnceLock<Tell>);

impl Notices {
    /// Only the first listener counts.
    pub(super) fn set(&self, tell: Tell) {
        let _ = self.0.set(tell);
    }

    pub(super) fn tell(&self, notice: &Notice) {
        if let Some(tell) = self.0.get() {
            tell(notice);
        }
    }
}
