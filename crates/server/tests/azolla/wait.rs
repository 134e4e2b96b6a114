//! WaitForTask: its five answers.

use crate::common::Parts;
use crate::faulty::{Behaviour, Faulty};
use crate::world::{World, next_uuid, task};
use redrive_azolla::common::any_value::Value;
use redrive_azolla::orchestrator::{CreateTaskRequest, WaitForTaskStatus};
use redrive_store::StoreError;
use std::sync::Arc;
use tonic::Code;

#[tokio::test]
async fn a_task_runs_and_every_waiter_gets_its_result() {
    let world = World::new().await;
    let mut shepherd = world.shepherd(1).await;
    let id = world.create(None).await;
    let waiters: Vec<_> = (0..50)
        .map(|_| {
            let (mut clients, task_id) = (world.clients.clone(), id.clone());
            tokio::spawn(async move {
                let request = redrive_azolla::orchestrator::WaitForTaskRequest {
                    task_id,
                    domain: "default".to_owned(),
                    timeout_ms: None,
                };
                clients.wait_for_task(request).await.unwrap().into_inner()
            })
        })
        .collect();
    let task = shepherd.task().await;
    assert_eq!((&task.task_id, &*task.name, &*task.args, &*task.kwargs), (&id, "test.run", "[1]", "{}"));
    shepherd.succeed(&id, Value::StringValue("done".to_owned())).await;
    assert_eq!(world.value(&id).await, Value::StringValue("done".to_owned()));
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().status_code(), WaitForTaskStatus::Completed);
    }
}

#[tokio::test]
async fn a_task_that_fails_for_good_is_completed_with_its_error() {
    let world = World::new().await;
    let mut shepherd = world.shepherd(1).await;
    let id = world.create(None).await;
    assert_eq!(shepherd.task().await.task_id, id);
    shepherd.fail(&id, "KeyError").await;
    let error = world.error(&id).await;
    assert_eq!((&*error.r#type, &*error.message, error.retriable), ("KeyError", "it broke", false));
    assert_eq!(error.data, "{\"code\":\"E1\"}");
}

#[tokio::test]
async fn without_a_wait_a_task_that_runs_and_one_that_is_unknown_are_answered_alike() {
    let world = World::new().await;
    let id = world.create(None).await;
    for (id, timeout, status) in [
        (id.clone(), 0, WaitForTaskStatus::Timeout),
        (next_uuid(), 0, WaitForTaskStatus::Timeout),
        (id.clone(), 1, WaitForTaskStatus::Timeout),
        (next_uuid(), 1, WaitForTaskStatus::TaskNotFound),
        (next_uuid(), u64::MAX, WaitForTaskStatus::TaskNotFound),
    ] {
        assert_eq!(world.wait(&id, Some(timeout)).await.status_code(), status, "{id} {timeout}");
    }
    assert_eq!(world.wait(&next_uuid(), None).await.status_code(), WaitForTaskStatus::TaskNotFound);
    assert_eq!(world.wait_in("default", "7", None).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn section_14_an_unknown_domain_has_no_task_and_is_not_created() {
    let world = World::new().await;
    let id = world.create_as(CreateTaskRequest { domain: "mail".to_owned(), ..task(None) }).await.unwrap();
    let other = world.wait_in("default", &id, Some(5)).await.unwrap();
    assert_eq!(other.status_code(), WaitForTaskStatus::TaskNotFound);
    assert_eq!(world.wait_in("mail", &id, Some(1)).await.unwrap().status_code(), WaitForTaskStatus::Timeout);
    assert_eq!(world.harness.engine.queues().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_task_that_an_operator_cancels_is_completed_with_an_error() {
    let world = World::new().await;
    let id = world.create(None).await;
    world.harness.delete(&format!("/jobs/{id}")).await.expect(200);
    assert_eq!(world.error(&id).await.r#type, "TaskCancelled");
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_an_internal_error() {
    let store = Faulty::new();
    let world = World::with(Parts { store: Arc::clone(&store) as _, ..Parts::default() }).await;
    store.set(Behaviour::Fails(StoreError::Broken("the disk is gone".to_owned())));
    for timeout in [Some(0), Some(1), None] {
        let answer = world.wait(&next_uuid(), timeout).await;
        assert_eq!(answer.status_code(), WaitForTaskStatus::InternalError, "{timeout:?}");
    }
    let refused = world.create_as(task(None)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(!refused.message().contains("disk"), "callers learn nothing of the machine: {}", refused.message());
    store.set(Behaviour::Works);
    world.create(None).await;
}

#[tokio::test]
async fn a_server_that_stops_lets_no_caller_wait() {
    let world = World::new().await;
    let (id, mut clients) = (world.create(None).await, world.clients.clone());
    let mut shepherd = world.shepherd(1).await;
    shepherd.task().await;
    let request = redrive_azolla::orchestrator::WaitForTaskRequest {
        task_id: id,
        domain: "default".to_owned(),
        timeout_ms: None,
    };
    let waiter = tokio::spawn(async move { clients.wait_for_task(request).await });
    let (ended, ()) = tokio::join!(async { shepherd.end().await }, world.stop());
    assert_eq!(ended, None, "section 14: the end without an error is that of the server");
    assert_eq!(waiter.await.unwrap().unwrap_err().code(), Code::Unavailable);
}
