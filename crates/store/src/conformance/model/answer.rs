//! The answers of all operations, in one type that can be compared.

use crate::{
    EnqueueRefusal, Enqueued, Job, Listed, MessageBody, Queue, QueueRefusal, Refusal, Run, RunRefusal, Settled,
    Standing, StartRefusal, Stepped, Transition,
};
use redrive_policy::Moment;
use std::sync::Arc;

/// The answer to one step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepAnswer {
    /// To new jobs.
    Enqueued(Result<Vec<Enqueued>, EnqueueRefusal>),
    /// To a claim.
    Jobs(Vec<Job>),
    /// To a reclamation or a promotion.
    Transitions(Vec<Transition>),
    /// To extensions of leases.
    Each(Vec<Result<Job, Refusal>>),
    /// To the ends of runs.
    Settled(Vec<Result<Settled, Refusal>>),
    /// To a removal.
    One(Result<Job, Refusal>),
    /// To a cancellation, an activation or a redrive.
    Transition(Result<Transition, Refusal>),
    /// To a pruning.
    Count(usize),
    /// To a pause.
    Queue(Option<Queue>),
    /// To the removal of a queue.
    Forgotten(Result<Queue, QueueRefusal>),
    /// To a pruning of queues.
    Names(Vec<Arc<str>>),
    /// To a read of one job.
    Job(Option<Job>),
    /// To a list.
    Listed(Listed),
    /// To a question for how groups stand.
    Standings(Vec<Standing>),
    /// To a list of the queues.
    Queues(Vec<Queue>),
    /// To a question for the next wake.
    Wake(Option<Moment>),
    /// To new runs.
    Started(Result<Vec<Run>, StartRefusal>),
    /// To steps of runs.
    Stepped(Vec<Stepped>),
    /// To a signal.
    Signalled(Result<Run, RunRefusal>),
    /// To a question for what is pending: the messages without their numbers.
    Pending(Vec<(Run, Vec<(Moment, MessageBody)>)>),
    /// To a read of one run.
    Run(Option<Run>),
    /// To a list of runs.
    Runs(Vec<Run>),
    /// To a step that asks nothing.
    Nothing,
}

impl StepAnswer {
    /// The jobs in the answer.
    #[must_use]
    pub fn jobs(&self) -> Vec<&Job> {
        match self {
            Self::Enqueued(Ok(answers)) => answers.iter().map(enqueued).collect(),
            Self::Jobs(jobs) => jobs.iter().collect(),
            Self::Each(answers) => answers.iter().flatten().collect(),
            Self::One(Ok(job)) | Self::Job(Some(job)) => vec![job],
            Self::Transitions(transitions) => transitions.iter().map(|transition| &transition.job).collect(),
            Self::Settled(answers) => answers.iter().flatten().map(Settled::job).collect(),
            Self::Transition(Ok(transition)) => vec![&transition.job],
            Self::Listed(listed) => listed.jobs.iter().collect(),
            Self::Stepped(answers) => {
                let transitions = answers.iter().flatten().flat_map(|advanced| &advanced.transitions);
                transitions.map(|transition| &transition.job).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The refusals in the answer.
    #[must_use]
    pub fn refusals(&self) -> Vec<&Refusal> {
        match self {
            Self::Each(answers) => answers.iter().filter_map(|answer| answer.as_ref().err()).collect(),
            Self::Settled(answers) => answers.iter().filter_map(|answer| answer.as_ref().err()).collect(),
            Self::One(Err(refusal)) | Self::Transition(Err(refusal)) => vec![refusal],
            _ => Vec::new(),
        }
    }
}

const fn enqueued(answer: &Enqueued) -> &Job {
    answer.job()
}
