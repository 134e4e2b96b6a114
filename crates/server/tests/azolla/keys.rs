//! Keys: who may call.

use crate::common::Parts;
use crate::world::{World, channel, task};
use redrive_azolla::orchestrator::cluster_service_client::ClusterServiceClient;
use redrive_azolla::orchestrator::{ClientMsg, WaitForTaskRequest, WaitForTaskStatus};
use redrive_server::ApiKeys;
use tonic::{Code, Request, Status};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// The metadata of a call: a name and a value.
type Entry = Option<(&'static str, String)>;

async fn guarded() -> World {
    World::with(Parts { keys: ApiKeys::read(KEY).unwrap(), ..Parts::default() }).await
}

fn none_that_it_knows() -> [Entry; 4] {
    let bearer = |key: &str| Some(("authorization", format!("Bearer {key}")));
    [None, bearer("0123456789abcdef0123456789abcdee"), bearer(""), Some(("x-api-key", KEY.to_uppercase()))]
}

fn known() -> [Entry; 2] {
    [Some(("authorization", format!("Bearer {KEY}"))), Some(("x-api-key", KEY.to_owned()))]
}

fn with<T>(message: T, entry: &Entry) -> Request<T> {
    let mut request = Request::new(message);
    if let Some((name, value)) = entry {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    request
}

async fn create(world: &World, entry: &Entry) -> Result<String, Status> {
    Ok(world.clients.clone().create_task(with(task(None), entry)).await?.into_inner().task_id)
}

/// How a stream ends whose caller ends it before it has said who it is.
async fn stream(world: &World, entry: &Entry) -> Code {
    let mut cluster = ClusterServiceClient::new(channel(world.address).await);
    match cluster.stream(with(tokio_stream::empty::<ClientMsg>(), entry)).await {
        Ok(answer) => answer.into_inner().message().await.unwrap_err().code(),
        Err(status) => status.code(),
    }
}

#[tokio::test]
async fn a_call_without_a_key_is_refused_and_does_nothing() {
    let world = guarded().await;
    for entry in none_that_it_knows() {
        assert_eq!(create(&world, &entry).await.unwrap_err().code(), Code::Unauthenticated, "{entry:?}");
        assert_eq!(stream(&world, &entry).await, Code::Unauthenticated, "{entry:?}");
    }
    assert_eq!(world.wait_in("default", "7", Some(0)).await.unwrap_err().code(), Code::Unauthenticated);
    assert!(world.harness.engine.queues().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_call_with_a_key_passes_in_either_entry() {
    let world = guarded().await;
    for entry in known() {
        let task_id = create(&world, &entry).await.unwrap();
        let request = WaitForTaskRequest { task_id, domain: "default".to_owned(), timeout_ms: Some(0) };
        let answer = world.clients.clone().wait_for_task(with(request, &entry)).await.unwrap().into_inner();
        assert_eq!(answer.status_code(), WaitForTaskStatus::Timeout);
        assert_eq!(stream(&world, &entry).await, Code::FailedPrecondition, "it is let in, and says no Hello");
    }
}
