//! Reading a policy from a file of the command line.

use crate::exit::Failed;
use crate::input::{Document, ReadError};
use redrive_policy::dialect::{Loss, Reading, Warning};
use redrive_policy::notation::{Notation, Recognised, Unrecognised, recognise};
use redrive_policy::{Problem, Problems};
use serde_json::{Value, json};

/// The notation of a file; by default recognised from its shape.
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
    /// What has no place in the canonical policy; only imports have that.
    pub(crate) lost: Vec<LostSetting>,
}

/// A setting that is lost, and what happens instead.
pub(crate) struct LostSetting {
    pub(crate) path: String,
    pub(crate) message: String,
}

impl LostSetting {
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
    let value = self::document(document, notation, json)?;
    policy(&value, notation).map_err(|refused| refused.report(json))
}

/// A policy that could not be read.
pub(crate) struct Refused {
    /// The notation, if it is known.
    pub(crate) notation: Option<Notation>,
    pub(crate) problems: Problems,
}

impl Refused {
    /// The refusal for programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "valid": false, "dialect": self.notation.map(Notation::name), "errors": self.problems.0 })
    }

    /// The same, for a policy at `path` of a larger document.
    pub(crate) fn inside(mut self, path: &str) -> Self {
        self.problems.0.iter_mut().for_each(|problem| problem.path.insert_str(0, path));
        self
    }

    /// Reports the problems, for programs on standard output or for people on standard error.
    pub(crate) fn report(self, json: bool) -> Failed {
        if json {
            return crate::output::json(&self.to_json()).err().unwrap_or(Failed::already_reported());
        }
        let notation = self.notation.map_or_else(String::new, |notation| format!("{notation} "));
        let count = self.problems.0.len();
        let problems = if count == 1 { "one problem".to_owned() } else { format!("{count} problems") };
        Failed::invalid(format!("not a valid {notation}policy, {problems}:\n{}", self.problems))
    }
}

/// Reads a document; a file that is not well-formed is refused like one that is not valid.
pub(crate) fn document(document: &Document, notation: Option<Notation>, json: bool) -> Result<Value, Failed> {
    document.read().map_err(|error| match error {
        ReadError::Unreachable(failed) => failed,
        ReadError::Malformed(error) => {
            let problems = Problems(vec![Problem::with_message("", error.to_string())]);
            Refused { notation, problems }.report(json)
        }
    })
}

/// Reads a policy from a value.
pub(crate) fn policy(value: &Value, notation: Option<Notation>) -> Result<Loaded, Refused> {
    let Recognised { notation, value, path } = match notation {
        Some(notation) => Recognised { notation, value, path: String::new() },
        None => recognise(value).map_err(|unrecognised| Refused {
            notation: None,
            problems: Problems(unrecognised_problems(unrecognised)),
        })?,
    };
    let refused = |problems| Refused { notation: Some(notation), problems }.inside(&path);
    let (mut reading, lost) = notation.read(value).map_err(refused)?;
    if !path.is_empty() {
        reading.warnings.insert(0, unwrapped(&path));
    }
    let lost = lost.into_iter().map(|loss| LostSetting { path: loss.path, message: loss.message }).collect();
    Ok(Loaded { notation, reading, lost })
}

/// What is wrong with a policy whose dialect cannot be recognised.
pub(crate) fn unrecognised_problems(unrecognised: Unrecognised) -> Vec<Problem> {
    match unrecognised {
        Unrecognised::Unknown(problems) => problems.0,
        Unrecognised::Ambiguous(candidates) => {
            let names: Vec<&str> = candidates.iter().map(|notation| notation.name()).collect();
            let message =
                format!("the dialect cannot be recognised, it could be {}; name it with --dialect", names.join(", "));
            vec![Problem::with_message("", message)]
        }
    }
}

fn unwrapped(path: &str) -> Warning {
    Warning {
        code: "inside-of-a-document",
        path: path.to_owned(),
        message: "the policy is part of a larger document; the rest of it was not read".to_owned(),
        instead: "nothing, if that is the policy you mean".to_owned(),
    }
}
