//! The dead letters of the engine.

use super::super::{DeadFilter, DeadPage};
use super::{refusal, told};
use crate::ClientError;
use redrive_engine::Engine;
use redrive_store::{Filter, Job, JobId, Page, State};
use serde::Deserialize;

/// How many jobs are read from the store at once.
const STEP: usize = 500;

/// One page of what fits, newest first.
pub(super) async fn page(
    engine: &Engine,
    wanted: &DeadFilter,
    offset: usize,
    limit: usize,
) -> Result<DeadPage, ClientError> {
    let filter = Filter {
        queue: wanted.queue.as_deref().map(Into::into),
        kind: wanted.kind.as_deref().map(Into::into),
        state: Some(State::Discarded),
        dead: Some(true),
        ..Filter::default()
    };
    let mut found = DeadPage { jobs: Vec::new(), total: 0 };
    let mut step = Page { offset: 0, limit: STEP };
    loop {
        let listed = engine.list(filter.clone(), step).await.map_err(refusal)?;
        let count = listed.jobs.len();
        for job in listed.jobs.into_iter().filter(|job| fits(job, wanted)) {
            if (offset..offset.saturating_add(limit)).contains(&found.total) {
                found.jobs.push(told(job));
            }
            found.total += 1;
        }
        if count < STEP {
            return Ok(found);
        }
        step.offset += STEP;
    }
}

/// Whether the most recent failure is of the type that is meant.
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
