//! What a policy loses when it is written in a dialect: the difference between what it does and
//! what the written one does when it is read again.

use super::Dialect;
use crate::normal::{Normal, normal};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Delegation, Matcher, Pattern, Policy, Problems, Rounding, Span,
};
use serde::Serialize;
use std::fmt;

/// A part of a policy, wherever a dialect has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The limit on attempts.
    Attempts,
    /// The limit on elapsed time.
    Elapsed,
    /// What becomes of a job that stops.
    OnStop,
    /// Whose timing it is.
    Delegation,
    /// The rules themselves.
    Rules,
    /// Which failures the rule handles.
    Matcher,
    /// How many failures the rule handles.
    Budget,
    /// The first delay, and a constant on top of the curve.
    Initial,
    /// The growth of the delay.
    Curve,
    /// The longest delay.
    Cap,
    /// The randomness.
    Jitter,
    /// The fractions of a millisecond.
    Rounding,
}

/// Something that a policy does and the written one does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// Which part of the policy.
    #[serde(skip)]
    pub part: Part,
    /// The rule that it belongs to, from 0.
    #[serde(skip)]
    pub rule: usize,
    /// A JSON Pointer to the part; into the canonical form, until [`Loss::seen_from`] says otherwise.
    pub path: String,
    /// What cannot be said, and what happens instead.
    pub message: String,
}

impl Loss {
    /// The same loss, with its path in a document of the dialect that the policy came from.
    #[must_use]
    pub fn seen_from(mut self, dialect: Dialect) -> Self {
        self.path = dialect.path_of(self.part, self.rule);
        self
    }
}

impl Loss {
    /// The refusal of what a writer wrote, by the reader of the same dialect.
    pub(super) fn unwritable(problems: &Problems) -> Self {
        let message = format!("the policy has no form in this dialect: {problems}");
        Self { part: Part::Rules, rule: 0, path: String::new(), message }
    }
}

impl Part {
    pub(crate) fn canonical_path(self, rule: usize) -> String {
        let in_rule = |member: &str| format!("/rules/{rule}/{member}");
        match self {
            Self::Attempts => "/attempts".to_owned(),
            Self::Elapsed => "/max_elapsed_ms".to_owned(),
            Self::OnStop => "/on_stop".to_owned(),
            Self::Delegation => "/delegated".to_owned(),
            Self::Rules => "/rules".to_owned(),
            Self::Matcher => in_rule("match"),
            Self::Budget => in_rule("budget"),
            Self::Initial => in_rule("backoff/initial_ms"),
            Self::Curve => in_rule("backoff/curve"),
            Self::Cap => in_rule("backoff/cap"),
            Self::Jitter => in_rule("backoff/jitter"),
            Self::Rounding => in_rule("backoff/rounding"),
        }
    }
}

/// Everything that `written` does differently from `wanted`.
///
/// What has no effect is not compared; the messages say what the two policies state.
pub(super) fn losses(wanted: &Policy, written: &Policy, dialect: Dialect) -> Vec<Loss> {
    let (said, becoming) = (wanted, written);
    let (Normal { parts: wanted, rule_of }, Normal { parts: written, rule_of: written_rule_of }) =
        (normal(wanted), normal(written));
    let mut losses = Vec::new();
    let mut compare = |part: Part, rule: usize, was: String, becomes: String| {
        if was != becomes {
            let path = part.canonical_path(rule);
            losses.push(Loss {
                part,
                rule,
                path,
                message: format!("{was}: {dialect} cannot say that; {becomes} instead"),
            });
        }
    };
    compare(Part::Attempts, 0, attempts(wanted.attempts), attempts(written.attempts));
    compare(Part::Elapsed, 0, elapsed(wanted.max_elapsed), elapsed(written.max_elapsed));
    compare(Part::OnStop, 0, format!("{} on a stop", wanted.on_stop), format!("{} on a stop", written.on_stop));
    let whose = |delegated: Option<Delegation>| match delegated {
        Some(_) => "the timing is left to the worker".to_owned(),
        None => "the timing is the job's own".to_owned(),
    };
    compare(Part::Delegation, 0, whose(wanted.delegated), whose(written.delegated));
    if wanted.rules.len() != written.rules.len() {
        compare(Part::Rules, 0, rules(said.rules.len()), rules(becoming.rules.len()));
    }
    let places = rule_of.into_iter().zip(written_rule_of);
    for ((was, becomes), (index, written_index)) in wanted.rules.iter().zip(&written.rules).zip(places) {
        compare(Part::Matcher, index, matcher(&was.matcher), matcher(&becomes.matcher));
        compare(Part::Budget, index, budget(was.budget), budget(becomes.budget));
        let (was, becomes) = (&was.backoff, &becomes.backoff);
        compare(Part::Initial, index, initial(was), initial(becomes));
        compare(Part::Curve, index, curve(was.curve), curve(becomes.curve));
        if was.cap != becomes.cap {
            let [said, becoming] = [&said.rules[index], &becoming.rules[written_index]];
            compare(Part::Cap, index, cap(said.backoff.cap), cap(becoming.backoff.cap));
        }
        compare(Part::Jitter, index, was.jitter.to_string(), becomes.jitter.to_string());
        compare(Part::Rounding, index, rounding(was.rounding), rounding(becomes.rounding));
    }
    losses
}

fn attempts(limit: AttemptLimit) -> String {
    match limit.max_runs() {
        None => "no limit on attempts".to_owned(),
        Some(1) => "no retry".to_owned(),
        Some(runs) => format!("at most {runs} attempts"),
    }
}

fn elapsed(limit: Option<Span>) -> String {
    limit.map_or_else(|| "no limit on elapsed time".to_owned(), |limit| format!("at most {limit} since creation"))
}

fn rules(count: usize) -> String {
    if count == 1 { "one rule for all".to_owned() } else { format!("{count} rules in order") }
}

fn budget(budget: Option<u32>) -> String {
    budget.map_or_else(|| "no budget of the rule's own".to_owned(), |runs| format!("a budget of {runs} for this rule"))
}

fn initial(backoff: &Backoff) -> String {
    // Every digit, where the short form would hide a difference.
    let exact = |span: Span| format!("{span} ({} ms)", span.ms());
    match backoff.offset.is_zero() {
        true => format!("first delay {}", exact(backoff.initial)),
        false => format!("delays from {} on top of a constant {}", exact(backoff.initial), exact(backoff.offset)),
    }
}

/// A curve in words.
pub(crate) fn curve(curve: Curve) -> String {
    match curve {
        Curve::Fixed | Curve::Exponential { rate: 1.0 } => "the same delay every time".to_owned(),
        Curve::Linear => "linear growth".to_owned(),
        Curve::Exponential { rate } => format!("exponential growth ×{rate}"),
        Curve::Polynomial { exponent, first: 1 } => format!("polynomial growth n^{exponent}"),
        Curve::Polynomial { exponent, first } => format!("polynomial growth n^{exponent} counted from {first}"),
    }
}

fn cap(cap: Option<Cap>) -> String {
    let Some(Cap { at, place }) = cap else { return "no cap".to_owned() };
    let place = match place {
        CapPlace::BeforeJitter => "before the jitter",
        CapPlace::AfterJitter => "after the jitter",
        CapPlace::BeforeAndAfter => "before and after the jitter",
    };
    format!("a cap of {at} ({} ms) {place}", at.ms())
}

fn rounding(rounding: Rounding) -> String {
    match rounding {
        Rounding::Exact => "fractions of a millisecond kept".to_owned(),
        Rounding::FloorMs => "fractions of a millisecond cut off".to_owned(),
    }
}

/// A matcher in words.
pub(crate) fn matcher(matcher: &Matcher) -> String {
    let mut said = Vec::new();
    if let Some(types) = &matcher.include_types {
        said.push(if types.is_empty() {
            "no error type at all".to_owned()
        } else {
            format!("only the error types {}", List(types))
        });
    }
    if !matcher.exclude_types.is_empty() {
        said.push(format!("no error type of {}", List(&matcher.exclude_types)));
    }
    if let Some(codes) = &matcher.codes {
        said.push(format!("only the codes {}", List(codes)));
    }
    if let Some(retryable) = matcher.retryable {
        said.push(format!("only failures that say retryable {retryable}"));
    }
    if said.is_empty() { "a retry for every error".to_owned() } else { format!("a retry for {}", said.join(" and ")) }
}

/// Patterns in words: exact ones in quotes, so that a literal `a.*` and a prefix differ.
struct List<'a>(&'a [Pattern]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pattern) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            match pattern {
                Pattern::Exact(text) => write!(f, "{comma}\"{text}\"")?,
                other => write!(f, "{comma}{other}")?,
            }
        }
        Ok(())
    }
}
