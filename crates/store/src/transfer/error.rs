//! Why a store was not copied.

use crate::StoreError;
use std::fmt;

/// Why a store was not copied. Where it came from is unchanged, and where it was to go is no store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// This copy is not allowed: what was found, what is allowed, and the way out.
    Refused(String),
    /// A store is missing, in use or damaged, or it failed.
    Failed(String),
    /// What was read back is not what was written.
    Differs(String),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::Failed(why) => f.write_str(why),
            Self::Differs(what) => write!(f, "the copy is not the same: {what}; it was not kept. This is a bug"),
        }
    }
}

impl std::error::Error for CopyError {}

impl From<StoreError> for CopyError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<crate::embedded::OpenError> for CopyError {
    fn from(error: crate::embedded::OpenError) -> Self {
        Self::Failed(error.to_string())
    }
}
