//! A retry policy from a file, as the server takes it.

use crate::exit::Failed;
use crate::input::{self, Format};
use crate::policy::source::unrecognised_problems;
use redrive_policy::Problems;
use redrive_policy::dialect::Dialect;
use redrive_policy::notation::recognise;
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
    if let Some(dialect) = dialect {
        return Ok((dialect, policy));
    }
    let file = input::shown(path);
    let found = recognise(&policy).map_err(|unrecognised| {
        let problems = Problems(unrecognised_problems(unrecognised));
        Failed::invalid(format!("{file} is not a policy that is known:\n{problems}"))
    })?;
    match found.notation.dialect() {
        Some(dialect) => Ok((dialect, found.value.clone())),
        None => Err(Failed::invalid(format!(
            "{file} has the settings of {0}, which a server does not read; write them in a dialect first: redrive policy \
             convert {file} --from {0} --to ojs",
            found.notation
        ))),
    }
}
