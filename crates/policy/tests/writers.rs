//! Writing a policy in a dialect: the same comes back, and what cannot come back is named.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use redrive_policy::dialect::Dialect;
use redrive_policy::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Draw, Failure, History, Jitter, Matcher, Moment, Parts,
    Pattern, Policy, Rounding, Rule, Span, Unmatched, decide,
};
use serde_json::{Value, json};

fn read(dialect: Dialect, value: &Value) -> Policy {
    dialect.read(value).unwrap_or_else(|problems| panic!("{dialect}: {value}\n{problems}")).policy
}

fn seconds() -> impl Strategy<Value = f64> {
    (0_u32..100_000).prop_map(|tenths| f64::from(tenths) / 10.0)
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        "[a-c]{1,2}".prop_map(|text| Pattern::exact(&text)),
        "[a-c]\\.\\*".prop_map(|text| Pattern::exact(&text)),
        "[a-c]\\.\\*".prop_map(|text| Pattern::dotted(&text)),
        Just(Pattern::Any),
    ]
}

fn matcher() -> impl Strategy<Value = Matcher> {
    let list = || prop::collection::vec(pattern(), 0..3);
    (prop::option::of(list()), list(), prop::option::of(list()), any::<Option<bool>>()).prop_map(
        |(include_types, exclude_types, codes, retryable)| Matcher { include_types, exclude_types, codes, retryable },
    )
}

fn backoff() -> impl Strategy<Value = Backoff> {
    let span = || {
        prop_oneof![Just(0.0), seconds().prop_map(|s| s * 1000.0), 0.0..1e9_f64]
            // No notation of time goes below the nanosecond.
            .prop_map(|ms| Span::saturating_ms((ms * 1e6).round() / 1e6))
    };
    let factor = || prop_oneof![Just(1.0), Just(2.0), 1.0..9.0_f64];
    let curve = prop_oneof![
        Just(Curve::Fixed),
        Just(Curve::Linear),
        factor().prop_map(|rate| Curve::Exponential { rate }),
        (0.0..6.0_f64, 0_u32..3).prop_map(|(exponent, first)| Curve::Polynomial { exponent, first }),
    ];
    let jitter = prop_oneof![
        Just(Jitter::None),
        Just(Jitter::FULL),
        Just(Jitter::EQUAL),
        Just(Jitter::OJS),
        Just(Jitter::Decorrelated),
        (0_u32..=10).prop_map(|tenths| Jitter::plus_minus(f64::from(tenths) / 10.0)),
        span().prop_map(|step| Jitter::Added { step }),
    ];
    let place = prop_oneof![Just(CapPlace::BeforeJitter), Just(CapPlace::AfterJitter), Just(CapPlace::BeforeAndAfter)];
    let rounding = prop_oneof![Just(Rounding::Exact), Just(Rounding::FloorMs)];
    let offset = prop_oneof![3 => Just(Span::ZERO), 1 => span()];
    (span(), offset, curve, prop::option::of((span(), place)), jitter, rounding).prop_map(
        |(initial, offset, curve, cap, jitter, rounding)| {
            let cap = cap.map(|(at, place)| {
                let place = if jitter == Jitter::Decorrelated { CapPlace::AfterJitter } else { place };
                Cap { at, place }
            });
            Backoff { initial, offset, curve, cap, jitter, rounding }
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    let rule = (matcher(), prop::option::of(1_u32..40), backoff()).prop_map(|(matcher, budget, backoff)| Rule {
        matcher,
        budget,
        backoff,
    });
    let attempts = prop_oneof![
        Just(AttemptLimit::Disabled),
        (0_u32..40).prop_map(AttemptLimit::AtMost),
        Just(AttemptLimit::AtMost(u32::MAX)),
        Just(AttemptLimit::Unlimited),
    ];
    let on_stop = prop_oneof![Just(Disposition::Discard), Just(Disposition::DeadLetter), Just(Disposition::Fail)];
    let elapsed = prop::option::of(seconds().prop_map(|s| Span::saturating_ms(s * 1000.0)));
    let unmatched = prop_oneof![Just(Unmatched::NonRetryable), Just(Unmatched::PassesThrough)];
    (prop::collection::vec(rule, 1..4), attempts, elapsed, on_stop, unmatched).prop_map(
        |(rules, attempts, max_elapsed, on_stop, unmatched)| {
            Policy::new(Parts { rules, attempts, max_elapsed, on_stop, unmatched, delegated: None })
                .expect("valid by construction")
        },
    )
}

/// What a policy does to a job that fails as these failures say, with these draws: the delays up to
/// the stop, and what becomes of the job.
fn behaviour(policy: &Policy, failures: &[(usize, f64)]) -> Vec<(Option<f64>, Option<Disposition>)> {
    const KINDS: [(&str, &str, Option<bool>); 6] = [
        ("a", "a", None),
        ("b.x", "b.x", Some(true)),
        ("c.*", "c.*", Some(false)),
        ("bb", "a", Some(true)),
        ("error", "", None),
        ("a.", "c.x", Some(false)),
    ];
    let mut history = History::new(Moment::ORIGIN);
    let mut now = Moment::ORIGIN;
    let mut seen = Vec::new();
    for (kind, draw) in failures {
        let (type_name, code, retryable) = KINDS[kind % KINDS.len()];
        let failure = Failure { code, retryable, ..Failure::of_type(type_name) };
        let draw = Draw::try_from(*draw).expect("in the unit interval");
        let verdict = decide(policy, &history, &failure, now, draw);
        history.record(&verdict);
        match verdict.outcome {
            redrive_policy::Outcome::Retry { delay, .. } => {
                seen.push((Some(delay.ms()), None));
                now = now.after(delay);
            }
            redrive_policy::Outcome::Stop { disposition, .. } => {
                seen.push((None, Some(disposition)));
                break;
            }
        }
    }
    seen
}

fn same(a: &[(Option<f64>, Option<Disposition>)], b: &[(Option<f64>, Option<Disposition>)]) -> bool {
    let close = |x: Option<f64>, y: Option<f64>| match (x, y) {
        (Some(x), Some(y)) => (x - y).abs() <= 1e-6 * x.abs().max(1.0),
        _ => x == y,
    };
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| close(x.0, y.0) && x.1 == y.1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever the policy, what is written is valid in its dialect, and nothing more gets lost
    /// when it is written once more.
    #[test]
    fn every_writer_writes_what_its_reader_reads(policy in policy()) {
        for dialect in Dialect::ALL {
            let writing = dialect.write(&policy);
            let read_back = read(dialect, &writing.value);
            let again = dialect.write(&read_back);
            prop_assert_eq!(&again.lost, &vec![], "{} {}", dialect, writing.value);
            prop_assert_eq!(&again.value, &writing.value, "{}", dialect);
            prop_assert_eq!(read(dialect, &again.value), read_back, "{} {}", dialect, writing.value);
        }
    }

    /// Where no loss is named, the written policy does the same as the one it was made from.
    #[test]
    fn no_loss_means_the_same_behaviour(
        policy in policy(),
        failures in prop::collection::vec((0_usize..6, 0.0..1.0_f64), 1..45),
    ) {
        for dialect in Dialect::ALL {
            let writing = dialect.write(&policy);
            if writing.lost.is_empty() {
                let (was, is) = (behaviour(&policy, &failures), behaviour(&read(dialect, &writing.value), &failures));
                prop_assert!(same(&was, &is), "{dialect}\n{policy:?}\n{}\n{was:?}\n{is:?}", writing.value);
            }
        }
    }
}

#[test]
fn a_policy_of_every_dialect_survives_its_own_writer() {
    let mut policies = 0;
    for dialect in Dialect::ALL {
        let path = format!("{}/tests/vectors/{dialect}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("the vectors");
        let cases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        for case in cases.iter().filter(|case| case["valid"] == true) {
            let policy = read(dialect, &case["policy"]);
            let writing = dialect.write(&policy);
            assert_eq!(writing.lost, vec![], "{dialect} {}", case["policy"]);
            let read_back = read(dialect, &writing.value);
            let backoffs = |p: &Policy| p.rules.iter().map(|rule| rule.backoff).collect::<Vec<_>>();
            if policy.attempts != AttemptLimit::Disabled {
                assert_eq!(backoffs(&read_back), backoffs(&policy), "{dialect} {}", case["policy"]);
            }
            policies += 1;
        }
    }
    assert_eq!(policies, 87);
}

#[test]
fn losses_name_the_field_of_the_source_and_what_happens_instead() {
    let azolla = json!({ "stop": { "max_attempts": null, "max_delay": 60 }, "retry": { "include_errors": ["A"] } });
    let policy = read(Dialect::Azolla, &azolla);
    let lost: Vec<_> =
        Dialect::Ojs.write(&policy).lost.into_iter().map(|loss| loss.seen_from(Dialect::Azolla)).collect();
    let paths: Vec<&str> = lost.iter().map(|loss| loss.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/stop/max_attempts", "/stop/max_delay", "", "/retry/include_errors", "/wait/strategy"],
        "{lost:#?}"
    );
    assert!(lost[0].message.contains("no limit on attempts"), "{}", lost[0].message);
    assert!(lost[4].message.contains("full jitter") && lost[4].message.contains("×0.5–1.5"), "{}", lost[4].message);
}
