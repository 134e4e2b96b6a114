//! A shepherd that takes the place of Azolla's: it starts no workers, and reports each task as soon as it comes.

use crate::Failed;
use crate::proto::common::any_value::Value;
use crate::proto::common::task_result::ResultType;
use crate::proto::common::{AnyValue, ErrorResult, SuccessResult, TaskResult};
use crate::proto::orchestrator::client_msg::Kind;
use crate::proto::orchestrator::cluster_service_client::ClusterServiceClient;
use crate::proto::orchestrator::{ClientMsg, Hello, Status, server_msg};
use std::collections::HashMap;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

/// Runs tasks until the stream ends. The first runs of each fail, so many of them.
pub(crate) async fn run(endpoint: &Endpoint, domain: &str, concurrency: u32, failures: u32) -> Result<(), Failed> {
    let (said, messages) = mpsc::channel(1_000);
    let mut cluster = ClusterServiceClient::new(endpoint.connect().await?);
    let mut heard = cluster.stream(ReceiverStream::new(messages)).await?.into_inner();
    let hello = Hello {
        shepherd_uuid: format!("00000000-0000-4000-8000-{:012x}", std::process::id()),
        max_concurrency: concurrency,
        domain: domain.to_owned(),
        shepherd_group: "default".to_owned(),
    };
    let status = Status { current_load: 0, available_capacity: concurrency };
    for kind in [Kind::Hello(hello), Kind::Status(status)] {
        said.send(ClientMsg { kind: Some(kind) }).await?;
    }
    let mut failed: HashMap<String, u32> = HashMap::new();
    while let Some(message) = heard.message().await? {
        let Some(server_msg::Kind::Task(task)) = message.kind else { continue };
        let fails = failures > 0 && {
            let times = failed.entry(task.task_id.clone()).or_default();
            *times += 1;
            *times <= failures
        };
        let result = if fails { failure() } else { success() };
        let result = TaskResult { task_id: task.task_id, result_type: Some(result) };
        said.send(ClientMsg { kind: Some(Kind::TaskResult(result)) }).await?;
    }
    Ok(())
}

fn success() -> ResultType {
    ResultType::Success(SuccessResult { result: Some(AnyValue { value: Some(Value::IntValue(1)) }) })
}

fn failure() -> ResultType {
    ResultType::Error(ErrorResult {
        r#type: "ValueError".to_owned(),
        message: "it broke".to_owned(),
        data: "{}".to_owned(),
        retriable: true,
    })
}
