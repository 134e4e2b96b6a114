//! Retry policies over the wire: what the document says, where the original does otherwise.

use crate::common::{Harness, Parts, ms};
use crate::world::{Shepherd, World, fixed, task};
use redrive_azolla::common::any_value::Value;
use redrive_azolla::common::retry_policy_wait::Kind;
use redrive_azolla::common::{
    RetryPolicy, RetryPolicyExponentialJitterWait, RetryPolicyExponentialWait, RetryPolicyRetry, RetryPolicyStop,
    RetryPolicyWait,
};
use redrive_azolla::orchestrator::CreateTaskRequest;
use redrive_server::AzollaSettings;
use serde_json::Value as Json;

/// Fails a task as often as its policy retries it; the delays in milliseconds, and why it stopped.
async fn failures(
    world: &World,
    shepherd: &mut Shepherd,
    policy: Option<RetryPolicy>,
    types: &[&str],
) -> (Vec<f64>, String) {
    let id = world.create(policy).await;
    let mut delays = Vec::new();
    for type_name in types.iter().cycle() {
        assert_eq!(shepherd.task().await.task_id, id);
        shepherd.fail(&id, type_name).await;
        let job = settled(&world.harness, &id, delays.len() + 1).await;
        if job["state"] == "discarded" {
            let last = &job["redrive"]["failures"][delays.len()]["verdict"];
            return (delays, last["reason"]["name"].as_str().unwrap().to_owned());
        }
        let delay = ms(&job["redrive"]["failures"][delays.len()]["verdict"]["delay_ms"]);
        delays.push(delay);
        world.harness.advance_ms(delay + 1.0).await;
    }
    unreachable!("the types go round for ever")
}

/// A job once so many of its attempts have failed.
async fn settled(harness: &Harness, id: &str, failures: usize) -> Json {
    let mut events = harness.engine.watch_events();
    loop {
        let job = harness.job(id).await;
        if job["errors"].as_array().is_some_and(|errors| errors.len() == failures) {
            return job;
        }
        events.changed().await.unwrap();
    }
}

fn with_wait(kind: Kind) -> Option<RetryPolicy> {
    Some(RetryPolicy { wait: Some(RetryPolicyWait { kind: Some(kind) }), ..fixed(0.0, Some(5), &["E"]) })
}

#[tokio::test]
async fn section_3_each_strategy_waits_as_the_document_says() {
    let world = World::new().await;
    let mut shepherd = world.shepherd(1).await;
    let (delays, why) = failures(&world, &mut shepherd, Some(fixed(1.5, Some(3), &["E"])), &["E"]).await;
    assert_eq!((delays, &*why), (vec![1_500.0; 2], "max_attempts"));
    let growing = RetryPolicyExponentialWait { initial_delay: 0.5, multiplier: 2.0, max_delay: 3.0 };
    let (delays, _) = failures(&world, &mut shepherd, with_wait(Kind::Exponential(growing)), &["E"]).await;
    assert_eq!(delays, [500.0, 1_000.0, 2_000.0, 3_000.0], "the first wait is initial_delay, and the last is capped");
    let jittered = RetryPolicyExponentialJitterWait { initial_delay: 0.5, multiplier: 2.0, max_delay: 3.0 };
    let (delays, _) = failures(&world, &mut shepherd, with_wait(Kind::ExponentialJitter(jittered)), &["E"]).await;
    let bounds = [500.0, 1_000.0, 2_000.0, 3_000.0];
    assert_eq!(delays.len(), 4);
    assert!(delays.iter().zip(bounds).all(|(delay, most)| (0.0..=most).contains(delay)), "{delays:?}");
}

#[tokio::test]
async fn sections_2_and_4_defaults_and_presence() {
    let world = World::new().await;
    let mut shepherd = world.shepherd(1).await;
    let (delays, why) = failures(&world, &mut shepherd, None, &["ValueError"]).await;
    assert_eq!((delays.len(), &*why), (4, "max_attempts"), "five attempts");
    let (delays, why) = failures(&world, &mut shepherd, None, &["KeyError"]).await;
    assert_eq!((delays.len(), &*why), (0, "non_retryable"), "ValueError alone is retried");
    let empty = Some(RetryPolicy { retry: Some(RetryPolicyRetry::default()), ..RetryPolicy::default() });
    let (delays, why) = failures(&world, &mut shepherd, empty, &["ValueError"]).await;
    assert_eq!((delays.len(), &*why), (0, "non_retryable"), "lists that are present and empty retry nothing");
    let stop = RetryPolicyStop { max_attempts: None, max_delay: Some(5.0) };
    let timed = Some(RetryPolicy { stop: Some(stop), ..fixed(1.0, None, &["E"]) });
    let (delays, why) = failures(&world, &mut shepherd, timed, &["E"]).await;
    assert_eq!((delays.len(), &*why), (4, "max_elapsed"), "no attempt would start at 5 s or later");
}

#[tokio::test]
async fn section_6_both_lists_by_exact_types_and_exclude_wins() {
    let world = World::new().await;
    let mut shepherd = world.shepherd(1).await;
    let policy = |include: &[&str], exclude: &str| {
        let mut policy = fixed(0.0, Some(9), include);
        policy.retry.as_mut().unwrap().exclude_errors.push(exclude.to_owned());
        Some(policy)
    };
    for (include, exclude, types, retries) in [
        (&["A", "B"][..], "C", &["A", "B", "b"][..], 2),
        (&["A", "B"], "B", &["A", "B"], 1),
        (&["TaskError"], "B", &["A", "TaskError", "other", "B"], 3),
        (&["TaskError"], "TaskError", &["A", "TaskError"], 1),
    ] {
        let (delays, why) = failures(&world, &mut shepherd, policy(include, exclude), types).await;
        assert_eq!((delays.len(), &*why), (retries, "non_retryable"), "{include:?} {exclude} {types:?}");
    }
}

#[tokio::test]
async fn the_policy_of_a_task_says_that_task_error_stands_for_every_type() {
    let world = World::new().await;
    let id = world.create(Some(fixed(0.0, None, &["TaskError"]))).await;
    let types = &world.harness.job(&id).await["redrive"]["policy"]["rules"][0]["match"]["include_types"];
    assert_eq!(types.to_string(), "[{\"exact\":\"TaskError\"},\"any\"]");
}

#[tokio::test]
async fn tasks_that_fail_for_good_are_dead_letters_where_that_is_set() {
    for dead_letters in [false, true] {
        let azolla = AzollaSettings { dead_letters, ..AzollaSettings::default() };
        let world = World::with(Parts { azolla, ..Parts::default() }).await;
        let mut shepherd = world.shepherd(1).await;
        let id = world.create(None).await;
        shepherd.task().await;
        shepherd.fail(&id, "KeyError").await;
        assert_eq!(world.error(&id).await.r#type, "KeyError");
        assert_eq!(world.harness.dead().await.contains(&id), dead_letters);
    }
}

#[tokio::test]
async fn a_domain_runs_no_more_tasks_at_once_than_is_set_whatever_their_groups() {
    let azolla = AzollaSettings { concurrency: 2, ..AzollaSettings::default() };
    let world = World::with(Parts { azolla, ..Parts::default() }).await;
    let (mut one, mut other) =
        (world.shepherd_of("default", "one", 9).await, world.shepherd_of("default", "other", 9).await);
    for group in ["one", "other"] {
        for _ in 0..2 {
            let request = CreateTaskRequest { shepherd_group: Some(group.to_owned()), ..task(None) };
            world.create_as(request).await.unwrap();
        }
    }
    let (first, second) = tokio::select! {
        task = one.task() => (task, one.task().await),
        task = other.task() => (task, other.task().await),
    };
    assert_ne!(first.task_id, second.task_id);
    let standings = world.harness.engine.standings(None).await.unwrap();
    let key = standings.iter().find(|standing| standing.group.to_string() == "key:azolla.default").unwrap();
    assert_eq!((key.active, key.waiting), (2, 2));
    for id in [first.task_id, second.task_id] {
        one.succeed(&id, Value::IntValue(0)).await;
        other.succeed(&id, Value::IntValue(0)).await;
    }
    tokio::select! {
        _ = one.task() => {}
        _ = other.task() => {}
    }
}
