//! The builder: what it builds, and what it refuses.
#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use redrive_policy::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Pattern, Policy, PolicyBuilder, Problem,
    Rule, Span, Unmatched,
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn built(builder: PolicyBuilder) -> Policy {
    builder.build().expect("a valid policy")
}

fn backoff(builder: PolicyBuilder) -> Backoff {
    built(builder).rules[0].backoff
}

/// The path and the message of every problem.
fn problems(builder: PolicyBuilder) -> Vec<(String, String)> {
    let problems = builder.build().expect_err("problems").0;
    problems.into_iter().map(|Problem { path, message }| (path, message)).collect()
}

fn assert_only_problem(builder: PolicyBuilder, path: &str, words: &str) {
    let found = problems(builder);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, path, "{found:?}");
    assert!(found[0].1.contains(words), "{found:?}");
}

#[test]
fn the_defaults_are_as_documented() {
    let policy = built(Policy::builder());
    assert_eq!(policy.attempts, AttemptLimit::AtMost(3));
    assert_eq!((policy.max_elapsed, policy.on_stop), (None, Disposition::Fail));
    assert_eq!(policy.unmatched, Unmatched::NonRetryable);
    let [rule] = &policy.rules[..] else { panic!("one rule") };
    assert!(rule.matcher.is_any());
    let cap = Cap { at: Span::from_secs(300), place: CapPlace::BeforeAndAfter };
    let expected = Backoff {
        initial: Span::from_secs(1),
        curve: Curve::Exponential { rate: 2.0 },
        cap: Some(cap),
        jitter: Jitter::FULL,
        ..Backoff::IMMEDIATE
    };
    assert_eq!(rule.backoff, expected);
}

#[test]
fn fixed_and_immediate_wait_what_they_say() {
    assert_eq!(backoff(Policy::builder().fixed(SECOND)), Backoff::fixed(Span::from_secs(1)));
    assert_eq!(backoff(Policy::builder().immediate()), Backoff::IMMEDIATE);
    let hour = Duration::from_secs(3_600);
    assert_eq!(backoff(Policy::builder().fixed(hour)), Backoff::fixed(Span::from_secs(3_600)));
}

#[test]
fn every_curve_and_jitter_has_its_method() {
    let curve = |builder| backoff(builder).curve;
    assert_eq!(curve(Policy::builder().linear(SECOND)), Curve::Linear);
    assert_eq!(curve(Policy::builder().exponential(SECOND, 3.0)), Curve::Exponential { rate: 3.0 });
    assert_eq!(curve(Policy::builder().polynomial(SECOND, 4.0)), Curve::Polynomial { exponent: 4.0, first: 1 });
    let jitter = |builder| backoff(builder).jitter;
    assert_eq!(jitter(Policy::builder().full_jitter()), Jitter::FULL);
    assert_eq!(jitter(Policy::builder().equal_jitter()), Jitter::EQUAL);
    assert_eq!(jitter(Policy::builder().ojs_jitter()), Jitter::OJS);
    assert_eq!(jitter(Policy::builder().jitter_plus_minus(0.25)), Jitter::Scale { low: 0.75, high: 1.25 });
    assert_eq!(jitter(Policy::builder().jitter_plus_minus(0.0)), Jitter::None);
    assert_eq!(jitter(Policy::builder().no_jitter()), Jitter::None);
}

#[test]
fn the_cap_of_decorrelated_jitter_comes_after_it() {
    let place = |builder| backoff(builder).cap.expect("a cap").place;
    assert_eq!(place(Policy::builder().decorrelated_jitter()), CapPlace::AfterJitter);
    // Decorrelated delays grow whatever the curve, so the default cap holds here too.
    assert_eq!(place(Policy::builder().fixed(SECOND).decorrelated_jitter()), CapPlace::AfterJitter);
    assert_eq!(place(Policy::builder().cap_place(CapPlace::BeforeJitter)), CapPlace::BeforeJitter);
    let contradiction = Policy::builder().decorrelated_jitter().cap_place(CapPlace::BeforeJitter);
    assert_only_problem(contradiction, "/rules/0/backoff/cap/place", "after_jitter");
}

#[test]
fn limits_lists_and_disposition_arrive() {
    let builder = Policy::builder().unlimited_attempts().max_elapsed(SECOND).on_stop(Disposition::DeadLetter);
    let policy = built(builder.only_types(["io.*", "timeout"]).except_types(vec!["io.closed".to_owned()]));
    assert_eq!(policy.attempts, AttemptLimit::Unlimited);
    assert_eq!(policy.max_elapsed, Some(Span::from_secs(1)));
    assert_eq!(policy.on_stop, Disposition::DeadLetter);
    let matcher = &policy.rules[0].matcher;
    assert_eq!(matcher.include_types, Some(vec![Pattern::Prefix("io.".into()), Pattern::exact("timeout")]));
    assert_eq!(matcher.exclude_types, [Pattern::exact("io.closed")]);
}

#[test]
fn several_rules_keep_their_budgets() {
    let rule = |budget| Rule { matcher: Matcher::default(), budget, backoff: Backoff::IMMEDIATE };
    let policy = built(Policy::builder().rule(rule(Some(5))).rule(rule(Some(2))).unmatched(Unmatched::PassesThrough));
    assert_eq!((policy.rules.len(), policy.attempts), (2, AttemptLimit::Unlimited));
    assert_eq!(policy.unmatched, Unmatched::PassesThrough);
    // A rule without a budget would be retried for ever.
    let policy = built(Policy::builder().rule(rule(Some(5))).rule(rule(None)));
    assert_eq!(policy.attempts, AttemptLimit::AtMost(3));
}

#[test]
fn numbers_out_of_range_are_refused() {
    for rate in [f64::NAN, f64::INFINITY, 0.99, -2.0] {
        assert_only_problem(Policy::builder().exponential(SECOND, rate), "/rules/0/backoff/curve/rate", "at least 1");
    }
    for exponent in [f64::NAN, f64::NEG_INFINITY, -0.5] {
        let builder = Policy::builder().polynomial(SECOND, exponent);
        assert_only_problem(builder, "/rules/0/backoff/curve/exponent", "at least 0");
    }
    for fraction in [f64::NAN, -0.1, 1.01] {
        let builder = Policy::builder().jitter_plus_minus(fraction);
        assert_only_problem(builder, "/rules/0/backoff/jitter", "a fraction from 0 to 1");
    }
}

#[test]
fn contradictions_are_refused() {
    let jitter = "/rules/0/backoff/jitter";
    let twice = Policy::builder().fixed(SECOND).linear(SECOND);
    assert_only_problem(twice, "/rules/0/backoff/curve", "set by fixed() and again by linear()");
    assert_only_problem(Policy::builder().no_jitter().full_jitter(), jitter, "by no_jitter() and again");
    let limits = Policy::builder().max_attempts(3).unlimited_attempts();
    assert_only_problem(limits, "/attempts", "by max_attempts() and again by unlimited_attempts()");
    let cap = "/rules/0/backoff/cap";
    assert_only_problem(Policy::builder().max_delay(SECOND).no_max_delay(), cap, "again by no_max_delay()");
    for uncapped in [Policy::builder().no_max_delay(), Policy::builder().fixed(SECOND)] {
        let builder = uncapped.cap_place(CapPlace::AfterJitter);
        assert_only_problem(builder, "/rules/0/backoff/cap/place", "no cap");
    }
    assert_only_problem(Policy::builder().immediate().equal_jitter(), jitter, "equal jitter has nothing to change");
    let zero = Policy::builder().exponential(Duration::ZERO, 2.0);
    assert_only_problem(zero, "/rules/0/backoff/initial_ms", "use immediate()");
}

#[test]
fn a_cap_below_the_first_delay_is_refused_and_a_default_is_named() {
    let capped = Policy::builder().fixed(SECOND).max_delay(Duration::from_millis(999));
    assert_only_problem(capped, "/rules/0/backoff/cap/at_ms", "found 999 ms; allowed is at least the first delay");
    let long = Policy::builder().exponential(Duration::from_secs(600), 2.0);
    assert_only_problem(long, "/rules/0/backoff/initial_ms", "at most 5 min, the default cap; set max_delay too");
    assert!(Policy::builder().fixed(SECOND).max_delay(SECOND).build().is_ok());
}

#[test]
fn lists_that_say_nothing_are_refused() {
    let none: [&str; 0] = [];
    let only = "/rules/0/match/include_types";
    assert_only_problem(Policy::builder().only_types(none), only, "at least one error type");
    assert!(Policy::builder().except_types(none).build().is_ok());
    let blank = Policy::builder().except_types(["io", ""]);
    assert_only_problem(blank, "/rules/0/match/exclude_types/1", "an empty string");
}

#[test]
fn settings_of_a_single_rule_are_not_lost_beside_rules() {
    let rule = Rule { matcher: Matcher::default(), budget: None, backoff: Backoff::IMMEDIATE };
    let found = problems(Policy::builder().rule(rule).fixed(SECOND).except_types(["io"]).max_attempts(4));
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/rules", "/rules"]);
    assert!(found[0].1.contains("fixed()") && found[1].1.contains("except_types()"), "{found:?}");
}

#[test]
fn every_problem_is_listed() {
    let bad = Rule { matcher: Matcher::default(), budget: Some(0), backoff: Backoff::IMMEDIATE };
    let found = problems(Policy::builder().rule(bad).full_jitter().max_attempts(1).max_attempts(2));
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/attempts", "/rules", "/rules/0/budget"]);
}
