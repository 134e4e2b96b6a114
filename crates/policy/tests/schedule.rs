//! Schedules: bounds as in a replay, means and shares by law, totals without a hang.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, reason = "helpers of tests are tests too")]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use redrive_policy::dialect::{Dialect, ReadFailure};
use redrive_policy::lab::replay::replay;
use redrive_policy::lab::schedule::{MOST_ROWS, Schedule, schedule};
use redrive_policy::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Draw, Entropy, Failure, Jitter, Matcher, Parts, Policy,
    Reason, Rounding, Rule, Seeded, Span, Unmatched,
};
use serde_json::{Value, json};

fn read(dialect: Dialect, policy: Value) -> Policy {
    dialect.read(&policy).expect("a valid policy").policy
}

fn of(dialect: Dialect, policy: Value) -> Schedule {
    schedule(&read(dialect, policy), 0, 50)
}

fn ms(span: f64) -> Span {
    Span::saturating_ms(span)
}

fn policy_of(backoff: Backoff, attempts: AttemptLimit, max_elapsed: Option<Span>) -> Policy {
    let rules = vec![Rule { matcher: Matcher::default(), budget: None, backoff }];
    let (on_stop, unmatched) = (Disposition::Fail, Unmatched::NonRetryable);
    Policy::new(Parts { rules, attempts, max_elapsed, on_stop, unmatched, delegated: None }).expect("valid")
}

/// The same draw again and again.
struct Constant(Draw);

impl Entropy for Constant {
    fn draw(&mut self) -> Draw {
        self.0
    }
}

fn any_curve() -> impl Strategy<Value = Curve> {
    prop_oneof![
        Just(Curve::Fixed),
        Just(Curve::Linear),
        (1.0..4.0).prop_map(|rate| Curve::Exponential { rate }),
        (0.0..4.0, 0_u32..2).prop_map(|(exponent, first)| Curve::Polynomial { exponent, first }),
    ]
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::FULL),
        Just(Jitter::EQUAL),
        Just(Jitter::OJS),
        (0.0..=1.0).prop_map(Jitter::plus_minus),
        Just(Jitter::Decorrelated),
        (0.0..5_000.0).prop_map(|step| Jitter::Added { step: ms(step) }),
    ]
}

prop_compose! {
    fn any_backoff()(
        initial in prop_oneof![Just(0.0), 0.0..2.0, 1.0..100_000.0],
        offset in prop_oneof![Just(0.0), 0.0..20_000.0],
        curve in any_curve(),
        cap in proptest::option::of((0.0..500_000.0, 0_usize..3)),
        jitter in any_jitter(),
        floor in any::<bool>(),
    ) -> Backoff {
        let places = [CapPlace::BeforeJitter, CapPlace::AfterJitter, CapPlace::BeforeAndAfter];
        let place = |index: usize| if jitter == Jitter::Decorrelated { CapPlace::AfterJitter } else { places[index] };
        Backoff {
            initial: ms(initial),
            offset: ms(offset),
            curve,
            cap: cap.map(|(at, index)| Cap { at: ms(at), place: place(index) }),
            jitter,
            rounding: if floor { Rounding::FloorMs } else { Rounding::Exact },
        }
    }
}

proptest! {
    #[test]
    fn bounds_are_those_of_a_replay(backoff in any_backoff(), runs in 1_u32..60, seed: u64) {
        let policy = policy_of(backoff, AttemptLimit::AtMost(runs), None);
        let schedule = schedule(&policy, 0, usize::MAX);
        let failures = vec![ReadFailure { failure: Failure::default(), elapsed: None }; runs as usize];
        let steps = replay(&policy, &failures, &mut Seeded::new(seed));
        prop_assert_eq!(schedule.rows.len(), steps.len() - 1, "the last step of a replay is a stop");
        for (row, step) in schedule.rows.iter().zip(&steps) {
            prop_assert_eq!(row.retry, step.verdict.attempt);
            prop_assert_eq!(Some((row.delay.shortest, row.delay.longest)), step.bounds);
        }
    }

    #[test]
    fn rows_are_in_order_and_add_up(backoff in any_backoff(), runs in 1_u32..80) {
        let schedule = schedule(&policy_of(backoff, AttemptLimit::AtMost(runs), None), 0, usize::MAX);
        let mut sum = [0.0; 3];
        for row in &schedule.rows {
            let (delay, since) = (row.delay, row.since_start);
            prop_assert!(delay.shortest <= delay.mean && delay.mean <= delay.longest, "{:?}", row);
            prop_assert!((0.0..=1.0).contains(&row.on_one_instant), "{:?}", row);
            let parts = [delay.shortest, delay.mean, delay.longest];
            let sums = [since.shortest, since.mean, since.longest];
            for ((sum, part), found) in sum.iter_mut().zip(parts).zip(sums) {
                *sum += part.ms();
                prop_assert!((found.ms() - ms(*sum).ms()).abs() <= 1e-9 * *sum, "{:?}", row);
            }
        }
        let last = schedule.rows.last().map(|row| row.since_start).unwrap_or_default();
        prop_assert_eq!(schedule.total, Some(last));
        prop_assert!(schedule.complete);
    }

    /// Asking for fewer rows changes what is shown, not what is added up.
    #[test]
    fn totals_do_not_depend_on_the_rows(backoff in any_backoff(), runs in 1_u32..200, rows in 0_usize..100) {
        let policy = policy_of(backoff, AttemptLimit::AtMost(runs), Some(ms(3_600_000.0)));
        let (all, few) = (schedule(&policy, 0, usize::MAX), schedule(&policy, 0, rows));
        prop_assert_eq!(few.rows.as_slice(), &all.rows[..rows.min(all.rows.len())]);
        let (all_total, few_total) = (all.total.expect("limited"), few.total.expect("limited"));
        for (a, b) in [
            (all_total.shortest, few_total.shortest),
            (all_total.mean, few_total.mean),
            (all_total.longest, few_total.longest),
        ] {
            prop_assert!((a.ms() - b.ms()).abs() <= 1e-9 * a.ms(), "{} is not {}", a.ms(), b.ms());
        }
    }

    /// The ends by elapsed time are the stops that jobs with constant draws meet.
    #[test]
    fn elapsed_ends_are_the_stops_of_a_replay(
        initial in 1_u32..5_000,
        curve in prop_oneof![Just(Curve::Fixed), Just(Curve::Linear), Just(Curve::Exponential { rate: 2.0 })],
        jitter in prop_oneof![Just(Jitter::None), Just(Jitter::FULL), Just(Jitter::OJS), Just(Jitter::Decorrelated)],
        limit in 1_u32..600_000,
        runs in 1_u32..300,
        rows in 0_usize..20,
    ) {
        let cap = Some(Cap { at: ms(60_000.0), place: CapPlace::AfterJitter });
        let backoff = Backoff { curve, cap, jitter, ..Backoff::fixed(Span::from_millis(initial * 2)) };
        let policy = policy_of(backoff, AttemptLimit::AtMost(runs), Some(Span::from_millis(limit)));
        let ends = schedule(&policy, 0, rows).elapsed_limit.expect("a limit");
        let failures = vec![ReadFailure { failure: Failure::default(), elapsed: None }; runs as usize];
        for (draw, end) in [(Draw::LOWEST, ends.shortest), (Draw::SUPREMUM, ends.longest)] {
            let steps = replay(&policy, &failures, &mut Constant(draw));
            let last = steps.last().expect("at least one failure");
            let stopped_by_time = matches!(
                last.verdict.outcome,
                redrive_policy::Outcome::Stop { reason: Reason::MaxElapsed { .. }, .. }
            );
            prop_assert_eq!(end.map(|end| end.retry), stopped_by_time.then_some(last.verdict.attempt));
            if let Some(end) = end {
                prop_assert!((end.at.ms() - last.elapsed.ms()).abs() < 0.01, "{:?} {:?}", end.at, last.elapsed);
            }
        }
    }
}

proptest! {
    // Samples are compared within seven standard deviations: fixed seeds, so that no run is unlucky.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(2024), ..ProptestConfig::default() })]

    /// The mean of a large sample lies where the closed form says, and so does the share at the cap.
    #[test]
    fn means_and_shares_are_those_of_a_sample(backoff in any_backoff(), retry in 1_u32..12, seed: u64) {
        const JOBS: u32 = 4_000;
        let schedule = schedule(&policy_of(backoff, AttemptLimit::AtMost(retry + 1), None), 0, usize::MAX);
        let row = schedule.rows[retry as usize - 1];
        let mut entropy = Seeded::new(seed);
        let (mut sum, mut squares, mut capped) = (0.0, 0.0, 0.0);
        for _ in 0..JOBS {
            let mut previous = None;
            let first = if backoff.jitter == Jitter::Decorrelated { 1 } else { retry };
            let mut computed = backoff.delay(first, previous, entropy.draw());
            for n in first + 1..=retry {
                previous = Some(computed.delay);
                computed = backoff.delay(n, previous, entropy.draw());
            }
            sum += computed.delay.ms();
            squares += computed.delay.ms().powi(2);
            capped += f64::from(u8::from(computed.delay == row.delay.longest && computed.capped_at.is_some()));
        }
        let jobs = f64::from(JOBS);
        let (mean, share) = (sum / jobs, capped / jobs);
        // The longest delays of an uncapped chain are too rare for a sample of this size.
        let heavy_tail = backoff.jitter == Jitter::Decorrelated && row.on_one_instant < 0.01;
        let sd = ((squares / jobs - mean * mean).max(0.0) / jobs).sqrt();
        if !heavy_tail {
            let found = row.delay.mean.ms();
            prop_assert!((found - mean).abs() <= 7.0 * sd + 1e-5 * mean, "mean {} against sampled {}", found, mean);
        }
        let cut_after = backoff.cap.is_some_and(|cap| cap.place.after());
        if cut_after && row.delay.shortest < row.delay.longest && backoff.rounding == Rounding::Exact {
            let sd = (row.on_one_instant * (1.0 - row.on_one_instant) / jobs).sqrt();
            let found = row.on_one_instant;
            prop_assert!((found - share).abs() <= 7.0 * sd + 1e-5, "share {} against sampled {}", found, share);
        }
    }
}

#[test]
fn ojs_loses_half_of_its_jitter_at_the_cap() {
    let schedule = of(Dialect::Ojs, json!({ "max_attempts": 14 }));
    assert_eq!(schedule.rows.len(), 13);
    let first = schedule.rows[0];
    assert_eq!((first.delay.shortest, first.delay.mean, first.delay.longest), (ms(500.0), ms(1000.0), ms(1500.0)));
    assert_eq!((first.capped, first.on_one_instant), (false, 0.0));
    let last = schedule.rows[12];
    // E[min(300 s × U[0.5, 1.5), 300 s)] = 300 s × (½ × 0.75 + ½ × 1).
    assert_eq!(
        (last.delay.shortest, last.delay.mean, last.delay.longest),
        (ms(150_000.0), ms(262_500.0), ms(300_000.0))
    );
    assert_eq!((last.capped, last.on_one_instant), (true, 0.5));
}

#[test]
fn exosphere_equal_jitter_loses_all_of_it_from_twice_the_cap() {
    let policy = json!({ "strategy": "EXPONENTIAL_EQUAL_JITTER", "max_delay": 8000, "max_retries": 6 });
    let shares: Vec<f64> = of(Dialect::Exosphere, policy).rows.iter().map(|row| row.on_one_instant).collect();
    assert_eq!(shares, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let full = json!({ "strategy": "EXPONENTIAL_FULL_JITTER", "max_delay": 8000, "max_retries": 5 });
    let shares: Vec<f64> = of(Dialect::Exosphere, full).rows.iter().map(|row| row.on_one_instant).collect();
    assert_eq!(shares, [0.0, 0.0, 0.0, 0.5, 0.75]);
}

#[test]
fn a_cap_before_the_jitter_keeps_it_and_no_jitter_is_one_instant() {
    let schedule = of(Dialect::Azolla, json!({ "stop": { "max_attempts": 20 } }));
    let last = schedule.rows[18];
    assert_eq!((last.capped, last.on_one_instant, last.delay.mean), (true, 0.0, ms(150_000.0)));
    let schedule = of(Dialect::Ojs, json!({ "jitter": false }));
    assert!(schedule.rows.iter().all(|row| row.on_one_instant == 1.0));
}

#[test]
fn a_billion_attempts_are_added_up_without_walking_them() {
    let schedule = of(Dialect::Ojs, json!({ "max_attempts": 1_000_000_000, "max_interval": "PT1S" }));
    assert_eq!(schedule.retries, Some(999_999_999));
    let total = schedule.total.expect("limited");
    assert_eq!((total.shortest, total.longest), (ms(999_999_999.0 * 500.0), ms(999_999_999.0 * 1000.0)));
    assert!((total.mean.ms() / (999_999_999.0 * 875.0) - 1.0).abs() < 1e-12);
    assert!(schedule.complete);
}

#[test]
fn a_curve_that_rests_between_two_milliseconds_is_not_taken_for_steady() {
    let curve = Curve::Exponential { rate: 1.0001 };
    let backoff = Backoff { curve, rounding: Rounding::FloorMs, ..Backoff::fixed(ms(1.0)) };
    let schedule = schedule(&policy_of(backoff, AttemptLimit::AtMost(20_001), None), 0, 1);
    let by_hand: f64 = (1..=20_000).map(|n| backoff.delay(n, None, Draw::LOWEST).delay.ms()).sum();
    assert_eq!(schedule.total.expect("limited").mean, ms(by_hand));
}

#[test]
fn what_never_rests_is_cut_and_says_so() {
    let backoff = Backoff { curve: Curve::Linear, jitter: Jitter::FULL, ..Backoff::fixed(ms(0.001)) };
    let schedule = schedule(&policy_of(backoff, AttemptLimit::AtMost(1_000_000_000), None), 0, 2);
    assert!(!schedule.complete);
    let rows = f64::from(MOST_ROWS);
    let longest = schedule.total.expect("limited").longest.ms();
    assert!((longest / (0.001 * rows * (rows + 1.0) / 2.0) - 1.0).abs() < 1e-9, "{longest}");
}

#[test]
fn unlimited_policies_have_no_total_but_an_end_by_time() {
    let policy = json!({
        "stop": { "max_attempts": null, "max_delay": 2_592_000 }, "wait": { "strategy": "fixed", "delay": 1 },
    });
    let schedule = of(Dialect::Azolla, policy);
    assert_eq!((schedule.retries, schedule.total, schedule.complete), (None, None, true));
    let end = schedule.elapsed_limit.expect("a limit").mean.expect("an end");
    // Retry n would start at n seconds; the one that would start at the limit is refused.
    assert_eq!((end.retry, end.at), (2_592_000, ms(2_591_999_000.0)));
    let never = of(Dialect::Azolla, json!({ "stop": { "max_attempts": null, "max_delay": 60 } }));
    let ends = never.elapsed_limit.expect("a limit");
    assert_eq!(ends.shortest, None, "full jitter may wait for no time at all, for ever");
    assert!(ends.longest.is_some());
}

#[test]
fn edges_have_empty_schedules() {
    for policy in [json!({ "max_attempts": 0 }), json!({ "max_attempts": 1 })] {
        let schedule = of(Dialect::Ojs, policy);
        assert!(schedule.rows.is_empty() && schedule.total.is_some_and(|total| total.longest.is_zero()));
    }
    let other_rule = schedule(&read(Dialect::Ojs, json!({})), 7, 10);
    assert_eq!((other_rule.rows.len(), other_rule.retries), (0, Some(0)));
}

#[test]
fn each_rule_has_its_own_budget() {
    let policies = json!({ "policies": [
        { "match": { "codes": ["A.*"] }, "attempts": 3, "backoff": { "initial": "PT1S" } },
        { "match": { "codes": ["*"] }, "attempts": 9,
          "backoff": { "initial": "PT1S", "max": "PT20S", "jitter": "decorrelated" } },
    ] });
    let policy = read(Dialect::Mwl, policies);
    assert_eq!(schedule(&policy, 0, 50).rows.len(), 2);
    let second = schedule(&policy, 1, 50);
    assert_eq!(second.rows.len(), 8);
    assert_eq!(second.rows[7].delay.longest, ms(20_000.0));
    assert!(second.rows[7].on_one_instant > second.rows[2].on_one_instant);
}

#[test]
fn the_json_form_carries_units() {
    let json = serde_json::to_value(of(Dialect::Ojs, json!({}))).expect("serialises");
    assert_eq!(json["rows"][1]["delay"], json!({ "shortest_ms": 1000.0, "mean_ms": 2000.0, "longest_ms": 3000.0 }));
    assert_eq!(json["rows"][1]["since_start"]["mean_ms"], 3000.0);
    assert_eq!(json["total"]["longest_ms"], 4500.0);
    assert_eq!(json["retries"], 2);
}
