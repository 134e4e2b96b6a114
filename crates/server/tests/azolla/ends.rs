//! What dies: shepherds, workers, and the server. Every task ends as its policy says.

use crate::common::{Harness, Parts, START};
use crate::world::{World, fixed, next_uuid};
use redrive_azolla::common::any_value::Value;
use redrive_server::AzollaSettings;
use redrive_store::{Memory, Store};
use std::sync::Arc;
use std::time::Duration;
use tonic::Code;

/// How long the clock has to move so that a lease without heartbeats is over.
const LEASE_MS: f64 = 45_001.0;

#[tokio::test]
async fn a_worker_that_never_reports_fails_its_attempt_and_the_policy_decides() {
    let world = World::new().await;
    let mut shepherd = world.shepherd(1).await;
    let id = world.create(Some(fixed(1.0, Some(2), &[]))).await;
    for attempt in 1..=2 {
        assert_eq!(shepherd.task().await.task_id, id, "attempt {attempt}");
        world.harness.advance_ms(330_001.0).await;
        world.harness.advance_ms(1_001.0).await;
        // Its place is free once the server has looked at its leases: a new stream looks at once.
        shepherd = world.shepherd(1).await;
    }
    let error = world.error(&id).await;
    assert_eq!(error.r#type, "timeout");
    let job = world.harness.job(&id).await;
    assert_eq!(job["redrive"]["failures"][1]["verdict"]["reason"]["name"], "max_attempts");
}

#[tokio::test]
async fn the_tasks_of_a_shepherd_that_is_gone_go_to_another_after_a_retry() {
    let world = World::new().await;
    let mut gone = world.shepherd(1).await;
    let id = world.create(Some(fixed(1.0, Some(3), &[]))).await;
    assert_eq!(gone.task().await.task_id, id);
    drop(gone);
    let mut other = world.shepherd(1).await;
    world.harness.advance_ms(LEASE_MS).await;
    world.harness.advance_ms(1_001.0).await;
    assert_eq!(other.task().await.task_id, id);
    other.succeed(&id, Value::IntValue(2)).await;
    assert_eq!(world.value(&id).await, Value::IntValue(2));
    let job = world.harness.job(&id).await;
    assert_eq!(job["errors"][0]["type"], "visibility_timeout");
}

#[tokio::test]
async fn section_14_a_shepherd_that_returns_has_its_tasks_and_reports_them() {
    let world = World::new().await;
    let uuid = next_uuid();
    let mut shepherd = world.stream().await;
    shepherd.hello(&uuid, "default", "default", 1).await;
    let id = world.create(None).await;
    assert_eq!(shepherd.task().await.task_id, id);
    drop(shepherd);
    let mut back = world.stream().await;
    back.hello(&uuid, "default", "default", 1).await;
    back.succeed(&id, Value::IntValue(1)).await;
    assert_eq!(world.value(&id).await, Value::IntValue(1));
    assert_eq!(world.harness.job(&id).await["attempt"], 1);
}

#[tokio::test]
async fn a_server_that_starts_anew_knows_tasks_results_and_who_has_what() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let parts = || Parts { store: Arc::clone(&store), ..Parts::default() };
    let world = World::with(parts()).await;
    let uuid = next_uuid();
    let mut shepherd = world.stream().await;
    shepherd.hello(&uuid, "default", "default", 2).await;
    let (done, running) = (world.create(None).await, world.create(None).await);
    let tasks = [shepherd.task().await.task_id, shepherd.task().await.task_id];
    assert!(tasks.contains(&done) && tasks.contains(&running));
    shepherd.succeed(&done, Value::StringValue("kept".to_owned())).await;
    world.value(&done).await;
    world.stop().await;

    let world = World::of(Harness::at(parts(), START + 1_000_000)).await;
    assert_eq!(world.value(&done).await, Value::StringValue("kept".to_owned()));
    let mut back = world.stream().await;
    back.hello(&uuid, "default", "default", 2).await;
    back.succeed(&running, Value::IntValue(7)).await;
    assert_eq!(world.value(&running).await, Value::IntValue(7));
}

#[tokio::test]
async fn a_shepherd_that_says_nothing_for_a_lease_loses_its_stream() {
    let azolla = AzollaSettings { lease: Duration::from_millis(200), ..AzollaSettings::default() };
    let world = World::with(Parts { azolla, ..Parts::default() }).await;
    let mut silent = world.shepherd(1).await;
    let (code, message) = silent.end().await.expect("an error");
    assert!(code == Code::DeadlineExceeded && message.contains("azolla.lease"), "{code:?}: {message}");
}

#[tokio::test]
async fn a_thousand_tasks_at_once_all_end_and_every_waiter_is_told() {
    let azolla = AzollaSettings { concurrency: 0, ..AzollaSettings::default() };
    let world = Arc::new(World::with(Parts { azolla, ..Parts::default() }).await);
    let callers: Vec<_> = (0..1_000)
        .map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let id = world.create(None).await;
                match number % 2 {
                    0 => assert!(matches!(world.value(&id).await, Value::StringValue(text) if text == id)),
                    _ => assert!(matches!(world.value(&id).await, Value::StringValue(_))),
                }
            })
        })
        .collect();
    let mut shepherds = Vec::new();
    for _ in 0..3 {
        let mut shepherd = world.shepherd(50).await;
        shepherds.push(tokio::spawn(async move {
            loop {
                let id = shepherd.task().await.task_id;
                shepherd.succeed(&id, Value::StringValue(id.clone())).await;
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    shepherds.iter().for_each(tokio::task::JoinHandle::abort);
}
