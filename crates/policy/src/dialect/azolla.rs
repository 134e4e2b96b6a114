//! Azolla: `stop`, `wait` and `retry`.

use super::duration::in_seconds;
use super::fields::{Fields, Findings};
use super::{Part, Reading, Warning};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Parts, Pattern, Policy, Problem,
    Problems, Rounding, Rule, Span, Unmatched,
};
use serde_json::{Map, Value, json};

pub(super) const FIELDS: [&str; 4] = ["version", "stop", "wait", "retry"];

/// The defaults of §2–§5.
const MAX_ATTEMPTS: u32 = 5;
const DELAY: Span = Span::from_secs(1);
const MULTIPLIER: f64 = 2.0;
const MAX_DELAY: Span = Span::from_secs(300);
const INCLUDE: &str = "ValueError";

#[derive(Clone, Copy, PartialEq)]
enum Strategy {
    Fixed,
    Exponential,
    ExponentialJitter,
}

pub(super) fn read(value: &Value) -> Result<Reading, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let document = Fields::document(value, f);
    // §7: unknown keys at the top are ignored; those inside the sections are refused.
    document.ignores_but(&FIELDS, f);
    if let Some(version) = document.get("version")
        && version.as_f64() != Some(1.0)
    {
        f.problems.push(Problem::new("/version", crate::problem::shown(version), "1, or no version"));
    }
    let (attempts, max_elapsed) = stop(&document, f);
    let backoff = wait(&document, f);
    let matcher = retry(&document, f);
    super::reading(
        findings,
        Parts {
            rules: vec![Rule { matcher, budget: None, backoff }],
            attempts,
            max_elapsed,
            on_stop: Disposition::Fail,
            unmatched: Unmatched::NonRetryable,
            delegated: None,
        },
    )
}

fn stop(document: &Fields<'_>, f: &mut Findings) -> (AttemptLimit, Option<Span>) {
    let stop = document.nested("stop", f);
    stop.only(&["max_attempts", "max_delay"], f);
    let max_attempts = stop.count_or_null("max_attempts", 1, f);
    let max_elapsed = match stop.get("max_delay") {
        None | Some(Value::Null) => None,
        Some(_) => stop.seconds("max_delay", f),
    };
    if let (Some(limit), false) = (max_elapsed, stop.has("max_attempts")) {
        f.warnings.push(Warning {
            code: "default-attempts-end-first",
            path: stop.path_of("max_delay"),
            message: format!(
                "max_attempts keeps its default of {MAX_ATTEMPTS}, so the task may stop long before {limit}"
            ),
            instead: "\"max_attempts\": null beside it, if time alone shall decide".to_owned(),
        });
    }
    let attempts = match max_attempts {
        Some(None) => AttemptLimit::Unlimited,
        Some(Some(limit)) => AttemptLimit::AtMost(limit),
        None => AttemptLimit::AtMost(MAX_ATTEMPTS),
    };
    (attempts, max_elapsed)
}

fn wait(document: &Fields<'_>, f: &mut Findings) -> Backoff {
    let wait = document.nested("wait", f);
    wait.only(&["strategy", "delay", "initial_delay", "multiplier", "max_delay"], f);
    let strategies = [
        ("fixed", Strategy::Fixed),
        ("exponential", Strategy::Exponential),
        ("exponential_jitter", Strategy::ExponentialJitter),
    ];
    let strategy = wait.word("strategy", &strategies, f).unwrap_or(Strategy::ExponentialJitter);
    let delay = wait.seconds("delay", f).unwrap_or(DELAY);
    let initial = wait.seconds("initial_delay", f).unwrap_or(DELAY);
    let rate = wait.number("multiplier", 1.0, f).unwrap_or(MULTIPLIER);
    let max_delay = wait.seconds("max_delay", f).unwrap_or(MAX_DELAY);
    let (unread, strategy_name): (&[&str], _) = match strategy {
        Strategy::Fixed => (&["initial_delay", "multiplier", "max_delay"], "fixed"),
        _ => (&["delay"], "exponential"),
    };
    super::warn_unread(&wait, unread, &format!("the {strategy_name} strategy"), f);
    if strategy == Strategy::Fixed {
        return Backoff::fixed(delay);
    }
    Backoff {
        initial,
        offset: Span::ZERO,
        curve: Curve::Exponential { rate },
        cap: Some(Cap { at: max_delay, place: CapPlace::BeforeJitter }),
        jitter: if strategy == Strategy::ExponentialJitter { Jitter::FULL } else { Jitter::None },
        rounding: Rounding::Exact,
    }
}

fn retry(document: &Fields<'_>, f: &mut Findings) -> Matcher {
    let retry = document.nested("retry", f);
    retry.only(&["include_errors", "exclude_errors"], f);
    let exact = |text: &str| Some(Pattern::exact(text));
    let include = retry.patterns("include_errors", "an error type as a string", f, exact);
    let exclude = retry.patterns("exclude_errors", "an error type as a string", f, exact);
    if !retry.has("include_errors") {
        f.warnings.push(Warning {
            code: "default-include-list",
            path: "/retry/include_errors".to_owned(),
            message: format!("left to its default, so that only {INCLUDE} is retried; every other error stops at once"),
            instead: "\"include_errors\" with the error types that shall be retried".to_owned(),
        });
    }
    Matcher {
        include_types: Some(include.unwrap_or_else(|| vec![Pattern::exact(INCLUDE)])),
        exclude_types: exclude.unwrap_or_default(),
        ..Matcher::default()
    }
}

/// The nearest Azolla policy.
pub(super) fn write(policy: &Policy) -> Value {
    let rule = super::first_rule(policy);
    let exact = |patterns: &[Pattern]| -> Vec<String> {
        patterns.iter().filter(|pattern| matches!(pattern, Pattern::Exact(_))).map(Pattern::to_string).collect()
    };
    // Azolla cannot say "any error": its own default stands in, and the loss says so.
    let include = rule.matcher.include_types.as_deref().map_or_else(|| vec![INCLUDE.to_owned()], exact);
    let mut stop = Map::new();
    stop.insert("max_attempts".to_owned(), json!(super::max_runs(policy, rule)));
    stop.extend(policy.max_elapsed.map(|limit| ("max_delay".to_owned(), json!(in_seconds(limit)))));
    let mut retry = Map::new();
    retry.insert("include_errors".to_owned(), json!(include));
    let exclude = exact(&rule.matcher.exclude_types);
    if !exclude.is_empty() {
        retry.insert("exclude_errors".to_owned(), json!(exclude));
    }
    json!({ "version": 1, "stop": stop, "wait": write_wait(&rule.backoff), "retry": retry })
}

fn write_wait(backoff: &Backoff) -> Value {
    let plain = backoff.jitter == Jitter::None && backoff.offset.is_zero();
    if backoff.curve == Curve::Fixed && plain && backoff.cap.is_none_or(|cap| cap.at >= backoff.initial) {
        return json!({ "strategy": "fixed", "delay": in_seconds(backoff.initial) });
    }
    let multiplier = match backoff.curve {
        Curve::Fixed => 1.0,
        Curve::Exponential { rate } => rate,
        Curve::Linear | Curve::Polynomial { .. } => MULTIPLIER,
    };
    json!({
        "strategy": if backoff.jitter == Jitter::None { "exponential" } else { "exponential_jitter" },
        "initial_delay": in_seconds(backoff.initial),
        "multiplier": multiplier,
        "max_delay": in_seconds(backoff.cap.map_or(Span::MAX, |cap| cap.at)),
    })
}

pub(super) fn path_of(part: Part) -> &'static str {
    match part {
        Part::Attempts | Part::Budget => "/stop/max_attempts",
        Part::Elapsed => "/stop/max_delay",
        Part::OnStop | Part::Delegation | Part::Rules | Part::Rounding => "",
        Part::Matcher => "/retry/include_errors",
        Part::Initial => "/wait/initial_delay",
        Part::Curve => "/wait/multiplier",
        Part::Cap => "/wait/max_delay",
        Part::Jitter => "/wait/strategy",
    }
}
