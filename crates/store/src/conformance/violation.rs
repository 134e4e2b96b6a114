//! What a case found to be wrong.

use crate::{EnqueueRefusal, Refusal, RunRefusal, StartRefusal, StoreError};
use std::fmt;

/// What is wrong with a store, and where that was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

/// The result of a case.
pub(super) type CaseResult = Result<(), Violation>;

impl Violation {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    pub(super) fn at(file: &str, line: u32, what: &str) -> Self {
        let file = file.rsplit('/').next().unwrap_or(file);
        Self(format!("{what} ({file}:{line})"))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<StoreError> for Violation {
    fn from(error: StoreError) -> Self {
        Self(format!("the store failed: {error}"))
    }
}

impl From<Refusal> for Violation {
    fn from(refusal: Refusal) -> Self {
        Self(format!("refused without reason: {refusal}"))
    }
}

impl From<EnqueueRefusal> for Violation {
    fn from(refusal: EnqueueRefusal) -> Self {
        Self(format!("refused without reason: {refusal}"))
    }
}

impl From<RunRefusal> for Violation {
    fn from(refusal: RunRefusal) -> Self {
        Self(format!("refused without reason: {refusal}"))
    }
}

impl From<StartRefusal> for Violation {
    fn from(refusal: StartRefusal) -> Self {
        Self(format!("refused without reason: {refusal:?}"))
    }
}

/// Ends the case unless two values are equal.
macro_rules! same {
    ($found:expr, $expected:expr, $($what:tt)+) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            let what = format!("{}\n  found    {found:?}\n  expected {expected:?}\n ", format_args!($($what)+));
            return Err($crate::conformance::Violation::at(file!(), line!(), &what));
        }
    }};
}

/// Ends the case unless something holds.
macro_rules! ensure {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Violation::at(file!(), line!(), &format!($($what)+)));
        }
    };
}

pub(super) use {ensure, same};
