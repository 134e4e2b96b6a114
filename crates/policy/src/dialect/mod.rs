//! The five dialects: wire value into policy with every problem listed, and back with what is lost.

mod azolla;
mod duration;
mod exosphere;
mod failure;
pub(crate) mod fields;
mod loss;
mod mwl;
mod ojs;
mod taskharbor;

use crate::{Parts, Policy, Problems, Rule, Span};
use fields::{Fields, Findings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

pub use duration::{Parsed, go_duration, iso_duration, signed_iso_duration};
pub use failure::ReadFailure;
pub use loss::{Loss, Part};

/// Parts of a policy in words.
#[cfg(feature = "lab")]
pub(crate) mod describe {
    pub(crate) use super::loss::{curve, matcher};
}

/// The end of every reader: the policy where there was no problem, every problem where there was.
pub(crate) fn reading(findings: Findings, parts: Parts) -> Result<Reading, Problems> {
    if !findings.problems.is_empty() {
        return Err(Problems(findings.problems));
    }
    Ok(Reading { policy: Policy::new(parts)?, warnings: findings.warnings })
}

/// The rule that speaks for a policy in a dialect that knows only one.
fn first_rule(policy: &Policy) -> &Rule {
    &policy.rules[0]
}

/// The number of runs that a rule allows, its own budget and the policy's limit taken together.
fn max_runs(policy: &Policy, rule: &Rule) -> Option<u32> {
    policy.max_retries(rule).map(|retries| retries.saturating_add(1))
}

/// The cap; where there is none, the longest delay that the rule can reach, so that a dialect which
/// must name a cap names one that never bites.
fn cap_or_highest(policy: &Policy, rule: &Rule, most: Span) -> Span {
    let highest = || crate::normal::highest(&rule.backoff, policy.max_retries(rule).unwrap_or(u32::MAX));
    rule.backoff.cap.map_or_else(highest, |cap| cap.at).at_most(most)
}

/// Warns of fields that are written but not read.
pub(crate) fn warn_unread(fields: &Fields<'_>, unread: &[&str], by: &str, findings: &mut Findings) {
    for key in unread.iter().filter(|key| fields.has(key)) {
        findings.warnings.push(Warning {
            code: "no-effect",
            path: fields.path_of(key),
            message: format!("{by} does not read {key}"),
            instead: format!("remove {key}"),
        });
    }
}

/// A dialect of retry policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Open Job Spec's `RetryPolicy`.
    Ojs,
    /// Azolla's retry policy.
    Azolla,
    /// TaskHarbor's worker policy and job limit, as a file.
    TaskHarbor,
    /// Exosphere's `retry_policy`.
    Exosphere,
    /// The `with` of the MWL Retry middleware's `onEntry`.
    Mwl,
}

/// A policy that was read, and what is worth saying about how it was written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reading {
    /// The policy in canonical form.
    pub policy: Policy,
    /// What does not do what it looks like, where only the wire form shows it.
    pub warnings: Vec<Warning>,
}

/// A policy that was written, and what got lost on the way.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Writing {
    /// The policy in the dialect.
    pub value: Value,
    /// What the dialect cannot say, and what it does instead. Empty where the written policy does
    /// the same.
    pub lost: Vec<Loss>,
    /// What other readers of the dialect may make of it.
    pub warnings: Vec<Warning>,
}

/// Something that a policy does and that its author may not expect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable name for programs.
    pub code: &'static str,
    /// A JSON Pointer to the field that causes it.
    pub path: String,
    /// What happens.
    pub message: String,
    /// What to write instead, in the words of the dialect.
    pub instead: String,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ojs, Self::Azolla, Self::TaskHarbor, Self::Exosphere, Self::Mwl];

    /// The name that programs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ojs => "ojs",
            Self::Azolla => "azolla",
            Self::TaskHarbor => "taskharbor",
            Self::Exosphere => "exosphere",
            Self::Mwl => "mwl",
        }
    }

    /// Reads a policy.
    ///
    /// # Errors
    /// Every problem, each with a JSON Pointer, the value found and what is allowed.
    pub fn read(self, value: &Value) -> Result<Reading, Problems> {
        match self {
            Self::Ojs => ojs::read(value),
            Self::Azolla => azolla::read(value),
            Self::TaskHarbor => taskharbor::read(value),
            Self::Exosphere => exosphere::read(value),
            Self::Mwl => mwl::read(value),
        }
    }

    /// Writes a policy as this dialect can say it, with everything that it cannot.
    #[must_use]
    pub fn write(self, policy: &Policy) -> Writing {
        let value = match self {
            Self::Ojs => ojs::write(policy),
            Self::Azolla => azolla::write(policy),
            Self::TaskHarbor => taskharbor::write(policy),
            Self::Exosphere => exosphere::write(policy),
            Self::Mwl => mwl::write(policy),
        };
        let lost = match self.read(&value) {
            Ok(reading) => loss::losses(policy, &reading.policy, self),
            Err(problems) => vec![Loss::unwritable(&problems)],
        };
        let warnings = if self == Self::Ojs { ojs::beyond_the_schema(&value) } else { Vec::new() };
        Writing { value, lost, warnings }
    }

    /// A JSON Pointer to where this dialect has a part of a policy; to the nearest object where
    /// it has no field for it.
    #[must_use]
    pub fn path_of(self, part: Part, rule: usize) -> String {
        match self {
            Self::Ojs => ojs::path_of(part).to_owned(),
            Self::Azolla => azolla::path_of(part).to_owned(),
            Self::TaskHarbor => taskharbor::path_of(part).to_owned(),
            Self::Exosphere => exosphere::path_of(part).to_owned(),
            Self::Mwl => mwl::path_of(part, rule),
        }
    }

    /// The fields that a document of this dialect can have at its top.
    pub(crate) const fn top_level(self) -> &'static [&'static str] {
        match self {
            Self::Ojs => &ojs::FIELDS,
            Self::Azolla => &azolla::FIELDS,
            Self::TaskHarbor => &taskharbor::FIELDS,
            Self::Exosphere => &exosphere::FIELDS,
            Self::Mwl => &mwl::FIELDS,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|dialect| dialect.name()).collect();
            format!("unknown dialect \"{name}\"; known are {}", known.join(", "))
        })
    }
}
