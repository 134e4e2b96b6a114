//! A policy from the command line: which dialect it is in, and what it says.

use crate::exit::Failed;
use crate::input::{Document, Unread};
use redrive_policy::dialect::{Dialect, Loss, Reading};
use redrive_policy::import::Source;
use redrive_policy::{Problem, Problems};
use serde_json::{Value, json};
use std::str::FromStr;

/// The dialect of a file; recognised from its shape where it is not given.
#[derive(clap::Args)]
pub(crate) struct DialectArg {
    /// ojs, azolla, taskharbor, exosphere or mwl [default: recognised from the shape]
    #[arg(long, short, value_name = "DIALECT")]
    pub(crate) dialect: Option<Dialect>,
}

/// How a policy is written: in a dialect, or as the settings of a system that people migrate from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Dialect(Dialect),
    Import(Source),
}

impl Notation {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Dialect(dialect) => dialect.name(),
            Self::Import(source) => source.name(),
        }
    }

    /// The dialect, which imported settings have none of.
    pub(crate) const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Dialect(dialect) => Some(dialect),
            Self::Import(_) => None,
        }
    }
}

impl FromStr for Notation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let dialect = name.parse().map(Self::Dialect);
        dialect.or_else(|unknown: String| {
            name.parse().map(Self::Import).map_err(|_| {
                let systems: Vec<&str> = Source::ALL.iter().map(|source| source.name()).collect();
                format!("{unknown}; to import from are {}", systems.join(", "))
            })
        })
    }
}

/// The notation of a file; recognised from its shape where it is not given.
#[derive(clap::Args)]
pub(crate) struct NotationArg {
    /// ojs, azolla, taskharbor, exosphere, mwl; or to import: temporal, sidekiq, celery, bullmq,
    /// faktory, oban [default: recognised from the shape]
    #[arg(long = "dialect", short = 'd', value_name = "DIALECT")]
    pub(crate) notation: Option<Notation>,
}

/// A policy from a file.
pub(crate) struct Loaded {
    pub(crate) notation: Notation,
    pub(crate) reading: Reading,
    /// What could not even be read into the canonical policy; only imports have that.
    pub(crate) lost: Vec<LostOnTheWay>,
}

/// Something that got lost: where, and what happens instead.
pub(crate) struct LostOnTheWay {
    pub(crate) path: String,
    pub(crate) message: String,
}

impl LostOnTheWay {
    pub(crate) fn of(loss: Loss, notation: Notation) -> Self {
        let Loss { path, message, .. } = match notation.dialect() {
            Some(dialect) => loss.seen_from(dialect),
            None => loss,
        };
        Self { path, message }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "path": self.path, "message": self.message })
    }
}

/// Reads a policy in any notation, from a document.
pub(crate) fn load(document: &Document, notation: Option<Notation>, json: bool) -> Result<Loaded, Failed> {
    let value = self::document(document, notation.and_then(Notation::dialect), json)?;
    let loaded = match notation {
        Some(Notation::Import(source)) => imported(&value, source),
        other => policy(&value, other.and_then(Notation::dialect)).map(|(dialect, reading)| Loaded {
            notation: Notation::Dialect(dialect),
            reading,
            lost: Vec::new(),
        }),
    };
    loaded.map_err(|refused| refused.tell(json))
}

fn imported(value: &Value, source: Source) -> Result<Loaded, Refused> {
    let import = source.read(value).map_err(|problems| Refused { dialect: None, problems })?;
    let lost = import.lost.into_iter().map(|loss| LostOnTheWay { path: loss.path, message: loss.message }).collect();
    let reading = Reading { policy: import.policy, warnings: import.warnings };
    Ok(Loaded { notation: Notation::Import(source), reading, lost })
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
