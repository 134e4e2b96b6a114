//! A policy as a layer around a real service.
#![cfg(feature = "tower")]
#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use redrive_policy::retry::TowerPolicy;
use redrive_policy::{Failure, Policy, PolicyBuilder, Seeded, Signal, Span};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

/// When the service was called, and with what.
type Calls = Arc<Mutex<Vec<(u128, String)>>>;

fn built(builder: PolicyBuilder) -> Arc<Policy> {
    Arc::new(builder.build().expect("a valid policy"))
}

fn doubling() -> PolicyBuilder {
    Policy::builder().exponential(Duration::from_millis(100), 2.0).no_jitter()
}

/// A service that answers 503 to the first calls, and 200 from then on.
fn flaky(
    refusals: usize,
) -> (Calls, impl Service<String, Response = u16, Error = String, Future: Send> + Clone + use<>) {
    let calls = Calls::default();
    let (log, start) = (Arc::clone(&calls), Instant::now());
    let service = service_fn(move |request: String| {
        let mut log = log.lock().expect("not poisoned");
        log.push((start.elapsed().as_millis(), request));
        let status = if log.len() > refusals { 200 } else { 503 };
        async move { Ok(status) }
    });
    (calls, service)
}

fn times_ms(calls: &Calls) -> Vec<u128> {
    calls.lock().expect("not poisoned").iter().map(|(at, _)| *at).collect()
}

fn refusals(result: &Result<u16, String>) -> Option<Failure<'_>> {
    match result {
        Ok(status) if *status < 500 => None,
        Ok(_) => Some(Failure::of_type("http.server_error")),
        Err(message) => Some(Failure::of_type(message)),
    }
}

async fn call<S>(service: &mut S, request: &str) -> Result<S::Response, S::Error>
where
    S: Service<String>,
{
    service.ready().await?.call(request.to_owned()).await
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_again_until_it_is_served() {
    let (calls, service) = flaky(2);
    let layer = TowerPolicy::new(built(doubling().max_attempts(5)), refusals).layer();
    let mut service = ServiceBuilder::new().layer(layer).service(service);
    assert_eq!(call(&mut service, "GET /").await, Ok(200));
    assert_eq!(times_ms(&calls), [0, 100, 300]);
    assert!(calls.lock().expect("not poisoned").iter().all(|(_, request)| request == "GET /"));
}

/// RET-01, for every request anew.
#[tokio::test(start_paused = true)]
async fn each_request_has_its_own_attempts() {
    let (calls, service) = flaky(usize::MAX);
    let layer = TowerPolicy::new(built(doubling().max_attempts(3)), refusals).layer();
    let mut service = ServiceBuilder::new().layer(layer).service(service);
    for done in 1..=3 {
        assert_eq!(call(&mut service, "GET /").await, Ok(503), "the last answer comes back");
        assert_eq!(times_ms(&calls).len(), 3 * done);
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_has_its_own_time() {
    let (calls, service) = flaky(usize::MAX);
    let policy = built(doubling().unlimited_attempts().max_elapsed(Duration::from_millis(500)));
    let mut service = ServiceBuilder::new().layer(TowerPolicy::new(policy, refusals).layer()).service(service);
    for _ in 0..2 {
        call(&mut service, "GET /").await.expect("an answer");
        tokio::time::sleep(Duration::from_millis(59_700)).await;
    }
    // Runs at 0, 100 and 300 ms; the next would be at 700 ms. The second request does the same.
    assert_eq!(times_ms(&calls), [0, 100, 300, 60_000, 60_100, 60_300]);
}

/// A requeue counts no attempt; the time goes on all the same.
#[tokio::test(start_paused = true)]
async fn time_goes_on_through_a_requeue() {
    let (calls, service) = flaky(usize::MAX);
    let policy = built(Policy::builder().fixed(Duration::from_secs(1)).max_elapsed(Duration::from_millis(3_500)));
    let seen = Arc::clone(&calls);
    let policy = TowerPolicy::new(policy, move |result: &Result<u16, String>| {
        let failure = refusals(result)?;
        let requeue = Signal::RequeueAfter(Span::from_secs(2));
        Some(if times_ms(&seen).len() == 1 { failure.with_signal(requeue) } else { failure })
    });
    let mut service = ServiceBuilder::new().layer(policy.layer()).service(service);
    assert_eq!(call(&mut service, "GET /").await, Ok(503));
    assert_eq!(times_ms(&calls), [0, 2_000, 3_000]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_copied_is_sent_once() {
    let (calls, service) = flaky(usize::MAX);
    let idempotent = |request: &String| request.starts_with("GET").then(|| request.clone());
    let policy = TowerPolicy::new(built(doubling().max_attempts(3)), refusals).clone_request(idempotent);
    let mut service = ServiceBuilder::new().layer(policy.layer()).service(service);
    assert_eq!(call(&mut service, "POST /").await, Ok(503));
    assert_eq!(times_ms(&calls), [0]);
    assert_eq!(call(&mut service, "GET /").await, Ok(503));
    assert_eq!(times_ms(&calls).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn errors_are_matched_by_the_rules() {
    let calls = Calls::default();
    let log = Arc::clone(&calls);
    let failing = service_fn(move |request: String| {
        log.lock().expect("not poisoned").push((0, request.clone()));
        async move { Err::<u16, _>(request) }
    });
    let layer = TowerPolicy::new(built(doubling().except_types(["auth.*"]).max_attempts(3)), refusals).layer();
    let mut service = ServiceBuilder::new().layer(layer).service(failing);
    assert_eq!(call(&mut service, "auth.expired").await, Err("auth.expired".to_owned()));
    assert_eq!(times_ms(&calls).len(), 1);
    assert_eq!(call(&mut service, "io.timeout").await, Err("io.timeout".to_owned()));
    assert_eq!(times_ms(&calls).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_do_not_share_a_history() {
    let (calls, service) = flaky(usize::MAX);
    let policy = TowerPolicy::new(built(Policy::builder().max_attempts(4)), refusals).entropy(Seeded::new(3));
    let mut service = ServiceBuilder::new().layer(policy.layer()).service(service);
    let first = service.ready().await.expect("ready").call("first".to_owned());
    let second = service.ready().await.expect("ready").call("second".to_owned());
    assert_eq!(tokio::join!(first, second), (Ok(503), Ok(503)));
    let calls = calls.lock().expect("not poisoned");
    for name in ["first", "second"] {
        assert_eq!(calls.iter().filter(|(_, request)| request == name).count(), 4, "{calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_sleeper_can_be_replaced() {
    let (calls, service) = flaky(2);
    let policy = TowerPolicy::new(built(doubling().max_attempts(5)), refusals)
        .sleeper(|wait: Duration| tokio::time::sleep(wait * 10));
    let mut service = ServiceBuilder::new().layer(policy.layer()).service(service);
    assert_eq!(call(&mut service, "GET /").await, Ok(200));
    assert_eq!(times_ms(&calls), [0, 1_000, 3_000]);
}
