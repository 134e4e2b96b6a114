//! The dead letters of the engine.

use super::super::{DeadFilter, DeadPage, Start};
use super::{Local, refusal};
use crate::ClientError;
use redrive_engine::Engine;
use redrive_policy::Moment;
use redrive_store::{Entry, Filter, Job, JobId, Page, State};
use serde::Deserialize;

/// How many jobs are read from the store at once.
const STEP: usize = 500;

/// One page of those that match, the latest first.
pub(super) async fn page(
    local: &Local,
    wanted: &DeadFilter,
    start: &Start,
    limit: usize,
) -> Result<DeadPage, ClientError> {
    let filter = Filter {
        queue: wanted.queue.as_deref().map(Into::into),
        kind: wanted.kind.as_deref().map(Into::into),
        state: Some(State::Discarded),
        dead: Some(true),
        ..Filter::default()
    };
    let (after, mut offset) = match start {
        Start::Offset(offset) => (None, *offset),
        Start::Cursor(text) => (Some(entry(text)?), 0),
    };
    let mut found = DeadPage { jobs: Vec::new(), total: None, next: None };
    let mut step = Page { after, ..Page::new(0, STEP) };
    loop {
        let listed = local.engine.list(filter.clone(), step).await.map_err(refusal)?;
        found.total = listed.total.filter(|_| wanted.error_type.is_none());
        for job in listed.jobs {
            let entry = filter.entry(&job);
            if fits(&job, wanted) {
                if offset > 0 {
                    offset -= 1;
                } else if found.jobs.len() < limit {
                    found.jobs.push(local.job_data(job));
                } else {
                    found.next = step.after.map(cursor);
                    return Ok(found);
                }
            }
            step.after = Some(entry);
        }
        let Some(next) = listed.next else { return Ok(found) };
        step = next;
    }
}

fn cursor(entry: Entry) -> Start {
    Start::Cursor(format!("{}.{}", entry.ended.unwrap_or_default().micros(), entry.id))
}

fn entry(cursor: &str) -> Result<Entry, ClientError> {
    let parsed = cursor.split_once('.').and_then(|(ended, id)| {
        let ended = Some(Moment::from_micros(ended.parse().ok()?));
        Some(Entry { ended, id: id.parse().ok()? })
    });
    parsed.ok_or_else(|| ClientError::refused(400, "invalid_request", format_args!("\"{cursor}\" is not a cursor")))
}

/// Whether the most recent failure is of the wanted type.
fn fits(job: &Job, wanted: &DeadFilter) -> bool {
    #[derive(Deserialize)]
    struct Error {
        r#type: String,
    }
    wanted.error_type.as_ref().is_none_or(|wanted| {
        let error = job.failures.last().and_then(|run| serde_json::from_slice::<Error>(&run.error).ok());
        error.is_some_and(|error| error.r#type == *wanted)
    })
}

/// A job that is a dead letter; any other is not found here.
pub(super) async fn dead(engine: &Engine, id: JobId) -> Result<Job, ClientError> {
    let job = engine.job(id).await.map_err(refusal)?;
    if job.dead {
        Ok(job)
    } else {
        Err(ClientError::refused(404, "not_found", format_args!("there is no job {id} among the dead letters")))
    }
}
