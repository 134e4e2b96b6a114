//! Simulations: against the exact law where there is one, against a plain model where there is none.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, reason = "helpers of tests are tests too")]

mod model;

use redrive_policy::dialect::Dialect;
use redrive_policy::lab::simulate::{Arrival, LONGEST_HORIZON, MOST_BINS, MOST_JOBS, Outcome, Scenario};
use redrive_policy::lab::simulate::{simulate, simulate_on};
use redrive_policy::{Policy, Span};
use serde_json::{Value, json};
use std::num::NonZero;

fn read(dialect: Dialect, policy: Value) -> Policy {
    dialect.read(&policy).expect("a valid policy").policy
}

fn run(scenario: &Scenario, policy: &Policy) -> Outcome {
    simulate(scenario, policy, &|_| {}).expect("a valid scenario")
}

/// Within five standard deviations of a binomial count.
fn assert_binomial(found: u32, of: u32, probability: f64) {
    let (found, of) = (f64::from(found), f64::from(of));
    let sd = (of * probability * (1.0 - probability)).sqrt();
    assert!((found - of * probability).abs() <= 5.0 * sd, "{found} of {of}, expected a share of {probability}");
}

#[test]
fn without_jitter_the_whole_cohort_returns_at_one_instant() {
    let policy = read(Dialect::Ojs, json!({ "jitter": false, "max_attempts": 20 }));
    let outcome = run(&Scenario::default(), &policy);
    let busiest = outcome.busiest_instant.expect("retries");
    assert_eq!((busiest.share, busiest.retries), (1.0, 10_000));
    assert_eq!(busiest.at, Span::from_secs(1));
    assert_eq!(outcome.retry_peak.expect("retries").per_s, 10_000);
}

#[test]
fn at_the_cap_half_of_an_ojs_cohort_returns_at_one_instant() {
    let policy = read(Dialect::Ojs, json!({ "initial_interval": "PT1M", "max_interval": "PT1M" }));
    let scenario = Scenario { jobs: 100_000, outage: Span::from_secs(10), ..Scenario::default() };
    let busiest = run(&scenario, &policy).busiest_instant.expect("retries");
    // The other half is spread over 30 s, so that a few of them fall on the same millisecond.
    assert_binomial(busiest.retries, 100_000, 0.5 + 0.5 / 30_000.0);
    assert_eq!((busiest.at, busiest.width), (Span::from_secs(60), Span::from_millis(10)), "a day has 10 ms instants");
}

#[test]
fn far_above_the_cap_all_of_an_exosphere_cohort_returns_at_one_instant() {
    let policy = json!({ "strategy": "FIXED_EQUAL_JITTER", "backoff_factor": 60_000, "max_delay": 8_000 });
    let scenario = Scenario { outage: Span::from_secs(5), horizon: Span::from_secs(3600), ..Scenario::default() };
    let outcome = run(&scenario, &read(Dialect::Exosphere, policy));
    let busiest = outcome.busiest_instant.expect("retries");
    assert_eq!((busiest.share, busiest.at, busiest.width), (1.0, Span::from_secs(8), Span::from_millis(1)));
}

/// Full jitter spreads the first retries evenly: chi-squared over the seconds, and the seeds of
/// neighbouring jobs have nothing to do with each other.
#[test]
fn full_jitter_is_uniform_over_the_cohort() {
    let wait = json!({ "strategy": "exponential_jitter", "initial_delay": 100 });
    let policy = json!({ "wait": wait, "stop": { "max_attempts": 2 }, "retry": { "include_errors": ["error"] } });
    let scenario = Scenario { jobs: 200_000, outage: Span::from_secs(200), ..Scenario::default() };
    let series = run(&scenario, &read(Dialect::Azolla, policy)).series;
    assert_eq!((series.bin, series.retries.len()), (Span::from_secs(1), 100));
    let expected = 2_000.0;
    let chi_squared: f64 = series.retries.iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum();
    // 99 degrees of freedom: mean 99, standard deviation √198.
    assert!((chi_squared - 99.0).abs() < 5.0 * 198_f64.sqrt(), "{chi_squared}");
}

#[test]
fn attempts_that_fail_by_chance_use_up_the_limit_as_often_as_they_must() {
    let policy = read(Dialect::Ojs, json!({ "max_attempts": 3, "jitter": false }));
    let scenario = Scenario {
        jobs: 100_000,
        outage: Span::ZERO,
        failure_rate_after: 0.3,
        capacity_per_s: None,
        ..Scenario::default()
    };
    let outcome = run(&scenario, &policy);
    assert_binomial(outcome.given_up, 100_000, 0.3_f64.powi(3));
    assert_eq!(outcome.given_up, outcome.given_up_after_recovery);
    assert_eq!(outcome.waiting, 0);
    // 1 + 0.3 + 0.09 attempts per job.
    let second_runs = u32::try_from(outcome.series.retries[1]).expect("a count");
    assert_binomial(second_runs, 100_000, 0.3);
}

#[test]
fn nothing_runs_before_its_time_nor_past_its_limit() {
    let policy = read(Dialect::Ojs, json!({ "max_attempts": 6, "jitter": false }));
    let scenario = Scenario { jobs: 1_000, outage: Span::from_secs(3600), ..Scenario::default() };
    let outcome = run(&scenario, &policy);
    assert_eq!((outcome.attempts, outcome.given_up, outcome.given_up_after_recovery), (6_000, 1_000, 0));
    let busy: Vec<usize> = (0..outcome.series.retries.len()).filter(|k| outcome.series.retries[*k] > 0).collect();
    assert_eq!(busy, [1, 3, 7, 15, 31], "1 + 2 + 4 + 8 + 16 seconds, added up");
    assert_eq!((outcome.last_attempt, outcome.last_done), (Span::from_secs(31), None));

    let jittered = read(Dialect::Ojs, json!({ "max_attempts": 2, "initial_interval": "PT20S" }));
    let series = run(&scenario, &jittered).series;
    assert_eq!(series.retries[..10].iter().sum::<u64>(), 0, "the shortest delay is 10 s");
    assert_eq!(series.retries[10..30].iter().sum::<u64>(), 1_000);
}

#[test]
fn a_failure_that_no_rule_handles_ends_every_job_at_once() {
    let scenario = Scenario { failure_type: "auth.expired".to_owned(), ..Scenario::default() };
    let outcome = run(&scenario, &read(Dialect::Ojs, json!({ "non_retryable_errors": ["auth.*"] })));
    assert_eq!((outcome.attempts, outcome.given_up, outcome.retry_peak), (10_000, 10_000, None));
}

#[test]
fn the_rule_that_handles_the_failure_is_the_one_that_counts() {
    let policies = json!({ "policies": [
        { "match": { "codes": ["Other"] }, "attempts": 9 },
        { "match": { "codes": ["Net.*"], "retryable": true }, "attempts": 3, "backoff": { "initial": "PT7S" } },
    ] });
    let scenario = Scenario {
        failure_code: "Net.Down".to_owned(),
        failure_retryable: Some(true),
        outage: Span::from_secs(60),
        ..Scenario::default()
    };
    let outcome = run(&scenario, &read(Dialect::Mwl, policies));
    assert_eq!((outcome.attempts, outcome.given_up), (30_000, 10_000));
    assert_eq!(outcome.last_attempt, Span::from_secs(14));
}

#[test]
fn the_elapsed_limit_counts_from_a_job_s_own_arrival() {
    let policy = json!({
        "stop": { "max_attempts": null, "max_delay": 60 }, "wait": { "strategy": "fixed", "delay": 10 },
        "retry": { "include_errors": ["error"] },
    });
    let scenario =
        Scenario { jobs: 100, arrival: Arrival::PerSecond(1.0), outage: Span::from_secs(1_000), ..Scenario::default() };
    let outcome = run(&scenario, &read(Dialect::Azolla, policy));
    // Runs at 0, 10, 20, 30, 40 and 50 s of each job; the one at 60 s would start at the limit.
    assert_eq!((outcome.attempts, outcome.given_up), (600, 100));
    assert_eq!(outcome.last_attempt, Span::from_secs(99 + 50));
}

#[test]
fn the_same_seed_gives_the_same_outcome_on_any_number_of_threads() {
    let policy = read(Dialect::Ojs, json!({ "max_attempts": 12, "max_interval": "PT30S" }));
    for capacity_per_s in [None, Some(200)] {
        let scenario =
            Scenario { jobs: 17_001, capacity_per_s, failure_rate_after: 0.2, seed: 3, ..Scenario::default() };
        let on = |threads| simulate_on(NonZero::new(threads).expect("not zero"), &scenario, &policy, &|_| {});
        let one = on(1).expect("valid");
        for threads in [2, 3, 100] {
            assert_eq!(one, on(threads).expect("valid"), "{threads} threads");
        }
        assert_eq!(one, run(&scenario, &policy));
        assert_ne!(one, run(&Scenario { seed: 4, ..scenario.clone() }, &policy));
    }
}

#[test]
fn values_that_make_no_sense_are_refused_all_at_once() {
    let policy = read(Dialect::Ojs, json!({}));
    let scenario = Scenario {
        jobs: 0,
        arrival: Arrival::PerSecond(f64::NAN),
        capacity_per_s: Some(0),
        failure_rate_after: 1.5,
        horizon: Span::ZERO,
        ..Scenario::default()
    };
    let problems = simulate(&scenario, &policy, &|_| {}).expect_err("refused").0;
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["/jobs", "/arrival/per_second", "/capacity_per_s", "/failure_rate_after", "/horizon_ms"]);
    for scenario in [
        Scenario { jobs: MOST_JOBS + 1, ..Scenario::default() },
        Scenario { jobs: 10_000_000, ..Scenario::default() },
        Scenario { horizon: LONGEST_HORIZON.plus(Span::from_millis(1)), ..Scenario::default() },
        Scenario { arrival: Arrival::PerSecond(0.0), ..Scenario::default() },
        Scenario { arrival: Arrival::PerSecond(-1.0), ..Scenario::default() },
        Scenario { failure_rate_after: f64::NAN, ..Scenario::default() },
    ] {
        assert_eq!(simulate(&scenario, &policy, &|_| {}).expect_err("refused").0.len(), 1, "{scenario:?}");
    }
}

#[test]
fn without_an_outage_every_job_succeeds() {
    let scenario = Scenario { outage: Span::ZERO, ..Scenario::default() };
    let outcome = run(&scenario, &read(Dialect::Ojs, json!({})));
    assert_eq!((outcome.succeeded, outcome.attempts, outcome.wasted), (10_000, 10_000, 0));
    assert_eq!((outcome.last_done, outcome.busiest_instant), (Some(Span::ZERO), None));
}

#[test]
fn what_never_succeeds_and_never_gives_up_stops_at_the_horizon() {
    let policy = json!({
        "stop": { "max_attempts": null }, "wait": { "strategy": "fixed", "delay": 10 },
        "retry": { "include_errors": ["error"] },
    });
    let policy = read(Dialect::Azolla, policy);
    let base = Scenario { jobs: 500, failure_rate_after: 1.0, horizon: Span::from_secs(3600), ..Scenario::default() };
    for capacity_per_s in [None, Some(100)] {
        let outcome = run(&Scenario { capacity_per_s, ..base.clone() }, &policy);
        assert_eq!((outcome.waiting, outcome.cut_short), (500, 0));
        assert_eq!(outcome.attempts, 500 * 360, "at 0, 10, … 3590 s");
        assert_eq!(outcome.wasted, outcome.attempts);
    }
}

#[test]
fn a_policy_that_comes_back_at_once_for_ever_is_cut_short() {
    let policies = json!({ "policies": [{ "match": { "codes": ["*"] }, "attempts": 4_000_000_000_u32 }] });
    let policy = read(Dialect::Mwl, policies);
    let base = Scenario { horizon: Span::from_secs(600), ..Scenario::default() };
    let during = run(&Scenario { jobs: 1, ..base.clone() }, &policy);
    assert_eq!((during.succeeded, during.cut_short, during.waiting), (0, 1, 1));
    // Two jobs at once and room for one of them: the other comes back within the same second.
    let after = run(&Scenario { jobs: 2, outage: Span::ZERO, capacity_per_s: Some(1), ..base }, &policy);
    assert_eq!((after.succeeded, after.cut_short, after.waiting), (1, 1, 1));
    assert_eq!(after.overloaded, after.wasted);
}

#[test]
fn jobs_that_arrive_after_the_horizon_are_waiting() {
    let scenario = Scenario {
        jobs: 100,
        arrival: Arrival::PerSecond(1.0),
        outage: Span::ZERO,
        horizon: Span::from_secs(40),
        ..Scenario::default()
    };
    let outcome = run(&scenario, &read(Dialect::Ojs, json!({})));
    assert_eq!((outcome.succeeded, outcome.waiting, outcome.attempts), (40, 60, 40));
    assert_eq!(outcome.series.first_runs, vec![1; 40]);
}

#[test]
fn a_long_simulation_has_few_bins_and_says_how_wide() {
    let policy = read(Dialect::Ojs, json!({ "max_attempts": 3000, "max_interval": "PT1H" }));
    let day = 86_400;
    let scenario =
        Scenario { jobs: 20, outage: Span::from_secs(80 * day), horizon: LONGEST_HORIZON, ..Scenario::default() };
    let outcome = run(&scenario, &policy);
    let bins = outcome.series.retries.len();
    assert!((300..=MOST_BINS).contains(&bins), "{bins}");
    assert_eq!(outcome.series.bin, Span::from_secs(6 * 3600));
    assert_eq!(outcome.busiest_instant.expect("retries").width, Span::from_secs(1));
    assert_eq!(outcome.succeeded, 20);
}

#[test]
fn progress_ends_with_all_of_it() {
    use std::sync::Mutex;
    let seen = Mutex::new(Vec::new());
    let scenario = Scenario { capacity_per_s: Some(2_000), ..Scenario::default() };
    let policy = read(Dialect::Ojs, json!({ "max_attempts": 20 }));
    simulate(&scenario, &policy, &|done| seen.lock().expect("no panic").push(done)).expect("valid");
    let seen = seen.into_inner().expect("no panic");
    assert!(seen.iter().all(|done| (0.0..=1.0).contains(done)), "{seen:?}");
    assert_eq!(seen.last(), Some(&1.0));
}

#[test]
fn the_json_form_carries_units_and_a_scenario_reads_back() {
    let scenario = Scenario { arrival: Arrival::PerSecond(50.0), capacity_per_s: Some(100), ..Scenario::default() };
    let json = serde_json::to_value(&scenario).expect("serialises");
    assert_eq!((&json["outage_ms"], &json["arrival"]), (&json!(300_000.0), &json!({ "per_second": 50.0 })));
    assert_eq!(serde_json::from_value::<Scenario>(json).expect("reads back"), scenario);
    let outcome = run(&scenario, &read(Dialect::Ojs, json!({ "max_attempts": 20 })));
    let json = serde_json::to_value(&outcome).expect("serialises");
    for pointer in ["/busiest_instant/share", "/peak/at_ms", "/last_done_ms", "/series/bin_ms", "/series/peak_per_s/0"]
    {
        assert!(json.pointer(pointer).is_some_and(Value::is_number), "{pointer}: {json}");
    }
}
