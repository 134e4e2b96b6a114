//! Azolla's single-shot workers, without a shepherd: the server of their reports, and what a report means.

use super::process::{CommandExit, ExitReason};
use crate::exit::Failed;
use redrive_azolla::common::task_result::ResultType;
use redrive_azolla::shepherd::worker_server::{Worker, WorkerServer};
use redrive_azolla::shepherd::{ReportResultRequest, ReportResultResponse};
use redrive_azolla::{LONGEST_MESSAGE, json_of};
use redrive_worker::{Failure, Job, Outcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// How deep values may nest that workers report.
const NESTING: usize = 64;

/// The reports of workers that run, by task; `None` until the worker reports.
type Reports = Arc<Mutex<HashMap<String, Option<ResultType>>>>;

/// Takes reports at an address of loopback.
pub(super) struct AzollaWorkers {
    reports: Reports,
    address: SocketAddr,
}

struct Receiver(Reports);

fn locked(reports: &Reports) -> MutexGuard<'_, HashMap<String, Option<ResultType>>> {
    reports.lock().unwrap_or_else(PoisonError::into_inner)
}

#[tonic::async_trait]
impl Worker for Receiver {
    async fn report_result(
        &self,
        request: Request<ReportResultRequest>,
    ) -> Result<Response<ReportResultResponse>, Status> {
        let ReportResultRequest { task_id, result } = request.into_inner();
        let result = result.filter(|result| result.task_id == task_id);
        let Some(result) = result else {
            return Err(Status::invalid_argument("the report has no result, or one of another task"));
        };
        let mut reports = locked(&self.0);
        let Some(report) = reports.get_mut(&task_id) else {
            return Err(Status::not_found(format!("no worker runs the task {task_id:?}")));
        };
        // The first report counts.
        if report.is_none() {
            *report = result.result_type;
        }
        Ok(Response::new(ReportResultResponse { success: true, message: String::new() }))
    }
}

impl AzollaWorkers {
    /// Starts to take reports.
    pub(super) async fn start() -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0").await.and_then(|one| Ok((one.local_addr()?, one)));
        let (address, listener) =
            listener.map_err(|error| Failed::unreachable(format!("cannot listen for reports of workers: {error}")))?;
        let reports = Reports::default();
        let service = WorkerServer::new(Receiver(Arc::clone(&reports))).max_decoding_message_size(4 * LONGEST_MESSAGE);
        let serving = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
        Ok(Self { reports, address })
    }

    /// What the worker of a task is started with.
    pub(super) fn arguments(&self, binary: &str, job: &Job) -> Vec<String> {
        let envelope: Value = serde_json::from_str(&job.envelope_json()).unwrap_or_default();
        let meta = &envelope["meta"];
        let name = meta["task"].as_str().unwrap_or_else(|| job.kind());
        let kwargs = meta.get("kwargs").map_or_else(|| "{}".to_owned(), Value::to_string);
        locked(&self.reports).insert(job.id().to_owned(), None);
        let endpoint = format!("http://{}", self.address);
        let options = [
            ("--task-id", job.id()),
            ("--name", name),
            ("--args", job.args_json()),
            ("--kwargs", &kwargs),
            ("--shepherd-endpoint", &endpoint),
        ];
        let options = options.into_iter().flat_map(|(option, value)| [option, value]);
        std::iter::once(binary).chain(options).map(str::to_owned).collect()
    }

    /// What the worker of a task has reported. Its exit code says nothing: some workers end with 0 after a failure.
    /// Where nothing was reported, how the process ended decides, and an ordinary end is a failure too.
    pub(super) fn outcome(&self, id: &str, exit: &CommandExit) -> Option<Outcome> {
        let report = locked(&self.reports).remove(id).flatten();
        match report {
            Some(ResultType::Success(success)) => {
                let json = json_of(success.result, NESTING);
                RawValue::from_string(json).ok().map(|result| Outcome::Done(Some(result)))
            }
            Some(ResultType::Error(error)) => {
                let data: Value = serde_json::from_str(&error.data).unwrap_or_else(|_| json!({ "data": error.data }));
                Some(Outcome::Failed(Failure::new(error.r#type, error.message).with_details(data)))
            }
            None if exit.reason == ExitReason::Exit(0) => {
                let message = "the worker ended without a report";
                Some(Outcome::Failed(Failure::new("exec.no_report", message)))
            }
            None => None,
        }
    }
}
