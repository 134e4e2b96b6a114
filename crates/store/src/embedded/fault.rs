//! What can be wrong with a folder, in words that lead on.

use super::header::FORMAT;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a store cannot be opened, checked or backed up. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Another process has the folder open.
    InUse {
        /// The folder.
        dir: PathBuf,
        /// The number of the process, if it left one.
        holder: Option<u32>,
    },
    /// What is on disk is not what was written.
    Damaged(Damage),
    /// A newer version has written here.
    TooNew {
        /// The first file of that version.
        file: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A newer version has written a record.
    TooNewRecord {
        /// The file.
        file: PathBuf,
        /// Where the frame of the record begins.
        offset: u64,
        /// Which version was found, and which are known.
        found: String,
    },
    /// There is no store in the folder.
    Missing(PathBuf),
    /// A backup goes to an empty folder only.
    NotEmpty(PathBuf),
    /// The disk did not do what was asked.
    Disk(IoError),
}

/// A position at which a file is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The first byte of what cannot be read.
    pub offset: u64,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
}

/// A call of the operating system that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoError {
    /// What was to be done, such as `write to 00000003.log`.
    pub doing: String,
    /// What the operating system said.
    pub error: String,
    /// The kind of error, which decides about the way out.
    pub kind: IoErrorKind,
}

/// The kind of a failed system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoErrorKind {
    /// There is no room left on the disk.
    Full,
    /// A file of the open store has been moved or removed.
    Gone,
    /// The process, or the machine, has no file descriptor left.
    Descriptors,
    /// Anything else.
    Other,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { dir, holder } => {
                write!(f, "the store in {} is in use by ", dir.display())?;
                match holder {
                    Some(pid) => write!(f, "process {pid}")?,
                    None => write!(f, "another process")?,
                }
                write!(f, "; one process at a time can have it open: stop that one, or use another folder")
            }
            Self::Damaged(damage) => {
                let dir = damage.file.parent().unwrap_or(Path::new("."));
                write!(f, "{damage}; nothing was changed. `redrive store check {}` shows the extent; ", dir.display())?;
                write!(f, "restore a backup, or keep a copy of the folder and ask for help")
            }
            Self::TooNew { file, format } => write!(
                f,
                "{} has format {format}, and this version reads formats up to {FORMAT}; nothing was changed. \
                 Start the version that wrote it, or a newer one",
                file.display()
            ),
            Self::TooNewRecord { file, offset, found } => {
                write!(f, "{} at byte {offset}: {found}; nothing was changed", file.display())
            }
            Self::Missing(dir) => write!(f, "there is no store in {}; check the path", dir.display()),
            Self::NotEmpty(dir) => write!(f, "{} is not empty; give an empty or a new folder", dir.display()),
            Self::Disk(io_error) => write!(f, "{io_error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, found, expected } = self;
        write!(f, "{} is damaged at byte {offset}: found {found}, expected {expected}", file.display())
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.doing, self.error)
    }
}

impl std::error::Error for IoError {}

impl IoError {
    pub(super) fn new(verb: &str, path: &Path, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoErrorKind::Full,
            _ if is_out_of_descriptors(error) => IoErrorKind::Descriptors,
            _ => IoErrorKind::Other,
        };
        Self { doing: format!("{verb} {}", path.display()), error: error.to_string(), kind }
    }

    /// A file is not where it was, although the store has it open.
    pub(super) fn gone(path: &Path) -> Self {
        let error = "it was deleted, moved or replaced while the store was open".to_owned();
        Self { doing: format!("find {}", path.display()), error, kind: IoErrorKind::Gone }
    }

    /// What to do about it.
    pub(super) const fn way_out(&self) -> &'static str {
        match self.kind {
            IoErrorKind::Full => "make room on the disk",
            IoErrorKind::Gone => "put the folder back in its place, or restore a backup,",
            IoErrorKind::Descriptors => "raise the limit on open files (`ulimit -n`), or close connections,",
            IoErrorKind::Other => "see to the disk",
        }
    }
}

/// Whether a call failed because no file descriptor is left.
pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE, which have these numbers on every Unix.
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

impl From<IoError> for OpenError {
    fn from(io_error: IoError) -> Self {
        Self::Disk(io_error)
    }
}

impl From<Damage> for OpenError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// Says what was being done when a call failed.
pub(super) trait Doing<T> {
    fn doing(self, verb: &str, path: &Path) -> Result<T, IoError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, verb: &str, path: &Path) -> Result<T, IoError> {
        self.map_err(|error| IoError::new(verb, path, &error))
    }
}
