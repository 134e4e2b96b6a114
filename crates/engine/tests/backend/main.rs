//! Stores as a program opens them, each with its clock and its engine.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[cfg(feature = "postgres")]
#[path = "../../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "the tests of the store use more of it")]
mod cluster;
#[cfg(feature = "postgres")]
mod nodes;
#[path = "../../../store/tests/common/scratch.rs"]
mod scratch;

use redrive_engine::{Backend, ClaimRequest, Engine, Layers, Settings, Submission, SystemRandomness};
use redrive_store::{Blob, Job};
use scratch::Scratch;
use std::sync::Arc;
use std::time::Duration;

async fn engine(backend: &Backend) -> Arc<Engine> {
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    backend.engine(Arc::new(SystemRandomness::default()), settings, Vec::new()).await.expect("an answer")
}

async fn enqueue(engine: &Engine, queue: &str) -> Job {
    let submission = Submission::new("mail.send", queue, Blob::from(&b"{}"[..]));
    engine.submit(vec![submission]).await.expect("stored").remove(0).into_job()
}

fn request(queue: &str, wait: Duration) -> ClaimRequest {
    ClaimRequest { wait, ..ClaimRequest::new(vec![queue.into()], "worker-1") }
}

#[tokio::test]
async fn a_folder_that_was_closed_is_opened_with_its_jobs_and_its_time() {
    let scratch = Scratch::new();
    let (backend, opened) = Backend::open_folder(scratch.path()).expect("a new folder");
    assert_eq!((backend.name(), backend.has_inbox(), opened.latest), ("embedded", false, None));
    let first = engine(&backend).await;
    let job = enqueue(&first, "mail").await;
    let now = backend.clock().now();
    drop(first);
    backend.close().await.expect("the writes are on disk");
    drop(backend);

    let (backend, opened) = Backend::open_folder(scratch.path()).expect("it was closed");
    assert!(opened.clean);
    assert!(backend.clock().now() >= now, "the clock does not go back");
    let claimed = engine(&backend).await.claim(&request("mail", Duration::ZERO)).await.expect("an answer");
    assert_eq!(claimed.iter().map(|claimed| claimed.id).collect::<Vec<_>>(), [job.id]);
}
