//! RET-03 to RET-06: coefficient, cap and jitter.

use crate::common::{Even, Harness, Parts, START, ms};
use serde_json::{Value, json};
use std::sync::Arc;

/// The delays of a job that fails again and again.
async fn delays(policy: Value, count: usize) -> Vec<f64> {
    let harness = Harness::new();
    let id = harness.enqueue(policy).await;
    harness.fetch().await.unwrap();
    let mut delays = Vec::new();
    loop {
        let reply = harness.fail(&id).await;
        delays.push(ms(&reply["retry_delay_ms"]));
        if delays.len() == count {
            return delays;
        }
        harness.run_again(&reply).await;
    }
}

#[tokio::test]
async fn ret_03_a_coefficient_below_one_is_refused() {
    let harness = Harness::new();
    for bad in [json!(0.999), json!(0), json!(-1), json!("2"), json!(null), json!(true)] {
        let body = json!({ "type": "a.b", "args": [], "options": { "retry": { "backoff_coefficient": bad } } });
        let error = harness.post("/jobs", body).await.expect(422)["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("backoff_coefficient"), "{error}");
    }
    let not_a_number = r#"{"type":"a.b","args":[],"options":{"retry":{"backoff_coefficient":NaN}}}"#;
    let error = harness.call_text("POST", "/ojs/v1/jobs", not_a_number).await.expect(400);
    assert_eq!(error["error"]["code"], "invalid_payload");
    let constant = json!({ "max_attempts": 9, "backoff_coefficient": 1.0, "jitter": false });
    assert_eq!(delays(constant, 3).await, [1_000.0; 3]);
}

#[tokio::test]
async fn ret_04_every_strategy_is_capped() {
    let policy = |strategy: &str, coefficient: f64, cap: &str| {
        json!({
            "max_attempts": 1_000, "backoff_strategy": strategy, "backoff_coefficient": coefficient,
            "initial_interval": "PT1S", "max_interval": cap, "jitter": false,
        })
    };
    assert_eq!(delays(policy("linear", 1.0, "PT3S"), 5).await, [1e3, 2e3, 3e3, 3e3, 3e3]);
    assert_eq!(delays(policy("polynomial", 2.0, "PT10S"), 5).await, [1e3, 4e3, 9e3, 10e3, 10e3]);
    assert_eq!(delays(policy("none", 2.0, "PT10S"), 3).await, [1e3; 3]);
    let default_cap = delays(json!({ "max_attempts": 99, "jitter": false }), 11).await;
    assert_eq!(default_cap[8..], [256_000.0, 300_000.0, 300_000.0], "PT5M by default");
    let far = delays(policy("exponential", 10.0, "PT5M"), 400).await;
    assert_eq!(far[399], 300_000.0, "10 to the power of 399 saturates at the cap");
}

#[tokio::test]
async fn ret_05_jitter_is_uniform_from_half_to_one_and_a_half() {
    const COUNT: usize = 2_000;
    let harness = Harness::with(Parts { randomness: Arc::new(Even::default()), ..Parts::default() });
    let mut delays = Vec::new();
    for _ in 0..COUNT {
        let id = harness.enqueue(json!({ "initial_interval": "PT1000S", "max_interval": "PT2000S" })).await;
        harness.fetch().await.unwrap();
        delays.push(ms(&harness.fail(&id).await["retry_delay_ms"]) / 1e6);
    }
    delays.sort_by(f64::total_cmp);
    assert!(delays[0] >= 0.5 && delays[COUNT - 1] < 1.5, "{} to {}", delays[0], delays[COUNT - 1]);
    let mean = delays.iter().sum::<f64>() / COUNT as f64;
    assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
    // Kolmogorov's distance from the uniform distribution, far below what 2,000 random draws would
    // show: a bias of 2.5 % moves it to 0.025.
    let distance = delays.iter().enumerate().map(|(rank, delay)| (delay - 0.5 - rank as f64 / COUNT as f64).abs());
    assert!(distance.fold(0.0, f64::max) < 0.02);
    delays.dedup();
    assert_eq!(delays.len(), COUNT, "no two alike");
}

#[tokio::test]
async fn ret_05_the_wait_is_the_delay_that_was_reported() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "initial_interval": "PT10S" })).await;
    harness.fetch().await.unwrap();
    let reply = harness.fail(&id).await;
    let delay = ms(&reply["retry_delay_ms"]);
    harness.advance_ms(delay - 1.0).await;
    assert_eq!(harness.fetch().await, None);
    harness.advance_ms(2.0).await;
    let job = harness.fetch().await.unwrap();
    assert_eq!(job["retry_delay_ms"], reply["retry_delay_ms"], "the wait that has just ended");
    let waited_ms = (harness.now().micros() - START) as f64 / 1e3;
    assert!((waited_ms - delay).abs() <= 1.5, "{waited_ms} and {delay}");
}

#[tokio::test]
async fn ret_06_the_cap_holds_after_jitter() {
    let harness = Harness::with(Parts { randomness: Arc::new(Even::default()), ..Parts::default() });
    let mut at_the_cap = 0;
    for _ in 0..1_000 {
        let id = harness.enqueue(json!({ "initial_interval": "PT60S", "max_interval": "PT60S" })).await;
        harness.fetch().await.unwrap();
        let delay = ms(&harness.fail(&id).await["retry_delay_ms"]);
        assert!((30_000.0..=60_000.0).contains(&delay), "{delay}");
        at_the_cap += usize::from(delay == 60_000.0);
    }
    assert!((450..=550).contains(&at_the_cap), "half of the draws land on the cap, found {at_the_cap}");
}
