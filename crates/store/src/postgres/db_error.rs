//! What can go wrong between this process and the database, sorted by what the caller may do about it.

use crate::StoreError;
use std::fmt;
use tokio_postgres::error::SqlState;

/// Why a transaction failed, or may have.
#[derive(Debug)]
pub(super) enum DbError {
    /// The database rolled the transaction back, and the same one may succeed when repeated: a deadlock, or
    /// writes that collided.
    Collided(String),
    /// An id or key is taken, or a queue was deleted, and the transaction was rolled back.
    Taken,
    /// The database is reachable and refuses for now; nothing was written.
    Refused(String),
    /// The connection is gone, and with it a transaction that was not being committed yet.
    Lost(String),
    /// The database gave no answer for too long. Trying again would take as long again.
    Silent(String),
    /// The connection is gone, and whether the transaction was committed is not known.
    Unknown(String),
    /// A newer version of this program wrote the row.
    Newer(String),
    /// The role lacks a privilege.
    Denied(String),
    /// The database does not hold what this program needs, or not in the shape it needs.
    Broken(String),
}

impl DbError {
    /// Whether the same transaction may be tried again.
    pub(super) const fn may_repeat(&self) -> bool {
        matches!(self, Self::Collided(_) | Self::Lost(_))
    }

    /// The same error in a transaction that was being committed.
    pub(super) fn while_committing(self) -> Self {
        match self {
            Self::Lost(why) | Self::Silent(why) => {
                Self::Unknown(format!("{why}; whether the last write was committed is not known"))
            }
            other => other,
        }
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collided(why)
            | Self::Refused(why)
            | Self::Lost(why)
            | Self::Silent(why)
            | Self::Unknown(why)
            | Self::Newer(why)
            | Self::Denied(why)
            | Self::Broken(why) => f.write_str(why),
            Self::Taken => f.write_str("an id or key is taken, or a queue was deleted"),
        }
    }
}

impl From<tokio_postgres::Error> for DbError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(state) = error.code() else {
            return Self::Lost(with_cause(&error));
        };
        let why = with_cause(&error);
        match *state {
            SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED | SqlState::LOCK_NOT_AVAILABLE => {
                Self::Collided(why)
            }
            // The only column of ours that may turn out to be missing is the queue of a new job.
            SqlState::UNIQUE_VIOLATION | SqlState::NOT_NULL_VIOLATION => Self::Taken,
            SqlState::INSUFFICIENT_PRIVILEGE => Self::Denied(why),
            SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => Self::Lost(why),
            // A standby after a failover, a statement that was cancelled, or resources that ran out: the
            // disk, connections, memory.
            SqlState::CANNOT_CONNECT_NOW | SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::QUERY_CANCELED => {
                Self::Refused(why)
            }
            _ if state.code().starts_with("53") || state.code().starts_with("08") => Self::Refused(why),
            _ => Self::Broken(why),
        }
    }
}

impl From<DbError> for StoreError {
    fn from(db_error: DbError) -> Self {
        match db_error {
            DbError::Broken(why) | DbError::Denied(why) => Self::Broken(why),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

/// The message of an error and of what is behind it: the client's own says only where it happened.
pub(super) fn with_cause(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(db), _) => format!("PostgreSQL says: {} (SQLSTATE {})", db.message(), db.code().code()),
        (None, Some(cause)) => format!("PostgreSQL: {error}: {cause}"),
        (None, None) => format!("PostgreSQL: {error}"),
    }
}
