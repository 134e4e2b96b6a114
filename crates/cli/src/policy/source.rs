//! A policy from the command line: which dialect it is in, and what it says.

use crate::exit::Failed;
use crate::input::{Document, Unread};
use redrive_policy::dialect::{Dialect, Reading};
use redrive_policy::{Problem, Problems};
use serde_json::{Value, json};

/// The dialect of a file; recognised from its shape where it is not given.
#[derive(clap::Args)]
pub(crate) struct DialectArg {
    /// ojs, azolla, taskharbor, exosphere or mwl [default: recognised from the shape]
    #[arg(long, short, value_name = "DIALECT")]
    pub(crate) dialect: Option<Dialect>,
}

/// A policy that could not be had.
pub(crate) struct Refused {
    /// The dialect, where it is known.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) problems: Problems,
}

impl Refused {
    /// The refusal for programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "valid": false, "dialect": self.dialect, "errors": self.problems.0 })
    }

    /// The same, for a policy that stands under `/policy` of a larger document.
    pub(crate) fn inside_policy(mut self) -> Self {
        self.problems.0.iter_mut().for_each(|problem| problem.path.insert_str(0, "/policy"));
        self
    }

    /// Says what is wrong, to programs on standard output or to people on standard error.
    pub(crate) fn tell(self, json: bool) -> Failed {
        if json {
            return crate::output::json(&self.to_json()).err().unwrap_or(Failed::told());
        }
        let dialect = self.dialect.map_or_else(String::new, |dialect| format!("{dialect} "));
        let count = self.problems.0.len();
        let problems = if count == 1 { "one problem".to_owned() } else { format!("{count} problems") };
        Failed::invalid(format!("not a valid {dialect}policy, {problems}:\n{}", self.problems))
    }
}

/// Reads a document; a file that is not well-formed is refused like one that is not valid.
pub(crate) fn document(document: &Document, dialect: Option<Dialect>, json: bool) -> Result<Value, Failed> {
    document.read().map_err(|unread| match unread {
        Unread::Unreachable(failed) => failed,
        Unread::Malformed(error) => {
            let problems = Problems(vec![Problem::told("", error.to_string())]);
            Refused { dialect, problems }.tell(json)
        }
    })
}

/// Reads a policy from a value.
pub(crate) fn policy(value: &Value, dialect: Option<Dialect>) -> Result<(Dialect, Reading), Refused> {
    let dialect = match dialect {
        Some(dialect) => dialect,
        None => recognise(value)?,
    };
    let reading = dialect.read(value).map_err(|problems| Refused { dialect: Some(dialect), problems })?;
    Ok((dialect, reading))
}

fn recognise(value: &Value) -> Result<Dialect, Refused> {
    Dialect::recognise(value).map_err(|candidates| {
        let names: Vec<&str> = candidates.iter().map(|dialect| dialect.name()).collect();
        let message =
            format!("the shape does not tell the dialect, it could be {}; say which with --dialect", names.join(", "));
        Refused { dialect: None, problems: Problems(vec![Problem::told("", message)]) }
    })
}
