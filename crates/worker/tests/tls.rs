//! Encrypted connections to a server.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;
#[path = "common/tls.rs"]
mod tls;

use common::{Folder, RunningWorker, TIMEOUT, TestServer};
use redrive_worker::{Client, ClientError, Failure, NewJob, RootCertificates, Worker};
use tls::Authority;

/// The authorities of the system, and this one.
fn trusted_roots(name: &str, authority: &Authority) -> (Folder, RootCertificates) {
    let folder = Folder::new(name);
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("ca.pem");
    std::fs::write(&file, &authority.pem).unwrap();
    let roots = RootCertificates::system().with_file(&file).unwrap();
    (folder, roots)
}

async fn refused(client: &Client) -> String {
    match client.enqueue(NewJob::new("a", ()).unwrap()).await {
        Err(ClientError::Untrusted(why)) => why,
        other => panic!("it is to be refused for its certificate, not {:?}", other.map(|job| job.id().to_owned())),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_reached_through_tls_when_its_authority_is_trusted() {
    let server = TestServer::open().await;
    let authority = Authority::new("right");
    let port = authority.listen("localhost", server.address).await;
    let (_folder, roots) = trusted_roots("tls-right", &authority);
    let client = Client::http_with_roots(&format!("https://localhost:{port}"), None, &roots).unwrap();
    let sum = |(a, b): (u32, u32)| async move { Ok::<_, Failure>(a + b) };
    let running = RunningWorker::start(Worker::builder(&client).handle("sum", sum));
    let id = client.enqueue(NewJob::new("sum", (2, 3)).unwrap()).await.unwrap().id().to_owned();
    assert_eq!(client.result::<u32>(&id, TIMEOUT).await.unwrap(), 5);
    running.stop().await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_authority_is_unknown_is_refused_with_the_way_out_and_ends_the_worker() {
    let server = TestServer::open().await;
    let port = Authority::new("unknown").listen("localhost", server.address).await;
    let (_folder, roots) = trusted_roots("tls-unknown", &Authority::new("another"));
    let client = Client::http_with_roots(&format!("https://localhost:{port}"), Some("key"), &roots).unwrap();
    let why = refused(&client).await;
    assert!(why.contains("no trusted authority has signed it; name a file with"), "{why}");
    let running = RunningWorker::start(Worker::builder(&client).handle("a", |(): ()| async { Ok::<_, Failure>(()) }));
    assert!(matches!(running.ended().await, Err(ClientError::Untrusted(_))));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_for_another_name_is_refused() {
    let server = TestServer::open().await;
    let authority = Authority::new("right");
    let port = authority.listen("jobs.example.org", server.address).await;
    let (_folder, roots) = trusted_roots("tls-name", &authority);
    let client = Client::http_with_roots(&format!("https://localhost:{port}"), None, &roots).unwrap();
    let why = refused(&client).await;
    assert!(why.contains("it is not for localhost, but for") && why.contains("jobs.example.org"), "{why}");
    server.close().await;
}

#[test]
fn a_file_without_certificates_is_refused() {
    let folder = Folder::new("tls-file");
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("ca.pem");
    std::fs::write(&file, "no certificate").unwrap();
    for (path, said) in [(file, "there is no certificate in it"), (folder.0.join("missing.pem"), "cannot be used")] {
        let error = RootCertificates::system().with_file(&path).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("ca.pem") | error.contains("missing.pem"), "{error}");
    }
}
