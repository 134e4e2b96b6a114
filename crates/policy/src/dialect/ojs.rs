//! Open Job Spec: the `RetryPolicy` object of its retry specification.

use super::duration::to_iso;
use super::fields::{Fields, Findings};
use super::{Part, Reading, Warning};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Parts, Pattern, Policy, Problem,
    Problems, Rounding, Rule, Span, Unmatched,
};
use serde_json::{Map, Value};

pub(super) const FIELDS: [&str; 9] = [
    "max_attempts",
    "initial_interval",
    "backoff_coefficient",
    "max_interval",
    "jitter",
    "non_retryable_errors",
    "on_exhaustion",
    "backoff_strategy",
    "backoff_type",
];

/// The defaults of OJS §8.
const MAX_ATTEMPTS: u32 = 3;
const INITIAL: Span = Span::from_secs(1);
const COEFFICIENT: f64 = 2.0;
const MAX_INTERVAL: Span = Span::from_secs(300);

#[derive(Clone, Copy, PartialEq)]
enum Strategy {
    None,
    Linear,
    Exponential,
    Polynomial,
}

const STRATEGIES: [(&str, Strategy); 5] = [
    ("none", Strategy::None),
    ("constant", Strategy::None),
    ("linear", Strategy::Linear),
    ("exponential", Strategy::Exponential),
    ("polynomial", Strategy::Polynomial),
];

pub(super) fn read(value: &Value) -> Result<Reading, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let fields = Fields::document(value, f);
    fields.only(&FIELDS, f);
    let max_attempts = fields.count("max_attempts", 0, f).unwrap_or(MAX_ATTEMPTS);
    let (initial, max_interval) = intervals(&fields, f);
    let coefficient = fields.number("backoff_coefficient", 1.0, f);
    let strategy = strategy(&fields, f);
    let jitter = fields.boolean("jitter", f).unwrap_or(true);
    let non_retryable = fields
        .patterns("non_retryable_errors", "an error type that is not empty", f, |text| {
            (!text.is_empty()).then(|| Pattern::dotted(text))
        })
        .unwrap_or_default();
    let dispositions = [("discard", Disposition::Discard), ("dead_letter", Disposition::DeadLetter)];
    let on_stop = fields.word("on_exhaustion", &dispositions, f).unwrap_or(Disposition::Discard);
    warn(&fields, coefficient, strategy, f);

    let coefficient = coefficient.unwrap_or(COEFFICIENT);
    let backoff = Backoff {
        initial,
        offset: Span::ZERO,
        curve: match strategy.unwrap_or(Strategy::Exponential) {
            Strategy::None => Curve::Fixed,
            Strategy::Linear => Curve::Linear,
            Strategy::Exponential => Curve::Exponential { rate: coefficient },
            Strategy::Polynomial => Curve::Polynomial { exponent: coefficient, first: 1 },
        },
        cap: Some(Cap { at: max_interval, place: CapPlace::BeforeAndAfter }),
        jitter: if jitter { Jitter::OJS } else { Jitter::None },
        rounding: Rounding::Exact,
    };
    let matcher = Matcher { exclude_types: non_retryable, ..Matcher::default() };
    super::reading(
        findings,
        Parts {
            rules: vec![Rule { matcher, budget: None, backoff }],
            attempts: AttemptLimit::AtMost(max_attempts),
            max_elapsed: None,
            on_stop,
            unmatched: Unmatched::NonRetryable,
            delegated: None,
        },
    )
}

/// The two intervals, merged with the defaults first and compared after (§8.1, §11.1).
fn intervals(fields: &Fields<'_>, f: &mut Findings) -> (Span, Span) {
    let problems_before = f.problems.len();
    let initial = fields.iso("initial_interval", f);
    let max = fields.iso("max_interval", f);
    if initial == Some(Span::ZERO) {
        let path = fields.path_of("initial_interval");
        f.problems.push(Problem::new(path, "a duration of zero", "a duration greater than zero"));
    }
    let (merged_initial, merged_max) = (initial.unwrap_or(INITIAL), max.unwrap_or(MAX_INTERVAL));
    if f.problems.len() == problems_before && merged_max < merged_initial {
        let (path, found, other) = match max {
            Some(max) => {
                let origin = if initial.is_some() { "" } else { " (its default)" };
                let least = format!("at least initial_interval, which is {merged_initial}{origin}");
                ("max_interval", max, least)
            }
            None => {
                let most = format!("at most max_interval, which is {merged_max} by default; set max_interval too");
                ("initial_interval", merged_initial, most)
            }
        };
        f.problems.push(Problem::new(fields.path_of(path), found, other));
    }
    (merged_initial, merged_max)
}

/// The strategy under either of its names; both may stand there if they agree.
fn strategy(fields: &Fields<'_>, f: &mut Findings) -> Option<Strategy> {
    let by_strategy = fields.word("backoff_strategy", &STRATEGIES, f);
    let by_type = fields.word("backoff_type", &STRATEGIES, f);
    if let (Some(a), Some(b)) = (by_strategy, by_type)
        && a != b
    {
        let message = "contradicts backoff_strategy; the two are one field under two names, keep one of them";
        f.problems.push(Problem::with_message(fields.path_of("backoff_type"), message));
    }
    by_strategy.or(by_type)
}

fn warn(fields: &Fields<'_>, coefficient: Option<f64>, strategy: Option<Strategy>, f: &mut Findings) {
    let path = fields.path_of("backoff_coefficient");
    match (coefficient, strategy) {
        (Some(coefficient), None) if coefficient >= 3.0 => f.warnings.push(Warning {
            code: "coefficient-suggests-polynomial",
            path,
            message: format!(
                "with no named strategy this is exponential: each delay is {coefficient} times the one before; \
                 a coefficient of 3 or more is often meant as the exponent of a polynomial"
            ),
            instead: "\"backoff_strategy\": \"polynomial\", or \"exponential\" if that is what you mean".to_owned(),
        }),
        (Some(_), Some(Strategy::None | Strategy::Linear)) => f.warnings.push(Warning {
            code: "no-effect",
            path,
            message: "the strategies none and linear do not read the coefficient".to_owned(),
            instead: "remove backoff_coefficient, or name the strategy exponential or polynomial".to_owned(),
        }),
        _ => {}
    }
}

/// The nearest OJS policy. Fields that the schema of §14 forgets are written only where needed.
pub(super) fn write(policy: &Policy) -> Value {
    let rule = super::first_rule(policy);
    let backoff = &rule.backoff;
    let initial = at_least_a_moment(backoff.cap.map_or(backoff.initial, |cap| backoff.initial.at_most(cap.at)));
    let longest = super::cap_or_highest(policy, rule, Span::MAX);
    let (strategy, coefficient) = match backoff.curve {
        Curve::Fixed => (Some("none"), COEFFICIENT),
        Curve::Linear => (Some("linear"), COEFFICIENT),
        Curve::Exponential { rate } => (None, rate),
        Curve::Polynomial { exponent, .. } => (Some("polynomial"), exponent.max(1.0)),
    };
    let max_attempts = match policy.attempts {
        AttemptLimit::AtMost(0) => 0,
        _ => super::max_runs(policy, rule).unwrap_or(u32::MAX),
    };
    let sayable = |pattern: &&Pattern| **pattern == Pattern::dotted(&pattern.to_string());
    let non_retryable = rule.matcher.exclude_types.iter().filter(sayable).map(Pattern::to_string);
    let mut fields = Map::new();
    fields.insert("max_attempts".to_owned(), max_attempts.into());
    fields.insert("initial_interval".to_owned(), to_iso(initial).into());
    fields.insert("backoff_coefficient".to_owned(), coefficient.into());
    fields.extend(strategy.map(|name| ("backoff_strategy".to_owned(), name.into())));
    fields.insert("max_interval".to_owned(), to_iso(if longest < initial { initial } else { longest }).into());
    fields.insert("jitter".to_owned(), (backoff.jitter != Jitter::None).into());
    fields.insert("non_retryable_errors".to_owned(), non_retryable.filter(|text| !text.is_empty()).collect());
    let on_exhaustion = if policy.on_stop == Disposition::DeadLetter { "dead_letter" } else { "discard" };
    fields.insert("on_exhaustion".to_owned(), on_exhaustion.into());
    Value::Object(fields)
}

/// What a reader that validates against the schema of the document refuses.
pub(super) fn beyond_the_schema(written: &Value) -> Vec<Warning> {
    let strategy = written.get("backoff_strategy").and_then(Value::as_str);
    let warning = |strategy| Warning {
        code: "beyond-the-schema",
        path: "/backoff_strategy".to_owned(),
        message: format!(
            "\"{strategy}\" is a strategy of section 3, but the schema of section 14 does not know the field: Redrive \
             reads it, a server that goes by the schema to the letter refuses the policy"
        ),
        instead: "an exponential policy, where other servers must read it".to_owned(),
    };
    strategy.map(warning).into_iter().collect()
}

/// OJS wants an initial interval above zero: a millisecond is the nearest that means something.
fn at_least_a_moment(span: Span) -> Span {
    if span.is_zero() { Span::from_millis(1) } else { span }
}

pub(super) fn path_of(part: Part) -> &'static str {
    match part {
        Part::Attempts | Part::Budget => "/max_attempts",
        Part::Elapsed | Part::Delegation | Part::Rules | Part::Rounding => "",
        Part::OnStop => "/on_exhaustion",
        Part::Matcher => "/non_retryable_errors",
        Part::Initial => "/initial_interval",
        Part::Curve => "/backoff_coefficient",
        Part::Cap => "/max_interval",
        Part::Jitter => "/jitter",
    }
}
