//! Backups of a store in a folder of this machine: each in a folder of its own below one that the operator has named.

mod folder;
mod label;
mod progress;
mod schedule;

pub use folder::{Backup, BackupError, backups_in};
pub use label::BackupLabel;

pub(crate) use folder::BackupFolder;
pub(crate) use progress::Progress;
pub(crate) use schedule::{SCHEDULED, default_name};

use redrive_policy::Span;

/// How often the server makes a backup by itself, and how many of these it retains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackupSchedule {
    /// The time from one backup to the next.
    pub every: Span,
    /// How many are retained: once there are more, the oldest ones are deleted.
    pub keep: usize,
}
