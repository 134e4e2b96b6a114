//! MWL: the `with` of the Retry middleware's `onEntry`, an object with `policies`.

use super::Reading;
use super::fields::{Fields, Findings};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Parts, Pattern, Problem, Problems,
    Rounding, Rule, Span, Unmatched,
};
use serde_json::Value;

pub(super) const FIELDS: [&str; 1] = ["policies"];

pub(super) const JITTERS: [(&str, Jitter); 4] =
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
