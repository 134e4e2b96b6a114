//! How a command fails.

use std::fmt;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    /// The exit code: 1 the input is invalid or a check failed, 2 wrong usage, 3 a server or store failed.
    pub(crate) code: u8,
    /// The message for people; empty if everything has been printed already.
    pub(crate) message: String,
}

impl Failed {
    /// The input is invalid, or a check failed.
    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// The command line itself is wrong.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// A server or a store could not be reached, or failed.
    pub(crate) fn unreachable(message: impl fmt::Display) -> Self {
        Self { code: 3, message: message.to_string() }
    }

    /// The input is invalid, and the output says so already.
    pub(crate) const fn already_reported() -> Self {
        Self { code: 1, message: String::new() }
    }
}
