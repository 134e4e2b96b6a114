//! §2 to §5: fields, strategies, durations, jitter.

use super::common::{assert_field_accepts, assert_field_refuses, assert_same, assert_story, delays, largest_draw, set};
use super::{OJS, first_delays, runs, story_of, timeout};
use redrive_policy::dialect::iso_duration;
use serde_json::{Value, json};

fn strategy(name: &str, initial: &str, coefficient: f64) -> Value {
    json!({"backoff_strategy": name, "initial_interval": initial, "backoff_coefficient": coefficient, "jitter": false})
}

#[test]
fn ojs_2_1_every_default_of_the_table() {
    for (field, default) in [
        ("/max_attempts", json!(3)),
        ("/initial_interval", json!("PT1S")),
        ("/backoff_coefficient", json!(2.0)),
        ("/max_interval", json!("PT5M")),
        ("/jitter", json!(true)),
        ("/non_retryable_errors", json!([])),
        ("/on_exhaustion", json!("discard")),
    ] {
        assert_same(OJS, &json!({}), &set(&json!({}), field, default));
    }
}

#[test]
fn ojs_2_2_max_attempts_table() {
    for (max_attempts, expected_runs) in [(0, 1), (1, 1), (3, 3), (25, 25)] {
        assert_eq!(runs(&json!({"max_attempts": max_attempts})), expected_runs, "max_attempts {max_attempts}");
    }
}

#[test]
fn ojs_2_2_initial_interval_is_the_delay_before_attempt_2() {
    for (text, ms) in [("PT0.25S", 250.0), ("PT10S", 10_000.0), ("PT2M", 120_000.0)] {
        assert_eq!(first_delays(&json!({"initial_interval": text, "jitter": false}), 1), [ms]);
    }
}

#[test]
fn ojs_2_2_backoff_coefficient_is_read_by_exponential_and_polynomial_only() {
    for name in ["none", "linear"] {
        let delays = |coefficient| first_delays(&strategy(name, "PT1S", coefficient), 6);
        assert_eq!(delays(1.0), delays(7.5), "{name}");
    }
    for name in ["exponential", "polynomial"] {
        let delays = |coefficient| first_delays(&strategy(name, "PT1S", coefficient), 6);
        assert_ne!(delays(1.0), delays(1.5), "{name}");
    }
}

#[test]
fn ojs_2_2_backoff_coefficient_of_1_is_constant_and_below_1_is_refused() {
    let one = first_delays(&json!({"backoff_coefficient": 1.0, "jitter": false}), 9);
    assert_eq!(one, first_delays(&strategy("none", "PT1S", 1.0), 9));
    assert_field_refuses(OJS, "/backoff_coefficient", &[json!(0.999_999), json!(0), json!(-2)]);
    assert_field_accepts(OJS, "/backoff_coefficient", &[json!(1), json!(1.0), json!(1e300)]);
}

#[test]
fn ojs_2_2_max_interval_caps_the_delay_between_two_attempts() {
    let policy = json!({"max_interval": "PT3S", "jitter": false});
    assert_eq!(first_delays(&policy, 5), [1000.0, 2000.0, 3000.0, 3000.0, 3000.0]);
}

#[test]
fn ojs_2_2_jitter_false_uses_the_delay_exactly_as_calculated() {
    let policy = json!({"jitter": false, "max_attempts": 9});
    let of = |draw| delays(OJS, &policy, timeout(), 8, draw);
    assert_eq!(of(0.0), of(largest_draw()));
    assert_ne!(
        delays(OJS, &json!({}), timeout(), 2, 0.0),
        delays(OJS, &json!({}), timeout(), 2, 0.9),
        "jitter true adds randomness"
    );
}

#[test]
fn ojs_2_2_on_exhaustion_table() {
    for disposition in ["discard", "dead_letter"] {
        let policy = json!({"on_exhaustion": disposition, "non_retryable_errors": ["auth.denied"], "jitter": false});
        let exhausted = format!("max_attempts {disposition}");
        let non_retryable = format!("non_retryable {disposition}");
        assert_eq!(story_of(&policy, 5), ["1000", "2000", &exhausted]);
        assert_story(OJS, &policy, &[json!({"type": "auth.denied"})], &[&non_retryable]);
    }
}

#[test]
fn ojs_3_the_default_strategy_is_exponential() {
    assert_same(OJS, &json!({}), &json!({"backoff_strategy": "exponential"}));
}

#[test]
fn ojs_3_1_none_table() {
    assert_eq!(first_delays(&strategy("none", "PT5S", 2.0), 4), [5000.0; 4]);
}

#[test]
fn ojs_3_2_linear_table() {
    assert_eq!(first_delays(&strategy("linear", "PT5S", 2.0), 4), [5000.0, 10_000.0, 15_000.0, 20_000.0]);
}

#[test]
fn ojs_3_3_exponential_table() {
    let seconds = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0];
    assert_eq!(first_delays(&strategy("exponential", "PT1S", 2.0), 10), seconds.map(|s| s * 1000.0));
}

#[test]
fn ojs_3_4_polynomial_table() {
    let seconds = [1.0, 16.0, 81.0, 256.0, 300.0];
    assert_eq!(first_delays(&strategy("polynomial", "PT1S", 4.0), 5), seconds.map(|s| s * 1000.0));
}

#[test]
fn ojs_3_5_the_cap_holds_for_every_strategy() {
    for name in ["none", "linear", "exponential", "polynomial"] {
        let policy = set(&strategy(name, "PT2S", 3.0), "/max_interval", json!("PT5S"));
        let delays = first_delays(&policy, 40);
        assert!(delays.iter().all(|ms| *ms <= 5000.0), "{name}: {delays:?}");
        let last = if name == "none" { 2000.0 } else { 5000.0 };
        assert_eq!(delays[39], last, "{name}");
    }
}

#[test]
fn ojs_3_5_the_cap_is_applied_before_jitter() {
    // Raw 1024 s, cap 8 s. Jitter over the raw delay would never fall below the cap.
    let policy = json!({"max_attempts": 12, "max_interval": "PT8S"});
    assert_eq!(delays(OJS, &policy, timeout(), 11, 0.0)[10], 4000.0);
    assert_eq!(delays(OJS, &policy, timeout(), 11, 0.25)[10], 6000.0);
}

#[test]
fn ojs_4_1_duration_table() {
    for (text, ms) in [
        ("PT0.5S", 500.0),
        ("PT1S", 1_000.0),
        ("PT5S", 5_000.0),
        ("PT30S", 30_000.0),
        ("PT1M", 60_000.0),
        ("PT5M", 300_000.0),
        ("PT15M", 900_000.0),
        ("PT1H", 3_600_000.0),
        ("PT24H", 86_400_000.0),
    ] {
        let policy = json!({"initial_interval": text, "max_interval": "P2D", "jitter": false});
        assert_eq!(first_delays(&policy, 1), [ms], "{text}");
    }
}

#[test]
fn ojs_4_2_hours_minutes_seconds_fractions_and_date_components() {
    const DAY: f64 = 86_400_000.0;
    for (text, ms) in [
        ("PT1H2M3S", 3_723_000.0),
        ("PT1H3S", 3_603_000.0),
        ("PT0.001S", 1.0),
        ("PT1.005S", 1005.0),
        ("PT90M", 5_400_000.0),
        ("PT0001S", 1000.0),
        ("P1D", DAY),
        ("P1DT1S", DAY + 1000.0),
        ("P2M", 60.0 * DAY),
        ("P1Y", 365.0 * DAY),
        ("P1Y1D", 366.0 * DAY),
    ] {
        assert_eq!(iso_duration(text).map(|parsed| parsed.span.ms()), Some(ms), "{text}");
    }
}

#[test]
fn ojs_4_2_what_is_not_iso_8601_is_refused() {
    let texts = ["", "P", "PT", "5m", "1", "PT5", "P5", "5S", "PT1H2", "P1DT", "PTS", "P-1D", "PT1e3S", "PT0x1S"];
    let values: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
    assert_field_refuses(OJS, "/initial_interval", &values);
    assert_field_refuses(OJS, "/max_interval", &values);
}

#[test]
fn ojs_5_1_the_jitter_factor_runs_from_a_half_to_one_and_a_half() {
    let policy = json!({"initial_interval": "PT8S"});
    for (draw, ms) in [(0.0, 4000.0), (0.25, 6000.0), (0.5, 8000.0), (0.75, 10_000.0), (1.0, 12_000.0)] {
        assert_eq!(delays(OJS, &policy, timeout(), 1, draw), [ms], "draw {draw}");
    }
}

#[test]
fn ojs_5_2_jitter_bounds() {
    for seconds in [1.0, 7.0, 60.0, 199.0] {
        let d = seconds * 1000.0;
        let policy = json!({"initial_interval": format!("PT{seconds}S")});
        let of = |draw| delays(OJS, &policy, timeout(), 1, draw)[0];
        assert_eq!(of(0.0), 0.5 * d, "minimum");
        assert!(of(largest_draw()) < 1.5 * d, "the maximum is exclusive");
        assert!(of(largest_draw()) > 1.4999 * d, "and approached");
        assert_eq!(f64::midpoint(of(0.125), of(0.875)), d, "the mean is D");
    }
}

#[test]
fn ojs_5_3_jitter_table() {
    let policy = json!({"initial_interval": "PT10S", "backoff_coefficient": 2.0, "jitter": true, "max_attempts": 8});
    let ranges = ["5000..15000", "10000..30000", "20000..60000", "40000..120000", "80000..240000", "150000..300000"];
    assert_eq!(story_of(&policy, 6), ranges);
}

#[test]
fn ojs_5_3_the_cap_is_applied_again_after_jitter() {
    let policy = json!({"initial_interval": "PT8S", "max_interval": "PT8S"});
    for (draw, ms) in [(0.0, 4000.0), (0.25, 6000.0), (0.5, 8000.0), (0.75, 8000.0), (largest_draw(), 8000.0)] {
        assert_eq!(delays(OJS, &policy, timeout(), 1, draw), [ms], "draw {draw}");
    }
}

/// Appendix A with numbers that stand in none of the tables.
#[test]
fn ojs_appendix_a_formulas() {
    let formula = |name: &str, n: f64| match name {
        "none" => 3.0,
        "linear" => 3.0 * n,
        "exponential" => 3.0 * 1.5_f64.powf(n - 1.0),
        _ => 3.0 * n.powf(1.5),
    };
    for name in ["none", "linear", "exponential", "polynomial"] {
        let delays = first_delays(&set(&strategy(name, "PT3S", 1.5), "/max_interval", json!("PT1M")), 20);
        for (n, ms) in (1..).zip(delays) {
            let expected = formula(name, f64::from(n)).min(60.0) * 1000.0;
            assert!((ms - expected).abs() <= expected * 1e-12, "{name}, retry {n}: {ms}, not {expected}");
        }
    }
}
