//! Which failures a rule handles.

use crate::Failure;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A pattern for one word of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Matches everything.
    Any,
    /// Matches what is equal, byte for byte.
    Exact(Box<str>),
    /// Matches what starts with this text, which ends with its dot: `auth.` for `auth.*`.
    Prefix(Box<str>),
}

impl Pattern {
    /// A pattern that matches the text alone, whatever characters it holds.
    #[must_use]
    pub fn exact(text: &str) -> Self {
        Self::Exact(text.into())
    }

    /// `auth.*` as a prefix, everything else exactly (OJS §6.2).
    #[must_use]
    pub fn dotted(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) if prefix.ends_with('.') => Self::Prefix(prefix.into()),
            _ => Self::exact(text),
        }
    }

    /// As [`Pattern::dotted`], and `*` matches all (MWL).
    #[must_use]
    pub fn dotted_or_any(text: &str) -> Self {
        if text == "*" { Self::Any } else { Self::dotted(text) }
    }

    /// Whether `word` fits.
    #[must_use]
    pub fn matches(&self, word: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(text) => **text == *word,
            Self::Prefix(prefix) => word.starts_with(&**prefix),
        }
    }

    /// Whether everything that `other` matches is matched by this one too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Any) => false,
            (_, Self::Exact(word)) => self.matches(word),
            (Self::Prefix(wide), Self::Prefix(narrow)) => narrow.starts_with(&**wide),
            (Self::Exact(_), Self::Prefix(_)) => false,
        }
    }
}

/// As it would be written in a dotted list.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => write!(f, "*"),
            Self::Exact(text) => write!(f, "{text}"),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

/// A matcher: everything that is present must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matcher {
    /// Error types that fit; absent, all do. An empty list fits nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_types: Option<Vec<Pattern>>,
    /// Error types that do not fit, whatever else says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_types: Vec<Pattern>,
    /// Failure codes that fit; absent, all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codes: Option<Vec<Pattern>>,
    /// The value of the retryable flag that fits. A failure that asserts nothing fits neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

/// Why a matcher did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Mismatch {
    /// The error type is on the exclude list, at this position.
    Excluded {
        /// The position in the list, from 0.
        entry: usize,
    },
    /// The error type is not on the include list.
    NotIncluded,
    /// The failure code is not on the list of codes.
    OtherCode,
    /// The failure does not assert the wanted retryable value.
    OtherFlag,
    /// The failure itself was declared permanent by the code that met it.
    Permanent,
}

impl Matcher {
    /// Whether the failure fits, and if not, why not.
    ///
    /// # Errors
    /// The first part of the matcher that does not fit.
    #[inline]
    pub fn check(&self, failure: &Failure<'_>) -> Result<(), Mismatch> {
        if let Some(entry) = self.exclude_types.iter().position(|p| p.matches(failure.type_name)) {
            return Err(Mismatch::Excluded { entry });
        }
        let fits = |list: &Option<Vec<Pattern>>, word: &str| {
            list.as_ref().is_none_or(|patterns| patterns.iter().any(|p| p.matches(word)))
        };
        if !fits(&self.include_types, failure.type_name) {
            return Err(Mismatch::NotIncluded);
        }
        if !fits(&self.codes, failure.code) {
            return Err(Mismatch::OtherCode);
        }
        if self.retryable.is_some() && self.retryable != failure.retryable {
            return Err(Mismatch::OtherFlag);
        }
        Ok(())
    }

    /// True where every failure fits.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Whether everything that fits `other` surely fits this one too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.exclude_types.iter().all(|mine| other.exclude_types.iter().any(|theirs| theirs.covers(mine)))
            && list_covers(self.include_types.as_deref(), other.include_types.as_deref())
            && list_covers(self.codes.as_deref(), other.codes.as_deref())
            && (self.retryable.is_none() || self.retryable == other.retryable)
    }
}

fn list_covers(wide: Option<&[Pattern]>, narrow: Option<&[Pattern]>) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(wide), None) => wide.contains(&Pattern::Any),
        (Some(wide), Some(narrow)) => narrow.iter().all(|n| wide.iter().any(|w| w.covers(n))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_matcher_covers_a_narrower_one() {
        let codes = |list: &[&str]| Matcher {
            codes: Some(list.iter().map(|c| Pattern::dotted_or_any(c)).collect()),
            ..Matcher::default()
        };
        assert!(codes(&["*"]).covers(&codes(&["A.B"])));
        assert!(codes(&["A.*"]).covers(&codes(&["A.B", "A.C.*"])));
        assert!(!codes(&["A.B"]).covers(&codes(&["A.*"])));
        assert!(Matcher::default().covers(&codes(&["A"])));
        let flagged = Matcher { retryable: Some(true), ..codes(&["*"]) };
        assert!(!flagged.covers(&codes(&["A"])));
        assert!(codes(&["*"]).covers(&flagged));
    }
}
