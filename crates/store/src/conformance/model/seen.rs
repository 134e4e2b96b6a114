//! What the verbs answer, in one type that can be compared.

use crate::{Cancelled, DuplicateId, Enqueued, Job, Listed, Queue, QueueRefusal, Refusal};
use redrive_policy::Moment;
use std::sync::Arc;

/// The answer to one step.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// To new jobs.
    Enqueued(Result<Vec<Enqueued>, DuplicateId>),
    /// To a claim, a reclamation or a promotion.
    Jobs(Vec<Job>),
    /// To holds.
    Each(Vec<Result<Job, Refusal>>),
    /// To something that concerns one job.
    One(Result<Job, Refusal>),
    /// To a cancellation.
    Cancelled(Result<Cancelled, Refusal>),
    /// To a pruning.
    Count(usize),
    /// To a pause.
    Queue(Option<Queue>),
    /// To the wish that a queue is forgotten.
    Forgotten(Result<Queue, QueueRefusal>),
    /// To a pruning of queues.
    Names(Vec<Arc<str>>),
    /// To a look at one job.
    Job(Option<Job>),
    /// To a list.
    Listed(Listed),
    /// To a look at the queues.
    Queues(Vec<Queue>),
    /// To the question for the next moment.
    Wake(Option<Moment>),
    /// To a step that asks nothing.
    Nothing,
}

impl Seen {
    /// The jobs in the answer.
    #[must_use]
    pub fn jobs(&self) -> Vec<&Job> {
        match self {
            Self::Enqueued(Ok(answers)) => answers.iter().map(enqueued).collect(),
            Self::Jobs(jobs) => jobs.iter().collect(),
            Self::Each(answers) => answers.iter().flatten().collect(),
            Self::One(Ok(job)) | Self::Job(Some(job)) => vec![job],
            Self::Cancelled(Ok(cancelled)) => vec![&cancelled.job],
            Self::Listed(listed) => listed.jobs.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The refusals in the answer.
    #[must_use]
    pub fn refusals(&self) -> Vec<&Refusal> {
        match self {
            Self::Each(answers) => answers.iter().filter_map(|answer| answer.as_ref().err()).collect(),
            Self::One(Err(refusal)) | Self::Cancelled(Err(refusal)) => vec![refusal],
            _ => Vec::new(),
        }
    }
}

fn enqueued(answer: &Enqueued) -> &Job {
    match answer {
        Enqueued::Created(job) | Enqueued::Existing(job) => job,
    }
}
