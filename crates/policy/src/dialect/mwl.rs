//! MWL: the `with` of the Retry middleware's `onEntry`, an object with `policies`.

use super::duration::to_iso;
use super::fields::{Fields, Findings};
use super::{Part, Reading};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Parts, Pattern, Policy, Problem,
    Problems, Rounding, Rule, Span, Unmatched,
};
use serde_json::{Map, Value, json};

pub(super) const FIELDS: [&str; 1] = ["policies"];

const JITTERS: [(&str, Jitter); 4] =
    [("none", Jitter::None), ("full", Jitter::FULL), ("equal", Jitter::EQUAL), ("decorrelated", Jitter::Decorrelated)];

pub(super) fn read(value: &Value) -> Result<Reading, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let document = Fields::document(value, f);
    document.only(&FIELDS, f);
    document.require("policies", "an array with at least one policy", f);
    let policies = document.items("policies", f);
    if policies.as_ref().is_some_and(Vec::is_empty) {
        f.problems.push(Problem::new("/policies", "an empty array", "at least one policy"));
    }
    let rules: Vec<Rule> = policies.unwrap_or_default().iter().map(|policy| rule(policy, f)).collect();
    super::reading(
        findings,
        Parts {
            rules,
            attempts: AttemptLimit::Unlimited,
            max_elapsed: None,
            on_stop: Disposition::Fail,
            unmatched: Unmatched::PassesThrough,
            delegated: None,
        },
    )
}

fn rule(policy: &Fields<'_>, f: &mut Findings) -> Rule {
    policy.only(&["match", "attempts", "backoff"], f);
    policy.require("match", "an object with codes, types or retryable", f);
    policy.require("attempts", "a whole number of at least 1", f);
    Rule {
        matcher: matcher(&policy.nested("match", f), f),
        budget: policy.count("attempts", 1, f),
        backoff: if policy.has("backoff") { backoff(&policy.nested("backoff", f), f) } else { Backoff::IMMEDIATE },
    }
}

fn matcher(fields: &Fields<'_>, f: &mut Findings) -> Matcher {
    fields.only(&["codes", "types", "retryable"], f);
    if fields.is_present_and_empty() {
        let allowed = "at least one of codes, types, retryable";
        f.problems.push(Problem::new(fields.path(), "an empty object", allowed));
    }
    let codes = fields.patterns("codes", "a failure code, Prefix.* or *", f, |text| Some(Pattern::dotted_or_any(text)));
    let types = fields.patterns("types", "the name of a type other than \"success\"", f, |text| {
        (text != "success").then(|| Pattern::exact(text))
    });
    for (key, list) in [("codes", &codes), ("types", &types)] {
        if list.as_ref().is_some_and(Vec::is_empty)
            && fields.get(key).is_some_and(|value| value == &Value::Array(vec![]))
        {
            f.problems.push(Problem::new(fields.path_of(key), "an empty array", "at least one entry"));
        }
    }
    Matcher { include_types: types, exclude_types: Vec::new(), codes, retryable: fields.boolean("retryable", f) }
}

fn backoff(fields: &Fields<'_>, f: &mut Findings) -> Backoff {
    fields.only(&["initial", "rate", "max", "jitter"], f);
    fields.require("initial", "an ISO 8601 duration", f);
    let initial = fields.signed_iso("initial", f).unwrap_or(Span::ZERO);
    let rate = fields.number("rate", 1.0, f).unwrap_or(1.0);
    let max = fields.signed_iso("max", f);
    let jitter = fields.word("jitter", &JITTERS, f).unwrap_or(Jitter::None);
    let place = if jitter == Jitter::Decorrelated {
        super::warn_unread(fields, &["rate"], "decorrelated jitter", f);
        CapPlace::AfterJitter
    } else {
        CapPlace::BeforeJitter
    };
    Backoff {
        initial,
        offset: Span::ZERO,
        curve: Curve::Exponential { rate },
        cap: max.map(|at| Cap { at, place }),
        jitter,
        rounding: Rounding::Exact,
    }
}

/// The nearest list of MWL policies, one for each rule.
pub(super) fn write(policy: &Policy) -> Value {
    let policies: Vec<Value> = policy.rules.iter().map(|rule| write_rule(policy, rule)).collect();
    json!({ "policies": policies })
}

fn write_rule(policy: &Policy, rule: &Rule) -> Value {
    let mut fields = Map::new();
    let nothing = rule.matcher.include_types.as_ref().is_some_and(Vec::is_empty);
    let attempts = if nothing { 1 } else { super::max_runs(policy, rule).unwrap_or(u32::MAX) };
    fields.insert("match".to_owned(), write_match(&rule.matcher));
    fields.insert("attempts".to_owned(), attempts.into());
    if rule.backoff != Backoff::IMMEDIATE {
        fields.insert("backoff".to_owned(), write_backoff(&rule.backoff));
    }
    Value::Object(fields)
}

fn write_match(matcher: &Matcher) -> Value {
    let mut fields = Map::new();
    let words = |patterns: &[Pattern], sayable: fn(&Pattern) -> bool| -> Vec<String> {
        patterns.iter().filter(|pattern| sayable(pattern)).map(Pattern::to_string).collect()
    };
    let codes = matcher.codes.as_deref().map(|codes| words(codes, |p| *p == Pattern::dotted_or_any(&p.to_string())));
    let types = matcher.include_types.as_deref();
    let types = types.map(|types| words(types, |p| matches!(p, Pattern::Exact(text) if **text != *"success")));
    for (key, list) in [("codes", codes), ("types", types)] {
        fields.extend(list.filter(|list| !list.is_empty()).map(|list| (key.to_owned(), json!(list))));
    }
    fields.extend(matcher.retryable.map(|flag| ("retryable".to_owned(), flag.into())));
    if fields.is_empty() {
        fields.insert("codes".to_owned(), json!(["*"]));
    }
    Value::Object(fields)
}

fn write_backoff(backoff: &Backoff) -> Value {
    let rate = match backoff.curve {
        Curve::Fixed => 1.0,
        Curve::Exponential { rate } => rate,
        Curve::Linear | Curve::Polynomial { .. } => 2.0,
    };
    let jitter = match backoff.jitter {
        Jitter::Scale { low: 0.0, .. } => Jitter::FULL,
        Jitter::Scale { .. } | Jitter::Added { .. } => Jitter::EQUAL,
        same => same,
    };
    let name = JITTERS.iter().find(|(_, meaning)| *meaning == jitter).map_or("none", |(name, _)| *name);
    let mut fields = Map::new();
    fields.insert("initial".to_owned(), to_iso(backoff.initial).into());
    fields.insert("rate".to_owned(), rate.into());
    fields.extend(backoff.cap.map(|cap| ("max".to_owned(), to_iso(cap.at).into())));
    fields.insert("jitter".to_owned(), name.into());
    Value::Object(fields)
}

pub(super) fn path_of(part: Part, rule: usize) -> String {
    let member = match part {
        Part::Attempts | Part::Budget => "attempts",
        Part::Elapsed | Part::OnStop | Part::Delegation | Part::Rules => return "/policies".to_owned(),
        Part::Rounding => "backoff",
        Part::Matcher => "match",
        Part::Initial => "backoff/initial",
        Part::Curve => "backoff/rate",
        Part::Cap => "backoff/max",
        Part::Jitter => "backoff/jitter",
    };
    format!("/policies/{rule}/{member}")
}
