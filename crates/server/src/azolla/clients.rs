//! Programs that create tasks and wait for them.

use super::Protocol;
use super::status::{status_of, stopping};
use crate::listen::stop_of;
use redrive_azolla::orchestrator::client_service_server::ClientService;
use redrive_azolla::orchestrator::{
    CreateFlowRequest, CreateFlowResponse, CreateTaskRequest, CreateTaskResponse, PublishFlowEventRequest,
    PublishFlowEventResponse, PublishTaskEventRequest, PublishTaskEventResponse, WaitForFlowRequest,
    WaitForFlowResponse, WaitForTaskRequest, WaitForTaskResponse, WaitForTaskStatus,
};
use redrive_azolla::{Answer, answer_of, submission};
use redrive_engine::EngineError;
use redrive_store::{JobId, Refusal};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use uuid::Uuid;

/// Calls of clients.
pub(super) struct Clients(pub(super) Arc<Protocol>);

impl Clients {
    /// What is known of a task at this moment.
    async fn look(&self, id: JobId, domain: &str) -> Result<Answer, EngineError> {
        match self.0.app.engine.job(id).await {
            Ok(job) => Ok(answer_of(Some(&job), domain)),
            Err(EngineError::Refused(_, Refusal::NotFound)) => Ok(Answer::NotFound),
            Err(error) => Err(error),
        }
    }

    /// Waits until a task has ended, or until a time.
    async fn wait(&self, id: JobId, domain: &str, until: Option<Instant>) -> Result<WaitForTaskResponse, Status> {
        let mut end = self.0.app.engine.await_end(id);
        let over = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        loop {
            match self.look(id, domain).await {
                Ok(Answer::Running) => {}
                Ok(known) => return Ok(known.into()),
                Err(error) => return Ok(unknown(&error)),
            }
            tokio::select! {
                () = end.ended() => {}
                () = &mut over => return Ok(WaitForTaskStatus::Timeout.into()),
                () = stop_of(self.0.app.stopping.clone()) => return Err(stopping()),
            }
        }
    }
}

/// The answer where the store has none.
fn unknown(error: &EngineError) -> WaitForTaskResponse {
    tracing::error!("a task cannot be looked at: {error}");
    WaitForTaskStatus::InternalError.into()
}

#[tonic::async_trait]
impl ClientService for Clients {
    async fn create_task(&self, request: Request<CreateTaskRequest>) -> Result<Response<CreateTaskResponse>, Status> {
        let Protocol { app, settings, policies, .. } = &*self.0;
        let request = request.into_inner();
        let task = submission(&app.engine, policies, &request, &app.limits.of_jobs(), settings.of_tasks());
        let task = task.map_err(|wrong| Status::invalid_argument(wrong.join("; ")))?;
        let engine = Arc::clone(&app.engine);
        // A caller that goes away must not leave a task that no shepherd is woken for.
        let created = tokio::spawn(async move { engine.submit(vec![task]).await }).await;
        let created = created.map_err(|_| Status::internal("the call did not come to its end"))?;
        let created = created.map_err(|error| status_of(&error))?.pop();
        let created = created.ok_or_else(|| Status::internal("the store took a task and did not say which"))?;
        Ok(Response::new(CreateTaskResponse { task_id: created.job().id.to_string() }))
    }

    async fn wait_for_task(
        &self,
        request: Request<WaitForTaskRequest>,
    ) -> Result<Response<WaitForTaskResponse>, Status> {
        let WaitForTaskRequest { task_id, domain, timeout_ms } = request.into_inner();
        let id = Uuid::try_parse(&task_id).map_err(|_| {
            Status::invalid_argument(format!("Invalid task_id: found {task_id:?}; allowed is that of a task"))
        })?;
        let id = JobId::from_bytes(id.into_bytes());
        if timeout_ms == Some(0) {
            // Clients that ask again and again know no other answer than these two.
            let known = self.look(id, &domain).await.map_err(|error| unknown(&error));
            let known = match known {
                Ok(Answer::NotFound) => Answer::Running,
                Ok(known) => known,
                Err(unknown) => return Ok(Response::new(unknown)),
            };
            return Ok(Response::new(known.into()));
        }
        // A time that no clock reaches is none.
        let until = timeout_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        self.wait(id, &domain, until).await.map(Response::new)
    }

    async fn create_flow(&self, _: Request<CreateFlowRequest>) -> Result<Response<CreateFlowResponse>, Status> {
        Err(absent("CreateFlow"))
    }

    async fn wait_for_flow(&self, _: Request<WaitForFlowRequest>) -> Result<Response<WaitForFlowResponse>, Status> {
        Err(absent("WaitForFlow"))
    }

    async fn publish_task_event(
        &self,
        _: Request<PublishTaskEventRequest>,
    ) -> Result<Response<PublishTaskEventResponse>, Status> {
        Err(absent("PublishTaskEvent"))
    }

    async fn publish_flow_event(
        &self,
        _: Request<PublishFlowEventRequest>,
    ) -> Result<Response<PublishFlowEventResponse>, Status> {
        Err(absent("PublishFlowEvent"))
    }
}

fn absent(call: &str) -> Status {
    Status::unimplemented(format!(
        "{call} is not implemented: Azolla's orchestrator stores nothing for it either, and answers that it did. \
         Workflows are in Open Job Spec's API, at /ojs/v1/workflows"
    ))
}
