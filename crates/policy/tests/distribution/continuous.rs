//! The laws of the continuous modes: OJS, Azolla, TaskHarbor, MWL and the added jitter.

use super::sample;
use super::statistics::Distribution;
use redrive_policy::Policy;
use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

fn read(dialect: Dialect, document: &Value) -> Policy {
    dialect.read(document).expect("a valid policy").policy
}

fn mwl(backoff: &Value) -> Policy {
    read(Dialect::Mwl, &json!({"policies": [{"match": {"codes": ["*"]}, "attempts": 99, "backoff": backoff}]}))
}

#[test]
fn none_is_a_point_mass_in_every_dialect() {
    let azolla = json!({"wait": {"strategy": "exponential"}, "retry": {"include_errors": ["error"]}});
    for (policy, ms) in [
        (read(Dialect::Ojs, &json!({"jitter": false})), 2000.0),
        (read(Dialect::Azolla, &azolla), 2000.0),
        (read(Dialect::TaskHarbor, &json!({"policy": {"jitter": 0}})), 400.0),
        (read(Dialect::Exosphere, &json!({"strategy": "LINEAR"})), 4000.0),
        (mwl(&json!({"initial": "PT1S", "rate": 2})), 2000.0),
    ] {
        assert!(sample(&policy, 2, 1).iter().all(|delay| *delay == ms), "{policy:?}");
    }
}

#[test]
fn ojs_below_the_cap_is_uniform_from_a_half_to_one_and_a_half() {
    let policy = read(Dialect::Ojs, &json!({"initial_interval": "PT10S", "max_attempts": 9}));
    for (retry, d) in [(1, 10_000.0), (2, 20_000.0), (5, 160_000.0)] {
        let distribution = Distribution::uniform(0.5 * d, 1.5 * d);
        distribution.assert_fits(&format!("retry {retry}"), &sample(&policy, retry, 11));
    }
}

#[test]
fn ojs_at_the_cap_is_half_uniform_and_half_the_cap() {
    let policy = read(Dialect::Ojs, &json!({"max_interval": "PT4S", "max_attempts": 99}));
    for retry in [3, 9] {
        let distribution = Distribution::uniform(2000.0, 6000.0).capped(4000.0);
        distribution.assert_fits(&format!("retry {retry}"), &sample(&policy, retry, 12));
    }
}

#[test]
fn ojs_just_below_the_cap_piles_up_what_lies_above_it() {
    let policy = read(Dialect::Ojs, &json!({"initial_interval": "PT4S", "max_interval": "PT5S"}));
    Distribution::uniform(2000.0, 6000.0).capped(5000.0).assert_fits("a quarter at the cap", &sample(&policy, 1, 13));
}

#[test]
fn azolla_is_uniform_from_nothing_to_the_capped_delay() {
    let document =
        json!({"stop": {"max_attempts": null}, "wait": {"max_delay": 5}, "retry": {"include_errors": ["error"]}});
    let policy = read(Dialect::Azolla, &document);
    for (retry, d) in [(1, 1000.0), (3, 4000.0), (4, 5000.0), (12, 5000.0)] {
        Distribution::uniform(0.0, d).assert_fits(&format!("retry {retry}"), &sample(&policy, retry, 21));
    }
}

#[test]
fn taskharbor_below_the_cap_is_uniform_give_or_take_a_fifth() {
    let policy = read(Dialect::TaskHarbor, &json!({}));
    for (retry, d) in [(1, 200.0), (4, 1600.0)] {
        Distribution::uniform(0.8 * d, 1.2 * d).assert_fits(&format!("retry {retry}"), &sample(&policy, retry, 31));
    }
}

#[test]
fn taskharbor_at_the_cap_is_half_uniform_and_half_the_cap() {
    let policy = read(Dialect::TaskHarbor, &json!({}));
    Distribution::uniform(4000.0, 6000.0).capped(5000.0).assert_fits("retry 8", &sample(&policy, 8, 32));
}

#[test]
fn mwl_full_is_uniform_from_nothing_to_the_capped_delay() {
    let policy = mwl(&json!({"initial": "PT2S", "rate": 3, "max": "PT10S", "jitter": "full"}));
    for (retry, d) in [(1, 2000.0), (2, 6000.0), (3, 10_000.0)] {
        Distribution::uniform(0.0, d).assert_fits(&format!("retry {retry}"), &sample(&policy, retry, 41));
    }
}

#[test]
fn mwl_equal_is_uniform_over_the_upper_half_of_the_capped_delay() {
    let policy = mwl(&json!({"initial": "PT2S", "rate": 3, "max": "PT10S", "jitter": "equal"}));
    for (retry, d) in [(1, 2000.0), (2, 6000.0), (3, 10_000.0)] {
        Distribution::uniform(0.5 * d, d).assert_fits(&format!("retry {retry}"), &sample(&policy, retry, 42));
    }
}

#[test]
fn mwl_decorrelated_retry_1_is_uniform_from_initial_to_three_times_initial() {
    let policy = mwl(&json!({"initial": "PT2S", "jitter": "decorrelated"}));
    Distribution::uniform(2000.0, 6000.0).assert_fits("uncapped", &sample(&policy, 1, 43));
    let policy = mwl(&json!({"initial": "PT2S", "max": "PT4S", "jitter": "decorrelated"}));
    Distribution::uniform(2000.0, 6000.0).capped(4000.0).assert_fits("capped", &sample(&policy, 1, 44));
}

/// With the initial delay as the unit, X₁ is uniform on [1, 3] and X₂, given X₁, on [1, 3 X₁]:
///
/// F(x) = E min(1, (x - 1) / (3 X₁ - 1)) = ½ ∫₁³ min(1, (x - 1) / (3t - 1)) dt
///
/// Up to x = 3 the fraction never reaches 1, and F(x) = (x - 1) ln 4 / 6. From there it does for
/// t below x / 3, and F(x) = ½ (x/3 - 1 + (x - 1)/3 · ln(8 / (x - 1))), which is 1 at x = 9.
fn second_decorrelated(initial_ms: f64) -> Distribution {
    Distribution::new(move |ms| {
        let x = (ms / initial_ms).clamp(1.0, 9.0);
        if x <= 3.0 {
            (x - 1.0) * 4_f64.ln() / 6.0
        } else {
            0.5 * (x / 3.0 - 1.0 + (x - 1.0) / 3.0 * (8.0 / (x - 1.0)).ln())
        }
    })
}

#[test]
fn mwl_decorrelated_retry_2_is_the_mixture_over_retry_1() {
    let policy = mwl(&json!({"initial": "PT2S", "jitter": "decorrelated"}));
    second_decorrelated(2000.0).assert_fits("uncapped", &sample(&policy, 2, 45));
    // A cap that retry 1 cannot reach leaves the mixture as it is and cuts its tail.
    let policy = mwl(&json!({"initial": "PT2S", "max": "PT8S", "jitter": "decorrelated"}));
    second_decorrelated(2000.0).capped(8000.0).assert_fits("capped", &sample(&policy, 2, 46));
}

#[test]
fn mwl_decorrelated_retry_2_does_not_fit_the_distribution_of_retry_1() {
    let policy = mwl(&json!({"initial": "PT2S", "jitter": "decorrelated"}));
    let second = sample(&policy, 2, 47);
    assert!(Distribution::uniform(2000.0, 6000.0).fits(&second).is_err());
    assert!(
        Distribution::uniform(2000.0, 18_000.0).fits(&second).is_err(),
        "uniform over the same range is another law"
    );
}

/// Sidekiq: the fourth power of the retries before, 15 seconds, and up to ten seconds for each run.
#[test]
fn added_is_uniform_above_the_delay_and_widens_with_each_retry() {
    let document = json!({
        "rules": [{"backoff": {
            "initial_ms": 1000, "offset_ms": 15000, "curve": {"kind": "polynomial", "exponent": 4, "first": 0},
            "jitter": {"kind": "added", "step_ms": 10000}
        }}],
        "attempts": {"at_most": 26}, "on_stop": "dead_letter", "unmatched": "non_retryable"
    });
    let policy: Policy = serde_json::from_value(document).expect("a canonical policy");
    for (retry, low, width) in [(1, 15_000.0, 10_000.0), (3, 31_000.0, 30_000.0), (4, 96_000.0, 40_000.0)] {
        Distribution::uniform(low, low + width).assert_fits(&format!("retry {retry}"), &sample(&policy, retry, 51));
    }
}
