//! What a key may be used for.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One of the things that a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// Enqueue jobs and cancel them.
    Enqueue,
    /// Claim jobs and report on them.
    Work,
    /// Look at jobs, queues, events and numbers.
    Read,
    /// Everything, also what operators do.
    Admin,
}

impl Scope {
    pub(crate) const ALL: [Self; 4] = [Self::Enqueue, Self::Work, Self::Read, Self::Admin];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Work => "work",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The scopes of a key, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scopes(Vec<Scope>);

impl Scopes {
    pub(crate) fn of(mut scopes: Vec<Scope>) -> Self {
        scopes.sort_unstable();
        scopes.dedup();
        Self(scopes)
    }

    /// Whether they contain a scope. The scope `admin` contains all others: with it a caller could make a key that
    /// has them.
    pub(crate) fn contain(&self, scope: Scope) -> bool {
        self.0.contains(&scope) || self.0.contains(&Scope::Admin)
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|scope| scope.name()).collect()
    }
}
