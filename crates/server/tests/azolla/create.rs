//! CreateTask: what is taken, and everything that is refused.

use crate::world::{World, fixed, task};
use redrive_azolla::common::retry_policy_wait::Kind;
use redrive_azolla::common::{RetryPolicyExponentialWait, RetryPolicyStop, RetryPolicyWait};
use redrive_azolla::orchestrator::CreateTaskRequest;
use serde_json::json;
use tonic::Code;

#[tokio::test]
async fn a_task_is_a_job_that_all_other_tools_see() {
    let world = World::new().await;
    let request = CreateTaskRequest {
        name: "SendMail".to_owned(),
        args: " [1, {\"b\": 2.50}] ".to_owned(),
        kwargs: "{\"z\":1,\"a\":1.10}".to_owned(),
        flow_instance_id: Some("01890a5d-ac96-774b-bcce-b302099a8057".to_owned()),
        shepherd_group: Some("gpu".to_owned()),
        ..task(Some(fixed(2.0, None, &["KeyError"])))
    };
    let id = world.create_as(request).await.unwrap();
    let job = world.harness.job(&id).await;
    assert_eq!(job["type"], "azolla.x--send-mail");
    assert_eq!(job["queue"], "azolla.default.gpu");
    assert_eq!(job["args"], json!([1, { "b": 2.5 }]));
    assert_eq!(job["meta"]["task"], "SendMail");
    assert_eq!(job["meta"]["kwargs"], json!({ "z": 1, "a": 1.1 }));
    assert_eq!(job["timeout_ms"], 330_000);
    assert_eq!(job["redrive"]["policy_from"], json!({ "layer": "job", "dialect": "azolla", "capped_by": [] }));
    assert_eq!(job["redrive"]["policy"]["attempts"], "unlimited", "section 6: a stop without a number has no limit");
    let task = world.shepherd_of("default", "gpu", 1).await.task().await;
    let written = (&*task.name, &*task.args, &*task.kwargs);
    assert_eq!(written, ("SendMail", "[1, {\"b\": 2.50}]", "{\"z\":1,\"a\":1.10}"), "every digit is kept");
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    let world = World::new().await;
    let mut policy = fixed(1.0, Some(0), &[]);
    policy.version = 257;
    policy.stop = Some(RetryPolicyStop { max_attempts: Some(0), max_delay: Some(f64::INFINITY) });
    let growing = RetryPolicyExponentialWait { initial_delay: f64::NAN, multiplier: 0.5, max_delay: -1.0 };
    policy.wait = Some(RetryPolicyWait { kind: Some(Kind::Exponential(growing)) });
    let request = CreateTaskRequest {
        name: "a\nb".to_owned(),
        args: "{\"not\": \"a list\"}".to_owned(),
        kwargs: String::new(),
        flow_instance_id: Some(String::new()),
        ..task(Some(policy))
    };
    let refused = world.create_as(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    for part in [
        "the name \"a\\nb\"",
        "Invalid args: allowed is an array",
        "Invalid kwargs JSON",
        "Invalid flow_instance_id",
        "Invalid retry policy",
        "version",
        "257",
        "/stop/max_attempts",
        "/stop/max_delay",
        "inf",
        "/wait/initial_delay",
        "NaN",
        "/wait/multiplier",
        "/wait/max_delay",
    ] {
        assert!(refused.message().contains(part), "{part}: {}", refused.message());
    }
    assert_eq!(world.harness.engine.queues().await.unwrap(), []);
}

#[tokio::test]
async fn section_14_arguments_that_no_worker_can_be_started_with_are_refused() {
    let world = World::new().await;
    let of = |length: usize| CreateTaskRequest { args: format!("[\"{}\"]", "x".repeat(length - 4)), ..task(None) };
    world.create_as(of(131_071)).await.unwrap();
    let refused = world.create_as(of(131_072)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("131072 bytes; at most 131071"), "{}", refused.message());
}

#[tokio::test]
async fn a_message_of_4_mib_is_refused_and_others_go_on() {
    let world = World::new().await;
    let request = CreateTaskRequest { kwargs: format!("\"{}\"", "x".repeat(4 << 20)), ..task(None) };
    let refused = world.create_as(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    world.create(None).await;
}

#[tokio::test]
async fn what_the_original_only_pretends_is_not_implemented() {
    let world = World::new().await;
    let mut clients = world.clients.clone();
    let answers = [
        clients.create_flow(redrive_azolla::orchestrator::CreateFlowRequest::default()).await.map(drop),
        clients.wait_for_flow(redrive_azolla::orchestrator::WaitForFlowRequest::default()).await.map(drop),
        clients.publish_task_event(redrive_azolla::orchestrator::PublishTaskEventRequest::default()).await.map(drop),
        clients.publish_flow_event(redrive_azolla::orchestrator::PublishFlowEventRequest::default()).await.map(drop),
    ];
    for answer in answers {
        let refused = answer.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented);
        assert!(refused.message().contains("is not implemented"), "{}", refused.message());
    }
}
