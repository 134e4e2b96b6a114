//! The notation of a policy, and how to recognise it by its shape.

use crate::dialect::{Dialect, Reading};
use crate::import::{self, Source};
use crate::problem::{member, shown};
use crate::{Problem, Problems, resembling};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// How a policy is written: in a dialect, or as the settings of a system that people migrate from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notation {
    /// In one of the five dialects.
    Dialect(Dialect),
    /// As the settings of another system.
    Import(Source),
}

/// A policy whose notation was recognised by its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Recognised<'v> {
    /// How it is written.
    pub notation: Notation,
    /// The policy itself.
    pub value: &'v Value,
    /// A JSON Pointer to the policy within the document; empty where the document is the policy.
    pub path: String,
}

/// A shape that fits no notation, or several.
#[derive(Clone, Debug, PartialEq)]
pub enum Unrecognised {
    /// It could be any of these.
    Ambiguous(Vec<Notation>),
    /// It can be none of them.
    Unknown(Problems),
}

/// The members under which systems store a policy in a larger document.
const WRAPPERS: [&str; 9] = [
    "retry_policy",
    "retryPolicy",
    "retry",
    "policy",
    "options",
    "defaultJobOptions",
    "default_job_options",
    "sidekiq_options",
    "with",
];
/// How deep a policy may be wrapped: `options.retry` of a job is two.
const MOST_WRAPPERS: usize = 2;

impl Notation {
    /// All of them, the dialects first.
    pub fn all() -> impl Iterator<Item = Self> {
        Dialect::ALL.into_iter().map(Self::Dialect).chain(Source::ALL.into_iter().map(Self::Import))
    }

    /// The name that programs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dialect(dialect) => dialect.name(),
            Self::Import(source) => source.name(),
        }
    }

    /// The dialect, which imported settings have none of.
    #[must_use]
    pub const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Dialect(dialect) => Some(dialect),
            Self::Import(_) => None,
        }
    }

    /// Reads a policy, with what the canonical form cannot say of imported settings.
    ///
    /// # Errors
    /// Every problem, each with a JSON Pointer, the value found and what is allowed.
    pub fn read(self, value: &Value) -> Result<(Reading, Vec<import::Loss>), Problems> {
        match self {
            Self::Dialect(dialect) => dialect.read(value).map(|reading| (reading, Vec::new())),
            Self::Import(source) => source.read(value).map(|import| {
                let reading = Reading { policy: import.policy, warnings: import.warnings };
                (reading, import.lost)
            }),
        }
    }

    /// The fields at the top of a document that say something about retries.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Dialect(dialect) => dialect.top_level(),
            Self::Import(source) => source.fields(),
        }
    }

    /// How many of the keys it knows.
    fn knows(self, object: &Map<String, Value>) -> usize {
        object.keys().filter(|key| self.fields().contains(&key.as_str())).count()
    }

    fn reads(self, value: &Value) -> bool {
        self.read(value).is_ok()
    }
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Notation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|notation| notation.name() == name).ok_or_else(|| {
            let names = |all: &[&str]| all.join(", ");
            format!(
                "unknown dialect \"{name}\"; known are {}; to import from are {}",
                names(&Dialect::ALL.map(Dialect::name)),
                names(&Source::ALL.map(Source::name))
            )
        })
    }
}

/// Recognises how a policy is written, also where it stands inside of a larger document.
///
/// # Errors
/// What it could be, where the shape is ambiguous; or every field that no notation knows, with the
/// one that it resembles.
pub fn recognise(value: &Value) -> Result<Recognised<'_>, Unrecognised> {
    let plain = by_shape(value);
    if let Ok(notation) = plain
        && notation.reads(value)
    {
        return Ok(Recognised { notation, value, path: String::new() });
    }
    match (unwrapped(value, "", MOST_WRAPPERS), plain) {
        (Some(found), _) => Ok(found),
        (None, Ok(notation)) => Ok(Recognised { notation, value, path: String::new() }),
        (None, Err(candidates)) if candidates.is_empty() => Err(Unrecognised::Unknown(unknown_fields(value))),
        (None, Err(candidates)) => Err(Unrecognised::Ambiguous(candidates)),
    }
}

/// The one notation that fits best; else those that fit as well as each other.
fn by_shape(value: &Value) -> Result<Notation, Vec<Notation>> {
    let Some(object) = value.as_object() else { return Err(Vec::new()) };
    if object.is_empty() {
        return Err(Notation::all().filter(|notation| notation.dialect().is_some() && notation.reads(value)).collect());
    }
    let known: Vec<Notation> = Notation::all().filter(|notation| notation.knows(object) > 0).collect();
    // A dialect goes before an import: `max_attempts` alone is a whole policy of OJS, and of Oban.
    let valid = |of_dialect: bool| -> Vec<Notation> {
        let fits = |notation: &Notation| notation.dialect().is_some() == of_dialect && notation.reads(value);
        known.iter().copied().filter(fits).collect()
    };
    let candidates = [valid(true), valid(false), known.clone()].into_iter().find(|list| !list.is_empty());
    let mut candidates = candidates.unwrap_or_default();
    let most = candidates.iter().map(|notation| notation.knows(object)).max();
    candidates.retain(|notation| Some(notation.knows(object)) == most);
    match candidates[..] {
        [only] => Ok(only),
        _ => Err(candidates),
    }
}

/// A valid policy inside of a larger document.
fn unwrapped<'v>(value: &'v Value, path: &str, most: usize) -> Option<Recognised<'v>> {
    let object = value.as_object().filter(|_| most > 0)?;
    WRAPPERS.iter().find_map(|key| {
        let value = object.get(*key).filter(|inner| inner.as_object().is_some_and(|inner| !inner.is_empty()))?;
        let path = member(path, key);
        match by_shape(value) {
            Ok(notation) if notation.reads(value) => Some(Recognised { notation, value, path }),
            _ => unwrapped(value, &path, most - 1),
        }
    })
}

/// What is wrong with a document of which no field is known.
fn unknown_fields(value: &Value) -> Problems {
    let Some(object) = value.as_object() else {
        return Problems(vec![Problem::new("", shown(value), "an object that holds a policy")]);
    };
    let resembled = |notation: Notation| -> usize {
        object.keys().filter(|key| resembling(key, notation.fields()).is_some()).count()
    };
    let most = Notation::all().map(resembled).max().filter(|most| *most > 0);
    let nearest = most.and_then(|most| Notation::all().find(|notation| resembled(*notation) == most));
    let problem = |key: &String| {
        let near = nearest.and_then(|notation| Some((notation, resembling(key, notation.fields())?)));
        let message = match near {
            Some((notation, name)) => format!("unknown field; did you mean \"{name}\" of {notation}?"),
            None => "unknown field; none of the known policies has one like it".to_owned(),
        };
        Problem::with_message(member("", key), message)
    };
    Problems(object.keys().map(problem).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn name_of(value: &Value) -> (&'static str, String) {
        let found = recognise(value).unwrap_or_else(|error| panic!("{value}: {error:?}"));
        (found.notation.name(), found.path)
    }

    #[test]
    fn settings_of_other_systems_are_recognised() {
        for (value, name) in [
            (json!({ "initialInterval": "1s", "backoffCoefficient": 2.0, "maximumAttempts": 5 }), "temporal"),
            (json!({ "attempts": 5, "backoff": { "type": "exponential", "delay": 1000 } }), "bullmq"),
            (json!({ "max_retries": 5, "autoretry_for": ["OSError"], "retry_backoff": true }), "celery"),
            (json!({ "retry": 10, "dead": false }), "sidekiq"),
        ] {
            assert_eq!(name_of(&value), (name, String::new()), "{value}");
        }
        let retry = json!({ "retry": 10 });
        let ambiguous = recognise(&retry).map_err(|error| match error {
            Unrecognised::Ambiguous(candidates) => candidates,
            Unrecognised::Unknown(problems) => panic!("{problems}"),
        });
        let both = vec![Notation::Import(Source::Sidekiq), Notation::Import(Source::Faktory)];
        assert_eq!(ambiguous.map(|found| found.notation), Err(both));
    }

    #[test]
    fn a_policy_inside_of_a_larger_document_is_found() {
        let exosphere = json!({ "max_retries": 3, "strategy": "EXPONENTIAL", "backoff_factor": 2000 });
        let graph = json!({ "secrets": {}, "nodes": [], "retry_policy": exosphere });
        assert_eq!(name_of(&graph), ("exosphere", "/retry_policy".to_owned()));
        let job = json!({ "type": "mail.send", "options": { "queue": "mail", "retry": { "max_attempts": 5 } } });
        assert_eq!(name_of(&job), ("ojs", "/options/retry".to_owned()));
        let queue = json!({ "defaultJobOptions": { "attempts": 3, "backoff": 500 } });
        assert_eq!(name_of(&queue), ("bullmq", "/defaultJobOptions".to_owned()));
        let azolla = json!({ "retry": { "include_errors": ["A"] } });
        assert_eq!(name_of(&azolla), ("azolla", String::new()), "retry is a section of Azolla's own");
    }

    #[test]
    fn a_typo_leads_to_the_field_that_was_meant_and_to_no_other_dialect() {
        let Err(Unrecognised::Unknown(problems)) = recognise(&json!({ "max_attemps": 5, "zebra": 1 })) else {
            panic!("no field of it is known");
        };
        let told = problems.to_string();
        assert!(told.contains("/max_attemps: unknown field; did you mean \"max_attempts\" of ojs?"), "{told}");
        assert!(told.contains("/zebra: unknown field; none"), "{told}");
        let half_known = recognise(&json!({ "max_attemps": 5, "jitter": true })).map(|found| found.notation.name());
        assert_eq!(half_known, Ok("ojs"), "its reader names the typo");
        assert!(matches!(recognise(&json!([1])), Err(Unrecognised::Unknown(_))));
    }
}
