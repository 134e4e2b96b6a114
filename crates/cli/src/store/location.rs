//! The location of a store on the command line.

use crate::exit::Failed;
use redrive_store::postgres::Options;
use std::fmt;
use std::path::{Path, PathBuf};

/// A folder, or a database.
pub(super) enum StoreLocation {
    Folder(PathBuf),
    Database(Box<Options>),
}

impl StoreLocation {
    /// Reads a folder, an address, or `env:NAME` for either. Errors do not contain the address, which may have a
    /// password.
    pub(super) fn read(text: &str) -> Result<Self, Failed> {
        match text.strip_prefix("env:") {
            Some(name) => {
                let value = std::env::var(name).map_err(|_| {
                    Failed::usage(format!("{text}: the environment variable {name} is not set; set it first"))
                })?;
                Self::plain(&value).map_err(|why| Failed::usage(format!("{text}: {why}")))
            }
            None => Self::plain(text).map_err(Failed::usage),
        }
    }

    fn plain(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => {
                let options = Options::read(text).map_err(|why| format!("the address of the database: {why}"))?;
                Ok(Self::Database(Box::new(options)))
            }
            Some(_) => {
                Err("found an address of another kind; allowed is a folder or postgres://user@host/database".to_owned())
            }
            None if text.is_empty() => Err("found nothing; allowed is a folder or postgres://…".to_owned()),
            None => Ok(Self::Folder(PathBuf::from(text))),
        }
    }
}

/// Accepts only a folder. The error for an address does not show it, because it may have a password.
pub(super) fn folder(dir: &Path) -> Result<&Path, Failed> {
    match dir.to_string_lossy().split_once("://") {
        None => Ok(dir),
        Some((scheme, _)) => Err(Failed::usage(format!(
            "found an address ({scheme}://…); allowed is the folder of a store. PostgreSQL has its own tools for this: \
             pg_dump and pg_restore for backups, autovacuum for space; `redrive store copy` moves a store into a folder"
        ))),
    }
}

/// The full name of a folder, where the system tells it.
pub(super) fn full_name(dir: &Path) -> PathBuf {
    std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned())
}

/// For people, without passwords.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(dir) => write!(f, "{}", dir.display()),
            Self::Database(options) => write!(f, "{options}"),
        }
    }
}
