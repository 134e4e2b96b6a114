//! A server that listens, clients of it, and shepherds that do what the test says.

use crate::common::{Harness, Parts};
use redrive_azolla::common::any_value::Value as Any;
use redrive_azolla::common::task_result::ResultType;
use redrive_azolla::common::{AnyValue, ErrorResult, RetryPolicy, SuccessResult, Task, TaskResult};
use redrive_azolla::orchestrator::client_msg::Kind;
use redrive_azolla::orchestrator::client_service_client::ClientServiceClient;
use redrive_azolla::orchestrator::cluster_service_client::ClusterServiceClient;
use redrive_azolla::orchestrator::{
    ClientMsg, CreateTaskRequest, Hello, ServerMsg, Status as Heartbeat, WaitForTaskRequest, WaitForTaskResponse,
    server_msg,
};
use redrive_azolla::{common, orchestrator};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

/// A server, until it is stopped.
pub(crate) struct World {
    pub(crate) harness: Arc<Harness>,
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    pub(crate) clients: ClientServiceClient<Channel>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Parts::default()).await
    }

    pub(crate) async fn with(parts: Parts) -> Self {
        Self::of(Harness::with(parts)).await
    }

    pub(crate) async fn of(harness: Harness) -> Self {
        let harness = Arc::new(harness);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = Arc::clone(&harness);
        let serving = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            server.server.serve_azolla(listener, stopped).await;
        });
        let clients = ClientServiceClient::new(channel(address).await);
        Self { harness, address, stop, serving, clients }
    }

    /// Stops the server; it has ended when this completes.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.serving.await.unwrap();
    }

    /// Creates a task of the default domain; its id.
    pub(crate) async fn create(&self, policy: Option<RetryPolicy>) -> String {
        self.create_as(task(policy)).await.expect("the task is valid")
    }

    pub(crate) async fn create_as(&self, request: CreateTaskRequest) -> Result<String, Status> {
        Ok(self.clients.clone().create_task(request).await?.into_inner().task_id)
    }

    pub(crate) async fn wait(&self, id: &str, timeout_ms: Option<u64>) -> WaitForTaskResponse {
        self.wait_in("default", id, timeout_ms).await.expect("an answer")
    }

    pub(crate) async fn wait_in(
        &self,
        domain: &str,
        id: &str,
        timeout_ms: Option<u64>,
    ) -> Result<WaitForTaskResponse, Status> {
        let request = WaitForTaskRequest { task_id: id.to_owned(), domain: domain.to_owned(), timeout_ms };
        Ok(self.clients.clone().wait_for_task(request).await?.into_inner())
    }

    /// The error of a task that has failed for good.
    pub(crate) async fn error(&self, id: &str) -> ErrorResult {
        match self.wait(id, None).await.result_type {
            Some(orchestrator::wait_for_task_response::ResultType::Error(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    /// The value of a task that has succeeded.
    pub(crate) async fn value(&self, id: &str) -> Any {
        match self.wait(id, None).await.result_type {
            Some(orchestrator::wait_for_task_response::ResultType::Success(success)) => {
                success.result.unwrap().value.unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn shepherd(&self, most: u32) -> Shepherd {
        self.shepherd_of("default", "default", most).await
    }

    pub(crate) async fn shepherd_of(&self, domain: &str, group: &str, most: u32) -> Shepherd {
        let mut shepherd = self.stream().await;
        shepherd.hello(&next_uuid(), domain, group, most).await;
        shepherd
    }

    /// A stream on which nothing was said yet.
    pub(crate) async fn stream(&self) -> Shepherd {
        let mut cluster = ClusterServiceClient::new(channel(self.address).await);
        let (said, messages) = mpsc::channel(64);
        // Its headers come before the first message is sent (section 14).
        let answer = cluster.stream(Request::new(ReceiverStream::new(messages))).await.expect("headers");
        Shepherd { said, heard: answer.into_inner() }
    }
}

pub(crate) async fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

pub(crate) fn next_uuid() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("00000000-0000-4000-8000-{:012x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A task as a client without opinions creates it.
pub(crate) fn task(retry_policy: Option<RetryPolicy>) -> CreateTaskRequest {
    CreateTaskRequest {
        name: "test.run".to_owned(),
        domain: "default".to_owned(),
        retry_policy,
        args: "[1]".to_owned(),
        kwargs: "{}".to_owned(),
        flow_instance_id: None,
        shepherd_group: None,
    }
}

/// One connection of a shepherd.
pub(crate) struct Shepherd {
    said: mpsc::Sender<ClientMsg>,
    heard: Streaming<ServerMsg>,
}

impl Shepherd {
    pub(crate) async fn say(&self, kind: Kind) {
        self.said.send(ClientMsg { kind: Some(kind) }).await.expect("the stream is open");
    }

    pub(crate) async fn say_nothing_known(&self) {
        self.said.send(ClientMsg { kind: None }).await.expect("the stream is open");
    }

    pub(crate) async fn hello(&mut self, uuid: &str, domain: &str, group: &str, most: u32) {
        let (domain, shepherd_group) = (domain.to_owned(), group.to_owned());
        self.say(Kind::Hello(Hello { shepherd_uuid: uuid.to_owned(), max_concurrency: most, domain, shepherd_group }))
            .await;
        self.heartbeat(0, most).await;
    }

    pub(crate) async fn heartbeat(&self, current_load: u32, available_capacity: u32) {
        self.say(Kind::Status(Heartbeat { current_load, available_capacity })).await;
    }

    /// The next task; heartbeats are passed over.
    pub(crate) async fn task(&mut self) -> Task {
        loop {
            match self.heard.message().await.expect("the stream is open").expect("it goes on").kind {
                Some(server_msg::Kind::Task(task)) => return task,
                Some(server_msg::Kind::Ping(_)) => {}
                None => panic!("an empty message"),
            }
        }
    }

    /// The next heartbeats.
    pub(crate) async fn ping(&mut self) -> i64 {
        match self.heard.message().await.expect("the stream is open").expect("it goes on").kind {
            Some(server_msg::Kind::Ping(ping)) => ping.timestamp,
            other => panic!("{other:?}"),
        }
    }

    /// How the stream ends; `None` is its end without an error.
    pub(crate) async fn end(&mut self) -> Option<(Code, String)> {
        loop {
            match self.heard.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some((status.code(), status.message().to_owned())),
            }
        }
    }

    pub(crate) async fn succeed(&self, id: &str, value: Any) {
        let success = SuccessResult { result: Some(AnyValue { value: Some(value) }) };
        self.report(id, Some(ResultType::Success(success))).await;
    }

    pub(crate) async fn fail(&self, id: &str, type_name: &str) {
        let error = ErrorResult {
            r#type: type_name.to_owned(),
            message: "it broke".to_owned(),
            data: "{\"code\":\"E1\"}".to_owned(),
            retriable: false,
        };
        self.report(id, Some(ResultType::Error(error))).await;
    }

    pub(crate) async fn report(&self, id: &str, result_type: Option<ResultType>) {
        self.say(Kind::TaskResult(TaskResult { task_id: id.to_owned(), result_type })).await;
    }
}

/// A policy with a fixed wait.
pub(crate) fn fixed(delay: f64, most: Option<u32>, include: &[&str]) -> RetryPolicy {
    RetryPolicy {
        version: 1,
        stop: Some(common::RetryPolicyStop { max_attempts: most, max_delay: None }),
        wait: Some(common::RetryPolicyWait {
            kind: Some(common::retry_policy_wait::Kind::Fixed(common::RetryPolicyFixedWait { delay })),
        }),
        retry: Some(common::RetryPolicyRetry {
            include_errors: include.iter().map(|name| (*name).to_owned()).collect(),
            exclude_errors: Vec::new(),
        }),
    }
}
