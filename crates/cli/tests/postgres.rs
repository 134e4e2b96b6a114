//! Several servers on one PostgreSQL, through the real binary.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod harness;

#[path = "../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "these tests stop their database, and do not share it")]
mod cluster;

#[path = "../../store/tests/postgres/trigger.rs"]
#[allow(dead_code, reason = "the tests of the store use more of it")]
mod trigger;

use cluster::Cluster;
use harness::{Server, until};
use serde_json::{Value, json};

fn node(cluster: &Cluster) -> Server {
    // Short, so that the runs of a dead worker are reclaimed while the test waits.
    Server::start_at(&["--store", &cluster.address], &["--set", "lease=1s"])
}

fn job(queue: &str) -> Value {
    json!({ "type": "work", "args": [1], "options": { "queue": queue } })
}

#[test]
fn a_worker_on_one_node_gets_jobs_of_another_and_a_dead_node_loses_none() {
    let cluster = Cluster::start();
    let (first, mut second, third) = (node(&cluster), node(&cluster), node(&cluster));
    assert!(first.log_lines().iter().any(|line| line.contains("store: PostgreSQL, database \"postgres\"")));

    let waiting = json!({ "queues": ["mail"], "worker_id": "tester", "wait_ms": 30_000 });
    let (id, taken) = std::thread::scope(|scope| {
        let fetch = scope.spawn(|| second.ask("POST", "/ojs/v1/workers/fetch", waiting.clone()));
        let id = first.enqueue(job("mail"));
        (id, fetch.join().unwrap()["jobs"][0].take())
    });
    assert_eq!(taken["id"], json!(id));
    assert_eq!(third.state(&id), "active");

    second.kill();
    let again = third.claim("mail");
    assert_eq!((&again["id"], &again["attempt"]), (&json!(id), &json!(2)), "the run of the dead node is over");
    let stale = json!({ "job_id": taken["id"], "lease_token": taken["lease_token"] });
    assert_eq!(first.call("POST", "/ojs/v1/workers/ack", &stale).unwrap().0, 409, "it may not settle any more");
    third.succeed(&again);
    assert_eq!(first.state(&id), "completed");
}

#[test]
fn a_queue_that_is_paused_on_one_node_is_paused_on_all() {
    let cluster = Cluster::start();
    let (here, there) = (node(&cluster), node(&cluster));
    here.ask("POST", "/ojs/v1/queues/mail/pause", json!({}));
    let id = there.enqueue(job("mail"));
    assert_eq!(there.fetch("mail", 1), Vec::<Value>::new());
    here.ask("POST", "/ojs/v1/queues/mail/resume", json!({}));
    assert_eq!(there.claim("mail")["id"], json!(id));
}

#[test]
fn while_the_database_is_unreachable_requests_are_refused_and_nothing_is_lost() {
    let mut cluster = Cluster::start();
    let server = node(&cluster);
    let stored = server.enqueue(job("mail"));
    cluster.order("stop");
    let requests = [
        ("POST", "/ojs/v1/jobs", job("mail")),
        ("GET", "/ojs/v1/health", Value::Null),
        ("GET", "/ojs/v1/queues", Value::Null),
    ];
    for (method, path, body) in requests {
        let (status, answer) = server.call(method, path, &body).expect("an answer");
        assert_eq!(status, 503, "{method} {path}: {answer}");
    }
    assert_eq!(refused(&server), (503, Some("1".to_owned())), "it says when to come again");
    cluster.order("start");
    until("the server comes back", || {
        let (status, _) = server.call("GET", "/ojs/v1/health", &Value::Null).ok()?;
        (status == 200).then_some(())
    });
    assert_eq!(server.state(&stored), "available");
    let (status, _) = server.stop();
    assert!(status.success());
}

/// The status of an enqueue request, and when to retry it.
fn refused(server: &Server) -> (u16, Option<String>) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
    let request = agent.post(format!("{}/ojs/v1/jobs", server.url)).header("content-type", "application/json");
    let answer = request.send(job("mail").to_string()).expect("an answer");
    let retry_after = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    (answer.status().as_u16(), retry_after)
}

#[test]
fn while_the_disk_is_full_writes_are_refused_reads_go_on_and_afterwards_all_works() {
    let cluster = Cluster::start();
    let server = node(&cluster);
    let stored = server.enqueue(job("mail"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&cluster.address, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        trigger::arrange(&client, "redrive", trigger::When::Writing).await;
        trigger::arm(&client, "redrive", "53100", 1_000_000).await;
        client
    });
    assert_eq!(refused(&server), (503, Some("1".to_owned())));
    let fetch = json!({ "queues": ["mail"], "worker_id": "tester" });
    let (status, answer) = server.call("POST", "/ojs/v1/workers/fetch", &fetch).expect("an answer");
    assert_eq!(status, 503, "{answer}");
    assert_eq!(server.state(&stored), "available", "the job can be read, and no worker has it");

    runtime.block_on(trigger::arm(&client, "redrive", "53100", 0));
    let taken = server.claim("mail");
    assert_eq!((&taken["id"], &taken["attempt"]), (&json!(stored), &json!(1)), "the refused claim does not count");
    server.succeed(&taken);
    assert_eq!(server.fetch("mail", 9), Vec::<Value>::new(), "the refused job was not stored");
}
