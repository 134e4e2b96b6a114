//! Signs of life and the ends of runs.

use super::super::core::{Core, held};
use super::super::trouble::Trouble;
use crate::memory::rules;
use crate::{Hold, Job, JobId, Refusal, Settlement, StoreError};
use redrive_policy::{Moment, Span};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What workers say about the runs that they hold, and when.
pub(in crate::postgres) struct Call {
    pub(in crate::postgres) words: Words,
    pub(in crate::postgres) now: Moment,
}

pub(in crate::postgres) enum Words {
    Alive(Vec<Hold>, Option<Span>),
    Ended(Vec<Settlement>),
}

impl Call {
    fn ids(&self) -> Vec<JobId> {
        match &self.words {
            Words::Alive(holds, _) => holds.iter().map(|hold| hold.id).collect(),
            Words::Ended(settlements) => settlements.iter().map(|settlement| settlement.hold.id).collect(),
        }
    }
}

pub(in crate::postgres) type Answers = Vec<Result<Job, Refusal>>;

/// Takes the words of several callers in one transaction, one after the other.
pub(in crate::postgres) async fn batch(core: Arc<Core>, calls: Vec<Call>) -> Vec<Result<Answers, StoreError>> {
    match core.repeat(|| heard(&core, &calls)).await {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(trouble) => {
            let error = StoreError::from(trouble);
            calls.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

async fn heard(core: &Core, calls: &[Call]) -> Result<Vec<Answers>, Trouble> {
    let ids: BTreeSet<JobId> = calls.iter().flat_map(Call::ids).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let mut session = core.session().await?;
    let mut jobs = core.hold(&mut session, &ids, false).await?;
    let mut answers = Vec::with_capacity(calls.len());
    for Call { words, now } in calls {
        answers.push(match words {
            Words::Alive(holds, span) => {
                let alive =
                    |hold: &Hold| held(&mut jobs, hold.id)?.change(|job| rules::extend(job, &hold.proof, *span, *now));
                holds.iter().map(alive).collect()
            }
            Words::Ended(settlements) => {
                let ended = |settlement: &Settlement| {
                    held(&mut jobs, settlement.hold.id)?.change(|job| rules::settle(job, settlement, *now))
                };
                settlements.iter().map(ended).collect()
            }
        });
    }
    core.commit(&mut session, &jobs.values().collect::<Vec<_>>()).await?;
    Ok(answers)
}
