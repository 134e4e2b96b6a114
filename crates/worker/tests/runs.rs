//! Workflows and schedules: the same over HTTP and in-process, and on a folder without a server.

#![cfg(all(feature = "http", feature = "embedded"))]
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Folder, RunningWorker, TIMEOUT, TestServer, soon};
use redrive_worker::testing::Harness;
use redrive_worker::{
    Client, ClientError, Context, Failure, NewJob, Overlap, Retry, Schedule, ScheduleInfo, Worker, Workflow,
    WorkflowInfo,
};
use serde_json::{Value, json};
use std::time::Duration;

fn job(kind: &str) -> NewJob {
    NewJob::new(kind, (1, "two")).expect("it can be written")
}

/// What differs between servers and over time; of these, only whether they are there is compared.
const OWN: [&str; 8] =
    ["id", "job_id", "created_at", "started_at", "completed_at", "cancelled_at", "next_run_at", "last_run_at"];

fn without_own(document: &Value) -> Value {
    match document {
        Value::Object(members) => {
            let each = |(key, value): (&String, &Value)| match OWN.contains(&key.as_str()) && value.is_string() {
                true => (key.clone(), json!("own")),
                false => (key.clone(), without_own(value)),
            };
            members.iter().map(each).collect::<serde_json::Map<String, Value>>().into()
        }
        Value::Array(items) => items.iter().map(without_own).collect(),
        other => other.clone(),
    }
}

type Answer = Result<Value, (u16, String, String)>;

fn refusal(error: ClientError) -> (u16, String, String) {
    match error {
        ClientError::Refused(refused) => (refused.status, refused.code, refused.message),
        ClientError::Invalid(message) => (0, String::new(), message),
        other => panic!("neither answered nor refused: {other}"),
    }
}

fn of_workflow(answer: Result<WorkflowInfo, ClientError>) -> Answer {
    answer.map(|workflow| without_own(workflow.document())).map_err(refusal)
}

fn of_schedule(answer: Result<ScheduleInfo, ClientError>) -> Answer {
    answer.map(|schedule| without_own(schedule.document())).map_err(refusal)
}

/// Asks both; the answers are the same, and so are refusals, but for the hint that a server sends beside its message.
fn same(name: &str, over_http: Answer, in_process: Answer) {
    match (&over_http, &in_process) {
        (Err(http), Err(local)) => {
            assert_eq!((http.0, &http.1), (local.0, &local.1), "{name}");
            assert!(http.2.starts_with(&local.2), "{name}: {:?} and {:?}", http.2, local.2);
        }
        _ => assert_eq!(over_http, in_process, "{name}"),
    }
}

/// Starts one workflow of each kind, and some that are refused.
async fn started(client: &Client) -> Vec<(&'static str, Result<WorkflowInfo, ClientError>)> {
    let workflows = client.workflows();
    let inner = Workflow::group().with(job("b")).with(job("c"));
    let deep = (0..9).fold(Workflow::chain().then(job("a")), |inner, _| Workflow::chain().then(inner));
    let taken = "01890f5e-6f00-7000-8000-000000000001";
    vec![
        ("chain", workflows.start(Workflow::chain().then(job("a")).then(inner).name("n")).await),
        ("group", workflows.start(Workflow::group().with(job("a")).with(job("b"))).await),
        ("batch", workflows.start(Workflow::batch().with(job("a")).on_complete(job("b"))).await),
        (
            "graph",
            workflows
                .start(Workflow::graph().step("x", job("a")).step_after("y", job("b").delay(TIMEOUT), ["x"]))
                .await,
        ),
        ("id", workflows.start(Workflow::chain().then(job("a")).id(taken)).await),
        ("taken id", workflows.start(Workflow::chain().then(job("a")).id(taken)).await),
        ("invalid id", workflows.start(Workflow::chain().then(job("a")).id("x")).await),
        ("no jobs", workflows.start(Workflow::group()).await),
        ("no callback", workflows.start(Workflow::batch().with(job("a"))).await),
        ("too deep", workflows.start(deep).await),
        ("circle", workflows.start(Workflow::graph().step_after("x", job("a"), ["x"])).await),
        ("unknown step", workflows.start(Workflow::graph().step_after("x", job("a"), ["y"])).await),
        ("invalid jobs", workflows.start(Workflow::chain().then(job("A")).then(job("a").priority(101))).await),
        ("job with a key", workflows.start(Workflow::chain().then(job("a").idempotency_key("k"))).await),
        ("too large", workflows.start(Workflow::chain().then(job("a").meta("m", "x".repeat(1 << 20)))).await),
    ]
}

#[tokio::test]
async fn workflows_are_answered_alike_over_http_and_in_process() {
    let (server, harness) = (TestServer::open().await, Harness::new().expect("an engine"));
    let client = server.client();
    let (over_http, in_process) = (soon(started(&client)).await, soon(started(harness.client())).await);
    let mut refused = 0;
    for ((name, http), (_, local)) in over_http.into_iter().zip(in_process) {
        refused += usize::from(http.is_err());
        match (of_workflow(http), of_workflow(local)) {
            // A request that is too long is not read.
            (Err((413, http, _)), Err((413, local, _))) => assert_eq!(http, local, "{name}"),
            (http, local) => same(name, http, local),
        }
    }
    assert_eq!(refused, 10, "as many of them are refused as are meant to be");
    for client in [&client, harness.client()] {
        let workflows = client.workflows();
        let all = soon(workflows.clone().running().list(100)).await.expect("a list");
        assert_eq!(all.len(), 5);
        let first = soon(workflows.list(1)).await.expect("a list");
        assert_eq!(first[0].id(), all[0].id(), "the newest first");
        let cancelled = soon(workflows.cancel(all[0].id())).await.expect("cancelled");
        assert_eq!((cancelled.state(), cancelled.has_ended()), ("cancelled", true));
        assert_eq!(soon(workflows.clone().ended().list(9)).await.expect("a list")[0].id(), all[0].id());
        assert_eq!(soon(workflows.wait(all[0].id(), TIMEOUT)).await.expect("it has ended").state(), "cancelled");
    }
    let id = "01890f5e-6f00-7000-8000-000000000009";
    let (http, local) = (client.workflows(), harness.client().workflows());
    same("missing", of_workflow(http.get(id).await), of_workflow(local.get(id).await));
    same("not an id", of_workflow(http.get("a/b").await), of_workflow(local.get("a/b").await));
    let ended = async |client: &Client| {
        let ended = client.workflows().ended().list(1).await.expect("a list");
        let again = of_workflow(client.workflows().cancel(ended[0].id()).await);
        again.map_err(|(status, code, message)| (status, code, message.replace(ended[0].id(), "")))
    };
    same("over", ended(&client).await, ended(harness.client()).await);
    server.close().await;
}

/// What is done with schedules, and the answers.
async fn scheduled(client: &Client) -> Vec<(&'static str, Result<ScheduleInfo, ClientError>)> {
    let schedules = client.schedules();
    let new = |name: &str, expression: &str| Schedule::new(name, expression, job("report.make").queue("slow"));
    let whole = new("whole", "0 9 * * MON-FRI").timezone("Europe/Berlin").overlap(Overlap::Enqueue).description("d");
    let keyed = Schedule::new("keyed", "@daily", job("a").idempotency_key("k"));
    vec![
        ("plain", schedules.register(new("plain", "@daily")).await),
        ("whole", schedules.register(whole).await),
        ("paused", schedules.register(new("paused", "@every 30m").paused()).await),
        ("taken", schedules.register(new("plain", "@hourly")).await),
        ("replaced", schedules.replace(new("plain", "@hourly")).await),
        ("new by replace", schedules.replace(new("replaced", "@hourly")).await),
        ("invalid", schedules.register(new("Wrong", "99 * * * *").timezone("Mars")).await),
        ("never due", schedules.register(new("never", "0 0 30 2 *")).await),
        ("keyed", schedules.register(keyed).await),
        ("shown", schedules.get("whole").await),
        ("missing", schedules.get("whoel").await),
        ("pause", schedules.pause("whole").await),
        ("resume", schedules.resume("whole").await),
        ("delete", schedules.delete("whole").await),
        ("deleted", schedules.delete("whole").await),
    ]
}

#[tokio::test]
async fn schedules_are_answered_alike_over_http_and_in_process() {
    let (server, harness) = (TestServer::open().await, Harness::new().expect("an engine"));
    let client = server.client();
    let (over_http, in_process) = (soon(scheduled(&client)).await, soon(scheduled(harness.client())).await);
    for ((name, http), (_, local)) in over_http.into_iter().zip(in_process) {
        same(name, of_schedule(http), of_schedule(local));
    }
    for client in [&client, harness.client()] {
        let all = soon(client.schedules().list()).await.expect("a list");
        let all: Vec<(&str, bool)> = all.iter().map(|schedule| (schedule.name(), schedule.is_paused())).collect();
        assert_eq!(all, [("paused", true), ("plain", false), ("replaced", false)]);
    }
    server.close().await;
}

async fn add(numbers: (u64, String), context: Context) -> Result<u64, Failure> {
    let before: Vec<Value> = context.job().member("parent_results").unwrap_or_default();
    Ok(numbers.0 + before.iter().filter_map(Value::as_u64).sum::<u64>())
}

#[tokio::test]
async fn a_harness_runs_workflows_to_their_end_and_schedules_when_the_clock_is_advanced() {
    let harness = Harness::new().expect("an engine");
    let client = harness.client();
    let worker = Worker::builder(client).handle("add", add).build().expect("it fits together");
    let failing = job("add").retry(Retry::none().expect("no retries"));
    let workflow = Workflow::chain().then(job("add")).then(job("add")).then(failing);
    let workflow = client.workflows().start(workflow).await.expect("started");
    let every = Schedule::new("often", "@every 1h", job("add"));
    client.schedules().register(every).await.expect("registered");
    let drained = harness.drain(&worker).await.expect("it ends");
    assert_eq!((drained.runs.len(), drained.waited), (3, Duration::ZERO), "no slot of the schedule is waited for");
    let workflow = client.workflows().get(workflow.id()).await.expect("it is there");
    let results: Vec<u64> = workflow.steps().map(|step| step.result().expect("a number")).collect();
    assert_eq!((workflow.state(), results), ("completed", vec![1, 2, 4]));
    harness.advance(Duration::from_secs(3_600)).await.expect("an hour");
    assert_eq!(harness.drain(&worker).await.expect("it ends").runs.len(), 1);
    assert_eq!(client.schedules().get("often").await.expect("it is there").run_count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_runs_workflows_and_schedules_without_a_server_also_after_it_was_closed() {
    let folder = Folder::new("runs");
    let client = Client::open(&folder.0).await.expect("a folder");
    let workflow = Workflow::chain().then(job("add")).then(job("add"));
    let id = client.workflows().start(workflow).await.expect("started").id().to_owned();
    client.schedules().register(Schedule::new("often", "* * * * * *", job("add"))).await.expect("registered");
    client.close().await.expect("it closes");
    drop(client);
    let client = soon(Client::open(&folder.0)).await.expect("the folder again");
    let worker = RunningWorker::start(Worker::builder(&client).handle("add", add));
    let ended = soon(client.workflows().wait(&id, TIMEOUT)).await.expect("it ends");
    assert_eq!((ended.state(), ended.errors()), ("completed", &[][..]));
    let due = async {
        while client.schedules().get("often").await.expect("it is there").run_count() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(due).await;
    worker.stop().await;
    client.close().await.expect("it closes");
}
