//! Policies that do the same, written the same.
//!
//! Two dialects often say one thing in two ways: no backoff or a delay of zero, a cap that nothing
//! reaches or no cap. The normal form drops what has no effect, so that comparing two normal forms
//! compares what the policies do. Names of reasons are not part of it.

use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Jitter, Matcher, Parts, Pattern, Policy, Rounding, Rule, Span,
    Unmatched,
};

/// A policy that does the same, without what has no effect.
pub(crate) struct Normal {
    pub(crate) parts: Parts,
    /// For each of its rules, which rule of the policy it is.
    pub(crate) rule_of: Vec<usize>,
}

/// The policy without what has no effect.
pub(crate) fn normal(policy: &Policy) -> Normal {
    let mut parts = policy.clone().into_parts();
    parts.unmatched = Unmatched::NonRetryable;
    parts.rules.iter_mut().for_each(|rule| rule.matcher = normal_matcher(&rule.matcher));
    let mut rule_of = drop_shadowed(&mut parts.rules);
    if let [only] = &mut parts.rules[..] {
        // With one rule, every failure that is counted is one of its own.
        if let Some(budget) = only.budget.take() {
            parts.attempts = parts.attempts.tightened(AttemptLimit::AtMost(budget));
        }
        if only.matcher.include_types.as_ref().is_some_and(Vec::is_empty) {
            parts.attempts = AttemptLimit::AtMost(1);
        }
    }
    let runs = parts.attempts.max_runs();
    if runs == Some(1) {
        parts.attempts = AttemptLimit::AtMost(1);
        parts.max_elapsed = None;
        parts.rules = vec![Rule { matcher: Matcher::default(), budget: None, backoff: Backoff::IMMEDIATE }];
        rule_of.truncate(1);
        return Normal { parts, rule_of };
    }
    for rule in &mut parts.rules {
        let most = [runs, rule.budget].into_iter().flatten().min().map_or(u32::MAX, |runs| runs - 1);
        rule.backoff = normal_backoff(rule.backoff, most);
    }
    Normal { parts, rule_of }
}

fn normal_matcher(matcher: &Matcher) -> Matcher {
    let sorted = |patterns: &[Pattern]| {
        let mut sorted = patterns.to_vec();
        sorted.sort_by_key(|pattern| (matches!(pattern, Pattern::Exact(_)), pattern.to_string()));
        sorted.dedup();
        sorted
    };
    let list =
        |patterns: &Option<Vec<Pattern>>| patterns.as_deref().filter(|list| !list.contains(&Pattern::Any)).map(sorted);
    Matcher {
        include_types: list(&matcher.include_types),
        exclude_types: sorted(&matcher.exclude_types),
        codes: list(&matcher.codes),
        retryable: matcher.retryable,
    }
}

/// Drops the rules that an earlier one always comes before; answers where those that stay stood.
fn drop_shadowed(rules: &mut Vec<Rule>) -> Vec<usize> {
    let mut kept: Vec<Rule> = Vec::with_capacity(rules.len());
    let mut places = Vec::new();
    for (place, rule) in rules.drain(..).enumerate() {
        if !kept.iter().any(|earlier| earlier.matcher.covers(&rule.matcher)) {
            kept.push(rule);
            places.push(place);
        }
    }
    *rules = kept;
    places
}

/// The backoff without what has no effect within its first `retries` retries.
fn normal_backoff(mut backoff: Backoff, retries: u32) -> Backoff {
    if retries == 0 {
        return Backoff::IMMEDIATE;
    }
    backoff.jitter = normal_jitter(backoff, retries);
    if backoff.jitter == Jitter::Decorrelated {
        (backoff.curve, backoff.offset) = (Curve::Fixed, Span::ZERO);
    } else {
        normal_curve(&mut backoff, retries);
    }
    backoff.cap = backoff.cap.filter(|cap| bites(&backoff, *cap, retries));
    if let Some(cap) = &mut backoff.cap {
        cap.place = normal_place(cap.place, backoff.jitter);
    }
    if backoff.jitter == Jitter::None && is_whole(&backoff) {
        backoff.rounding = Rounding::Exact;
    }
    backoff
}

fn normal_jitter(backoff: Backoff, retries: u32) -> Jitter {
    // Twelve digits: factors are often the sum of a 1 and a decimal, and differ in the last bit.
    let rounded = |factor: f64| (factor * 1e12).round() / 1e12;
    match backoff.jitter {
        Jitter::Scale { low, high } if rounded(low) == 1.0 && rounded(high) == 1.0 => Jitter::None,
        Jitter::Scale { .. } if backoff.raw(retries).is_zero() => Jitter::None,
        Jitter::Scale { low, high } => Jitter::Scale { low: rounded(low), high: rounded(high) },
        Jitter::Decorrelated if backoff.initial.is_zero() => Jitter::None,
        Jitter::Added { step } if step.is_zero() => Jitter::None,
        other => other,
    }
}

fn normal_curve(backoff: &mut Backoff, retries: u32) {
    let flat = backoff.initial.is_zero()
        || (retries == 1 && backoff.curve.factor(1) == 1.0)
        || matches!(backoff.curve, Curve::Exponential { rate: 1.0 } | Curve::Polynomial { exponent: 0.0, .. });
    if flat {
        backoff.curve = Curve::Fixed;
    } else if matches!(backoff.curve, Curve::Polynomial { exponent: 1.0, first: 1 }) {
        backoff.curve = Curve::Linear;
    }
    if backoff.curve == Curve::Fixed {
        backoff.initial = backoff.raw(1);
        backoff.offset = Span::ZERO;
    }
    // A curve that starts at its cap never leaves it.
    if let Some(cap) = backoff.cap
        && cap.place != CapPlace::AfterJitter
        && backoff.raw(1) >= cap.at
    {
        (backoff.initial, backoff.offset, backoff.curve) = (cap.at, Span::ZERO, Curve::Fixed);
    }
}

/// Whether the cap ever shortens a delay.
fn bites(backoff: &Backoff, cap: Cap, retries: u32) -> bool {
    match backoff.jitter {
        Jitter::Decorrelated => highest(backoff, retries) > cap.at,
        _ if cap.place == CapPlace::BeforeJitter => backoff.raw(retries) > cap.at,
        _ => highest(backoff, retries) > cap.at,
    }
}

/// The longest delay that the backoff could give without its cap within a number of retries.
pub(crate) fn highest(backoff: &Backoff, retries: u32) -> Span {
    let raw = backoff.raw(retries.max(1));
    match backoff.jitter {
        Jitter::None => raw,
        Jitter::Scale { high, .. } => raw.times(high),
        Jitter::Decorrelated => {
            backoff.initial.times(Curve::Exponential { rate: 3.0 }.factor(retries.saturating_add(1)))
        }
        Jitter::Added { step } => raw.plus(step.times(f64::from(retries))),
    }
}

/// Where the place makes no difference, the same place.
fn normal_place(place: CapPlace, jitter: Jitter) -> CapPlace {
    match jitter {
        Jitter::None => CapPlace::BeforeAndAfter,
        Jitter::Scale { high, .. } if high <= 1.0 && place == CapPlace::BeforeJitter => CapPlace::BeforeAndAfter,
        _ => place,
    }
}

/// Whether every delay without jitter is a whole number of milliseconds.
fn is_whole(backoff: &Backoff) -> bool {
    let whole = |number: f64| number.fract() == 0.0;
    let curve = match backoff.curve {
        Curve::Fixed | Curve::Linear => true,
        Curve::Exponential { rate } => whole(rate),
        Curve::Polynomial { exponent, .. } => whole(exponent),
    };
    curve
        && whole(backoff.initial.ms())
        && whole(backoff.offset.ms())
        && backoff.cap.is_none_or(|cap| whole(cap.at.ms()))
}
