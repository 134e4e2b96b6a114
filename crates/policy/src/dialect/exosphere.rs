//! Exosphere: the `retry_policy` of a graph template.

use super::fields::{Fields, Findings};
use super::{Part, Reading};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Parts, Policy, Problems, Rounding, Rule,
    Span, Unmatched,
};
use serde_json::{Map, Value, json};

pub(super) const FIELDS: [&str; 5] = ["max_retries", "strategy", "backoff_factor", "exponent", "max_delay"];

/// The defaults of "Parameters".
const MAX_RETRIES: u32 = 3;
const BACKOFF_FACTOR: Span = Span::from_millis(2000);
const EXPONENT: u64 = 2;

#[derive(Clone, Copy, PartialEq)]
enum Growth {
    Exponential,
    Linear,
    Fixed,
}

/// The nine strategies.
const STRATEGIES: [(&str, (Growth, Jitter)); 9] = [
    ("EXPONENTIAL", (Growth::Exponential, Jitter::None)),
    ("EXPONENTIAL_FULL_JITTER", (Growth::Exponential, Jitter::FULL)),
    ("EXPONENTIAL_EQUAL_JITTER", (Growth::Exponential, Jitter::EQUAL)),
    ("LINEAR", (Growth::Linear, Jitter::None)),
    ("LINEAR_FULL_JITTER", (Growth::Linear, Jitter::FULL)),
    ("LINEAR_EQUAL_JITTER", (Growth::Linear, Jitter::EQUAL)),
    ("FIXED", (Growth::Fixed, Jitter::None)),
    ("FIXED_FULL_JITTER", (Growth::Fixed, Jitter::FULL)),
    ("FIXED_EQUAL_JITTER", (Growth::Fixed, Jitter::EQUAL)),
];

pub(super) fn read(value: &Value) -> Result<Reading, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let fields = Fields::document(value, f);
    fields.only(&FIELDS, f);
    // One less than a count can hold, because the first run is counted on top.
    let most = u64::from(u32::MAX - 1);
    let max_retries = fields.whole("max_retries", 0, most, f).and_then(|n| u32::try_from(n).ok());
    let (growth, jitter) = fields.word("strategy", &STRATEGIES, f).unwrap_or((Growth::Exponential, Jitter::None));
    let initial = fields.whole_ms("backoff_factor", f).unwrap_or(BACKOFF_FACTOR);
    let exponent = fields.whole("exponent", 1, u64::MAX, f).unwrap_or(EXPONENT);
    let max_delay = match fields.get("max_delay") {
        None | Some(Value::Null) => None,
        Some(_) => fields.whole_ms("max_delay", f),
    };
    if growth != Growth::Exponential {
        super::warn_unread(&fields, &["exponent"], "a LINEAR or FIXED strategy", f);
    }
    let backoff = Backoff {
        initial,
        offset: Span::ZERO,
        curve: match growth {
            Growth::Exponential => Curve::Exponential { rate: exponent as f64 },
            Growth::Linear => Curve::Linear,
            Growth::Fixed => Curve::Fixed,
        },
        cap: max_delay.map(|at| Cap { at, place: CapPlace::AfterJitter }),
        jitter,
        rounding: Rounding::FloorMs,
    };
    super::reading(
        findings,
        Parts {
            rules: vec![Rule { matcher: Matcher::default(), budget: None, backoff }],
            attempts: AttemptLimit::AtMost(max_retries.unwrap_or(MAX_RETRIES) + 1),
            max_elapsed: None,
            on_stop: Disposition::Fail,
            unmatched: Unmatched::NonRetryable,
            delegated: None,
        },
    )
}

/// The nearest Exosphere policy.
pub(super) fn write(policy: &Policy) -> Value {
    let rule = super::first_rule(policy);
    let backoff = &rule.backoff;
    let (growth, exponent) = match backoff.curve {
        Curve::Fixed => (Growth::Fixed, EXPONENT),
        Curve::Linear | Curve::Polynomial { .. } => (Growth::Linear, EXPONENT),
        Curve::Exponential { rate } => (Growth::Exponential, (rate.round() as u64).clamp(1, u64::from(u32::MAX))),
    };
    let jitter = match backoff.jitter {
        Jitter::None => Jitter::None,
        Jitter::Scale { low: 0.0, .. } | Jitter::Decorrelated => Jitter::FULL,
        Jitter::Scale { .. } | Jitter::Added { .. } => Jitter::EQUAL,
    };
    let strategy = STRATEGIES.iter().find(|(_, meaning)| *meaning == (growth, jitter)).map(|(name, _)| *name);
    let retries = super::max_runs(policy, rule).map_or(u32::MAX - 1, |runs| runs - 1);
    let mut fields = Map::new();
    fields.insert("max_retries".to_owned(), retries.into());
    fields.insert("strategy".to_owned(), json!(strategy));
    fields.insert("backoff_factor".to_owned(), whole_ms(backoff.initial).into());
    if growth == Growth::Exponential {
        fields.insert("exponent".to_owned(), exponent.into());
    }
    fields.extend(backoff.cap.map(|cap| ("max_delay".to_owned(), whole_ms(cap.at).into())));
    Value::Object(fields)
}

/// Whole milliseconds, at least one.
fn whole_ms(span: Span) -> u64 {
    (span.ms().round() as u64).max(1)
}

pub(super) fn path_of(part: Part) -> &'static str {
    match part {
        Part::Attempts | Part::Budget => "/max_retries",
        Part::Elapsed | Part::OnStop | Part::Delegation | Part::Rules | Part::Matcher | Part::Rounding => "",
        Part::Initial => "/backoff_factor",
        Part::Curve | Part::Jitter => "/strategy",
        Part::Cap => "/max_delay",
    }
}
