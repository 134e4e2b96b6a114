//! Workflows, schedules, events and workers of the engine in this process.

use super::super::Ask;
use super::submit::{MAX_BYTES, refused};
use super::{Local, events};
use crate::ClientError;
use redrive_engine::Engine;
use redrive_ojs::Limits;
use redrive_ojs::cron::CronJob;
use redrive_ojs::json::Members;
use redrive_ojs::runs::RunsError;
use redrive_ojs::runs::schedules::{self, ScheduleList};
use redrive_ojs::runs::workflows::{self, Workflow};
use redrive_ojs::workers::{list_workers, no_such_worker, show_worker};
use redrive_ojs::workflows::WorkflowLimits;
use serde_json::{Value, json};

/// Does what is asked. The answers are those of a server.
pub(super) async fn ask(local: &Local, ask: Ask<'_>) -> Result<Value, ClientError> {
    let (engine, limits) = (&local.engine, Limits::default());
    match ask {
        Ask::StartWorkflow(document) => {
            let text = text(&document)?;
            let limits = WorkflowLimits::new(WorkflowLimits::JOBS, limits);
            workflow(workflows::start(engine, &members(&text)?, limits).await)
        }
        Ask::Workflow(id) => workflow(workflows::show(engine, id).await),
        Ask::CancelWorkflow(id) => workflow(workflows::cancel(engine, id).await),
        Ask::ListWorkflows { ended, after, limit } => {
            let after = after.and_then(|after| after.parse().ok());
            let found = workflows::list(engine, ended, after, limit).await.map_err(refusal)?;
            let next = found.last().filter(|_| found.len() == limit).map(|last| last.id().to_string());
            let found: Vec<Value> = found.iter().map(|found| written(|out| found.push(out))).collect();
            Ok(json!({ "workflows": found, "next_after": next }))
        }
        Ask::Register(document) => {
            let text = text(&document)?;
            schedule(schedules::register(engine, &members(&text)?, &limits).await)
        }
        Ask::Replace(name, document) => {
            let text = text(&document)?;
            schedule(schedules::replace(engine, name, &members(&text)?, &limits).await.map(|(schedule, _)| schedule))
        }
        Ask::Schedule(name) => schedule(schedules::show(engine, name).await),
        Ask::Switch(name, enabled) => schedule(schedules::switch(engine, name, enabled).await),
        Ask::DeleteSchedule(name) => schedule(schedules::delete(engine, name).await),
        Ask::ListSchedules { after, limit } => {
            let wanted = ScheduleList { after: after.as_deref(), limit, ..ScheduleList::default() };
            let page = schedules::list(engine, wanted).await.map_err(refusal)?;
            let next = page.jobs.last().filter(|_| page.goes_on).map(|last| last.name().to_owned());
            let found: Vec<Value> = page.jobs.iter().map(|job| written(|out| job.push(out))).collect();
            Ok(json!({ "cron_jobs": found, "pagination": { "next_cursor": next } }))
        }
        Ask::ListEvents { filter, limit } => events::list(local, filter, limit),
        Ask::ListWorkers { after, limit } => workers(engine, after.as_deref(), limit).await,
        Ask::Worker(id) => match show_worker(engine, id).await.map_err(super::refusal)? {
            Some(worker) => Ok(worker),
            None => Err(ClientError::refused(404, "not_found", no_such_worker(engine, id))),
        },
        Ask::Webhooks(_) => Err(ClientError::refused(409, "not_configured", NO_WEBHOOKS)),
    }
}

/// Why there are none. A subscription without a server would collect events that nobody sends.
const NO_WEBHOOKS: &str = "an engine in this process sends no webhooks: follow client.events(), or serve the folder \
                           with `redrive serve` and use Client::http";

async fn workers(engine: &Engine, after: Option<&str>, limit: usize) -> Result<Value, ClientError> {
    let (workers, _) = list_workers(engine).await.map_err(super::refusal)?;
    let now = engine.now();
    let mut rest = workers.iter().filter(|listed| after.is_none_or(|after| *listed.worker.id > *after));
    let page: Vec<Value> = rest.by_ref().take(limit).map(|listed| listed.json(now)).collect();
    let next = rest.next().and(page.last()).map(|last| last["id"].clone());
    Ok(json!({ "items": page, "pagination": { "next_cursor": next } }))
}

/// A document as a server would receive it.
fn text(document: &Value) -> Result<String, ClientError> {
    let text = document.to_string();
    if text.len() > MAX_BYTES {
        let message = format!("found a document of {} bytes; allowed are {MAX_BYTES} bytes", text.len());
        return Err(ClientError::refused(413, "payload_too_large", message));
    }
    Ok(text)
}

fn members(text: &str) -> Result<Members<'_>, ClientError> {
    Members::parse(text).map_err(ClientError::unwritable)
}

fn workflow(answer: Result<Workflow, RunsError>) -> Result<Value, ClientError> {
    answer.map(|workflow| written(|out| workflow.push(out))).map_err(refusal)
}

fn schedule(answer: Result<CronJob, RunsError>) -> Result<Value, ClientError> {
    answer.map(|schedule| written(|out| schedule.push(out))).map_err(refusal)
}

fn written(push: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    push(&mut out);
    serde_json::from_slice(&out).unwrap_or_default()
}

fn refusal(error: RunsError) -> ClientError {
    let message = error.to_string();
    match error {
        RunsError::Invalid(invalid) => refused(invalid),
        RunsError::NoSuchSchedule(..) | RunsError::NoSuchWorkflow(_) => ClientError::refused(404, "not_found", message),
        RunsError::ScheduleExists(_) | RunsError::WorkflowOver(..) => ClientError::refused(409, "conflict", message),
        RunsError::WorkflowExists(_) => ClientError::refused(409, "duplicate", message),
        RunsError::Unreadable(_) => ClientError::refused(500, "internal_error", message),
        RunsError::Engine(error) => super::refusal(error),
    }
}
