//! A retry policy from a file, as the server takes it.

use crate::exit::Failed;
use crate::input::{self, Format};
use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The retry policy of a job.
#[derive(clap::Args)]
pub(crate) struct RetryFile {
    /// The retry policy, from a file or - [default: that of the type, the queue or the server]
    #[arg(long, value_name = "FILE")]
    retry: Option<PathBuf>,
    /// The notation of the retry file [default: by its ending, else json]
    #[arg(long, value_enum, requires = "retry")]
    format: Option<Format>,
    /// ojs, azolla, taskharbor, exosphere or mwl [default: recognised from the shape]
    #[arg(long, short, value_name = "DIALECT", requires = "retry")]
    dialect: Option<Dialect>,
}

impl RetryFile {
    /// The policy, where one is given. Whether it is valid is the server's to say.
    pub(crate) fn read(&self) -> Result<Option<Value>, Failed> {
        let Some(path) = &self.retry else { return Ok(None) };
        let (dialect, policy) = document(path, self.format, self.dialect)?;
        Ok(Some(match dialect {
            Dialect::Ojs => policy,
            other => json!({ "dialect": other.name(), "policy": policy }),
        }))
    }
}

/// A policy as it stands in a file, with its dialect: the one that is given, or the one that its shape
/// tells.
pub(crate) fn document(
    path: &Path,
    format: Option<Format>,
    dialect: Option<Dialect>,
) -> Result<(Dialect, Value), Failed> {
    let policy = input::read(path, format)?;
    let dialect = match dialect {
        Some(dialect) => dialect,
        None => Dialect::recognise(&policy).map_err(|candidates| {
            let names: Vec<&str> = candidates.iter().map(|dialect| dialect.name()).collect();
            Failed::invalid(format!(
                "the shape of {} does not tell the dialect, it could be {}; say which with --dialect",
                input::shown(path),
                names.join(", ")
            ))
        })?,
    };
    Ok((dialect, policy))
}
