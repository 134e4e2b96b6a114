//! Several nodes in one process, on one PostgreSQL.

use super::cluster::Cluster;
use super::{engine, enqueue, request};
use redrive_engine::Backend;
use redrive_store::Missing;
use redrive_store::postgres::Options;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Longer than any test waits for what it needs.
const LONG: Duration = Duration::from_secs(60);

async fn node(cluster: &Cluster) -> Backend {
    let options = Options::read(&cluster.address).expect("an address");
    Backend::open_postgres(options).await.expect("the database is there")
}

/// Listening connections of nodes.
async fn listeners(cluster: &Cluster) -> i64 {
    const LISTENERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'redrive listener%'";
    let (client, connection) = tokio_postgres::connect(&cluster.address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.query_one(LISTENERS, &[]).await.unwrap().get(0)
}

async fn until_listeners(cluster: &Cluster, count: i64) {
    let reached = async {
        while listeners(cluster).await != count {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, reached).await.unwrap_or_else(|_| panic!("there are never {count} listeners"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_waits_on_one_node_gets_what_another_enqueues() {
    let cluster = Cluster::start();
    let (here, there) = (node(&cluster).await, node(&cluster).await);
    assert_eq!((here.name(), here.has_inbox()), ("postgres", true));
    let (here, there) = (engine(&here).await, engine(&there).await);
    until_listeners(&cluster, 2).await;
    let waiting = tokio::spawn(async move { there.claim(&request("mail", LONG)).await });
    let job = enqueue(&here, "mail").await;
    let claimed = waiting.await.expect("no panic").expect("an answer");
    assert_eq!(claimed.iter().map(|claimed| claimed.id).collect::<Vec<_>>(), [job.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_one_node_paused_before_another_started_is_paused_there() {
    let cluster = Cluster::start();
    let (here, there) = (node(&cluster).await, node(&cluster).await);
    let first = engine(&here).await;
    enqueue(&first, "mail").await;
    first.pause("mail".into(), true, Missing::Refuse).await.expect("an answer");
    let second = engine(&there).await;
    assert_eq!(second.claim(&request("mail", Duration::ZERO)).await.expect("an answer"), []);
    let waiting = tokio::spawn(async move { second.claim(&request("mail", LONG)).await });
    first.pause("mail".into(), false, Missing::Refuse).await.expect("an answer");
    assert_eq!(waiting.await.expect("no panic").expect("an answer").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_dropped_stops_listening() {
    let cluster = Cluster::start();
    let backend = node(&cluster).await;
    let first = engine(&backend).await;
    until_listeners(&cluster, 1).await;
    drop((first, backend));
    until_listeners(&cluster, 0).await;
}
