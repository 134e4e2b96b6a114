//! Removing jobs that have ended. Calls share transactions: jobs that ended at once are in one row, and those that
//! remove them one by one, each in a transaction of its own, would wait for each other.

use super::super::batcher::Weigh;
use super::super::core::{Core, WAITING_FIRST, Wanted};
use super::super::db_error::DbError;
use super::super::stored_row::StoredRow;
use super::super::{read, write};
use crate::{Job, JobId, Refusal, StoreError};
use std::sync::Arc;

/// The job that is to be removed.
pub(in crate::postgres) struct Call(pub(in crate::postgres) JobId);

impl Weigh for Call {
    fn jobs(&self) -> usize {
        1
    }
}

pub(in crate::postgres) type Answer = Result<Job, Refusal>;

pub(in crate::postgres) async fn batch(core: Arc<Core>, calls: Vec<Call>) -> Vec<Result<Answer, StoreError>> {
    let ids: Vec<JobId> = calls.into_iter().map(|Call(id)| id).collect();
    match core.repeat(|| remove(&core, &ids)).await {
        Ok(answers) => answers.into_iter().map(|answer| answer.map_err(StoreError::from)).collect(),
        Err(error) => {
            let error = StoreError::from(error);
            ids.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

/// Each job is removed once, for the first that asks for it.
async fn remove(core: &Core, ids: &[JobId]) -> Result<Vec<Result<Answer, DbError>>, DbError> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut session = core.session().await?;
    let mut locked = core.lock(&mut session, &sorted, WAITING_FIRST, Wanted::Ended).await?;
    let mut leaving: Vec<StoredRow> = Vec::with_capacity(sorted.len());
    let mut answers = Vec::with_capacity(ids.len());
    for id in ids {
        answers.push(match (locked.newer.get(id), locked.jobs.get(id).map(|stored| stored.job.state)) {
            (Some(why), _) => Err(read::newer(*id, why)),
            (None, None) => Ok(Err(Refusal::NotFound)),
            (None, Some(state)) if !state.is_terminal() => Ok(Err(Refusal::WrongState(state))),
            (None, Some(_)) => Ok(locked.jobs.remove(id).ok_or(Refusal::NotFound).map(|stored| {
                let job = Job::clone(&stored.job);
                leaving.push(stored);
                job
            })),
        });
    }
    if leaving.is_empty() {
        session.roll_back().await?;
    } else {
        session.commit(&[write::removed(&leaving, &|name| core.catalogue.queue(name))?]).await?;
    }
    Ok(answers)
}
