//! What is wrong with a definition.

use serde::Serialize;
use std::fmt;

/// One problem of a definition: where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The JSON Pointer of the member; empty for the whole document.
    pub path: String,
    /// The line in the text, from 1.
    pub line: usize,
    /// The column in the line, from 1, in characters.
    pub column: usize,
    /// What was found, and what is allowed.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        write!(f, "line {}, column {}: {path}: {}", self.line, self.column, self.message)
    }
}

/// Problems as they are found, by their byte in the text.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<(usize, String, String)>,
}

impl Findings {
    pub(crate) fn add(&mut self, at: usize, path: impl Into<String>, message: impl Into<String>) {
        self.found.push((at, path.into(), message.into()));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All of them in the order of the text.
    pub(crate) fn located(mut self, text: &str) -> Vec<Problem> {
        self.found.sort_by_key(|(at, ..)| *at);
        let place = |at: usize| {
            let before = text.get(..at).unwrap_or(text);
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
        };
        let located = self.found.into_iter().map(|(at, path, message)| {
            let (line, column) = place(at);
            Problem { path, line, column, message }
        });
        located.collect()
    }
}

/// A JSON Pointer with one more name.
pub(crate) fn join(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}
