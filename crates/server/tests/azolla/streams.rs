//! Streams of shepherds: their beginning, their order, what they may run, and their end.

use crate::world::{Shepherd, World, next_uuid, task};
use redrive_azolla::common::any_value::Value;
use redrive_azolla::orchestrator::client_msg::Kind;
use redrive_azolla::orchestrator::{Ack, CreateTaskRequest, Hello, WaitForTaskStatus};
use std::collections::BTreeSet;
use tonic::Code;

#[tokio::test]
async fn tasks_go_to_shepherds_of_their_domain_and_group() {
    let world = World::new().await;
    let mut shepherds: Vec<(&str, &str, Shepherd)> = Vec::new();
    for (domain, group) in [("default", "default"), ("default", "gpu"), ("mail", "default")] {
        shepherds.push((domain, group, world.shepherd_of(domain, group, 1).await));
    }
    for (domain, group, shepherd) in shepherds.iter_mut().rev() {
        let shepherd_group = Some((*group).to_owned()).filter(|group| group != "default");
        let id = world
            .create_as(CreateTaskRequest { domain: (*domain).to_owned(), shepherd_group, ..task(None) })
            .await
            .unwrap();
        assert_eq!(shepherd.task().await.task_id, id);
        shepherd.succeed(&id, Value::IntValue(7)).await;
        let answer = world.wait_in(domain, &id, None).await.unwrap();
        assert_eq!(answer.status_code(), WaitForTaskStatus::Completed, "{domain} {group}");
    }
}

#[tokio::test]
async fn a_shepherd_has_no_more_tasks_than_it_can_run_whatever_it_says_of_its_load() {
    let world = World::new().await;
    let mut shepherd = world.shepherd(2).await;
    let mut ids = BTreeSet::new();
    for _ in 0..5 {
        ids.insert(world.create(None).await);
    }
    // Section 14: a shepherd can count wrong.
    shepherd.heartbeat(u32::MAX, 0).await;
    let mut running = vec![shepherd.task().await.task_id, shepherd.task().await.task_id];
    shepherd.ping().await;
    let active = world.harness.engine.standings(None).await.unwrap();
    assert!(active.iter().all(|standing| standing.active == 2), "{active:?}");
    while let Some(id) = running.pop() {
        shepherd.succeed(&id, Value::BoolValue(true)).await;
        assert_eq!(world.value(&id).await, Value::BoolValue(true));
        assert!(ids.remove(&id));
        if ids.len() > running.len() {
            running.insert(0, shepherd.task().await.task_id);
        }
    }
    assert!(ids.is_empty());
}

#[tokio::test]
async fn a_silent_server_sends_pings() {
    let world = World::new().await;
    let mut shepherd = world.shepherd(1).await;
    assert_eq!(shepherd.ping().await, 1_770_976_800, "the time of the server, in seconds");
}

#[tokio::test]
async fn a_stream_that_begins_wrongly_ends_with_an_error_and_others_go_on() {
    let world = World::new().await;
    let mut other = world.shepherd(1).await;
    let hello = |shepherd_uuid: &str, group: &str| {
        let (domain, shepherd_group) = ("default".to_owned(), group.to_owned());
        Kind::Hello(Hello { shepherd_uuid: shepherd_uuid.to_owned(), max_concurrency: 1, domain, shepherd_group })
    };
    for (first, code, said) in [
        (hello("7", "default"), Code::InvalidArgument, "\"7\""),
        (hello(&next_uuid(), &"x".repeat(300)), Code::InvalidArgument, "at most 255"),
        (Kind::Ack(Ack { task_id: next_uuid() }), Code::FailedPrecondition, "found an Ack"),
    ] {
        let mut stream = world.stream().await;
        stream.say(first).await;
        let (found, message) = stream.end().await.expect("an error: after an end without one it would return at once");
        assert!(found == code && message.contains(said), "{found:?}: {message}");
    }
    let mut early = world.stream().await;
    early.heartbeat(0, 1).await;
    assert_eq!(early.end().await.unwrap().0, Code::FailedPrecondition);
    let mut twice = world.shepherd(1).await;
    twice.say(hello(&next_uuid(), "default")).await;
    assert_eq!(twice.end().await.unwrap().0, Code::FailedPrecondition);
    let mut empty = world.shepherd(1).await;
    empty.say_nothing_known().await;
    assert_eq!(empty.end().await.unwrap().0, Code::InvalidArgument);

    let id = world.create(None).await;
    assert_eq!(other.task().await.task_id, id);
}

#[tokio::test]
async fn section_14_the_newest_stream_of_a_shepherd_is_valid_and_has_its_tasks() {
    let world = World::new().await;
    let uuid = next_uuid();
    let mut first = world.stream().await;
    first.hello(&uuid, "default", "default", 1).await;
    let id = world.create(None).await;
    assert_eq!(first.task().await.task_id, id);
    let mut second = world.stream().await;
    second.hello(&uuid, "default", "default", 1).await;
    assert_eq!(first.end().await.unwrap().0, Code::Aborted);
    drop(first);
    second.succeed(&id, Value::IntValue(1)).await;
    assert_eq!(world.value(&id).await, Value::IntValue(1));
    let next = world.create(None).await;
    assert_eq!(second.task().await.task_id, next);
}

#[tokio::test]
async fn a_result_that_is_late_or_of_another_shepherd_changes_nothing_and_is_logged() {
    let world = World::new().await;
    let (mut holder, other) = (world.shepherd(1).await, world.shepherd_of("other", "default", 1).await);
    let id = world.create(None).await;
    assert_eq!(holder.task().await.task_id, id);
    other.succeed(&id, Value::IntValue(9)).await;
    other.report("7", None).await;
    holder.succeed(&id, Value::IntValue(1)).await;
    assert_eq!(world.value(&id).await, Value::IntValue(1));
    holder.fail(&id, "KeyError").await;
    holder.succeed(&id, Value::IntValue(2)).await;
    // What comes after them on the same stream has been answered: so have they.
    let next = world.create(None).await;
    assert_eq!(holder.task().await.task_id, next);
    holder.succeed(&next, Value::IntValue(3)).await;
    assert_eq!(world.value(&next).await, Value::IntValue(3));
    assert_eq!(world.value(&id).await, Value::IntValue(1));
    let log = world.harness.log.lock().unwrap().join("\n");
    assert!(log.contains(&format!("reports {id}, which it does not have: ignored")), "{log}");
}
