//! Definitions as they are stored: one run for each name, with its versions.

use redrive_engine::{Context, Effect, Engine, Input, Program, ProgramStep, Submission};
use redrive_policy::Moment;
use redrive_store::MessageBody;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The kind of the runs that stand for definitions.
pub const DEFINITION: &str = "flow.definition";
/// The signal that a definition has a new version: its body is the text.
pub const REPLACE: &str = "replace";
/// The signal that a definition is removed.
pub const REMOVE: &str = "remove";
/// How large the text of a definition may be that is stored, in bytes. Each run keeps its own.
pub const MAX_STORED: usize = 256 << 10;
/// How many versions are kept, and how many bytes of text they have together.
const VERSIONS: usize = 10;
const ALL_BYTES: usize = 1 << 20;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 255;

/// The key of the run that stands for a definition; of the empty name, what all of them begin with.
#[must_use]
pub fn definition_key(name: &str) -> Arc<str> {
    format!("{DEFINITION}:{name}").into()
}

/// Whether a definition can have this name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(fits) && text != "." && text != ".."
}

/// The versions of a definition, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionState {
    /// Those that are kept. There is at least one.
    pub versions: Vec<VersionState>,
}

/// A version of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionState {
    /// Its number, from 1.
    pub version: u64,
    /// When it was put, in microseconds of the wall clock.
    pub at_us: i64,
    /// The definition as it was put.
    pub text: String,
}

impl DefinitionState {
    /// The first version.
    #[must_use]
    pub fn new(text: String, now: Moment) -> Self {
        Self { versions: vec![VersionState { version: 1, at_us: now.micros(), text }] }
    }

    /// Reads what is stored.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let damaged = |why: String| format!("the stored definition is damaged: {why}");
        let state: Self = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if state.versions.is_empty() { Err(damaged("it has no version".to_owned())) } else { Ok(state) }
    }

    /// What is stored.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        // Writing into memory cannot fail, and every key is a text.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The newest version.
    #[must_use]
    pub fn newest(&self) -> Option<&VersionState> {
        self.versions.last()
    }

    /// A version that is kept; the newest where none is named.
    #[must_use]
    pub fn version(&self, number: Option<u64>) -> Option<&VersionState> {
        match number {
            Some(number) => self.versions.iter().find(|version| version.version == number),
            None => self.newest(),
        }
    }

    /// The same text is no new version, so that a request can be repeated.
    fn replace(&mut self, text: String, now: Moment) {
        let newest = self.newest().map_or(0, |newest| newest.version);
        if self.newest().is_some_and(|newest| newest.text == text) {
            return;
        }
        self.versions.push(VersionState { version: newest + 1, at_us: now.micros(), text });
        let bytes = |versions: &[VersionState]| versions.iter().map(|version| version.text.len()).sum::<usize>();
        while self.versions.len() > VERSIONS || (self.versions.len() > 1 && bytes(&self.versions) > ALL_BYTES) {
            self.versions.remove(0);
        }
    }
}

/// The program of definitions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Definitions;

impl Program for Definitions {
    fn kind(&self) -> &'static str {
        DEFINITION
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let unchanged = || ProgramStep { state: context.state.to_vec(), effects: Vec::new() };
        let Input::Message(MessageBody::Signal(signal)) = input else { return Ok(unchanged()) };
        if context.ended {
            return Ok(unchanged());
        }
        match &*signal.name {
            REPLACE => {
                let text = String::from_utf8(signal.body.to_vec()).map_err(|error| format!("a definition: {error}"))?;
                let mut state = DefinitionState::read(context.state)?;
                state.replace(text, context.now);
                Ok(ProgramStep { state: state.write(), effects: Vec::new() })
            }
            REMOVE => {
                let finish = Effect::Finish { succeeded: true, result: b"{}".to_vec() };
                Ok(ProgramStep { effects: vec![finish], ..unchanged() })
            }
            _ => Ok(unchanged()),
        }
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("a definition enqueues no jobs; its runs do".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_versions_are_kept() {
        let now = Moment::from_micros(7);
        let mut state = DefinitionState::new("0".to_owned(), now);
        state.replace("0".to_owned(), now);
        assert_eq!(state.versions.len(), 1, "the same text is no new version");
        (1..30).for_each(|number| state.replace(number.to_string(), now));
        let kept: Vec<u64> = state.versions.iter().map(|version| version.version).collect();
        assert_eq!(kept, (21..=30).collect::<Vec<_>>());
        (0..10).for_each(|number| state.replace(number.to_string().repeat(MAX_STORED), now));
        let bytes: usize = state.versions.iter().map(|version| version.text.len()).sum();
        assert_eq!((bytes <= ALL_BYTES, state.newest().map(|newest| newest.version)), (true, Some(40)));
    }

    #[test]
    fn names_fit_into_paths_and_keys() {
        for name in ["order", "a.b_c-D9", "x"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "ä", "a b", "a:b", &"x".repeat(256)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
