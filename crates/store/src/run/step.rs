//! How a run goes on: what is pending, and what a step writes.

use crate::run::{Interest, Message, NewRun, Run, RunId, Signal};
use crate::{Blob, Duplicate, JobId, NewJob, OtherEvent, Transition};
use redrive_policy::Moment;
use std::fmt;
use std::sync::Arc;

/// Which pending runs to read. A run is pending before its first step, while it has messages, and from the time of its
/// timer on.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingRuns {
    /// The programs that the caller has, each with its newest version. Runs of other programs, and of newer versions,
    /// are left to other nodes.
    pub programs: Vec<(Arc<str>, u32)>,
    /// Only these, as far as they are pending; absent, all. Of these, a first step and messages count whatever their
    /// times are: the clocks of nodes differ a little, and a caller that has left a message wants it to be read.
    pub only: Option<Vec<RunId>>,
    /// At most so many runs: those first that have been pending longest, then by id. What a run waits with is the
    /// message that has the lowest number.
    pub limit: usize,
    /// At most so many messages of each run, those with the lowest numbers.
    pub messages: usize,
}

impl PendingRuns {
    /// Whether the caller has the program of a run.
    #[must_use]
    pub fn knows(&self, program: &str, version: u32) -> bool {
        self.programs.iter().any(|(name, newest)| **name == *program && version <= *newest)
    }
}

/// A run, and what there is for it to do.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingRun {
    /// The run.
    pub run: Run,
    /// Its messages, in the order of their numbers.
    pub messages: Vec<Message>,
}

/// What a run becomes, and what else is done, in one atomic step.
#[derive(Clone, Debug)]
pub struct RunStep {
    /// The run.
    pub id: RunId,
    /// Its revision when the step was computed.
    pub revision: u64,
    /// The version of the program that wrote the state.
    pub version: u32,
    /// The state from now on.
    pub state: Blob,
    /// The timer from now on.
    pub timer: Option<Moment>,
    /// Whether it succeeded, and its result, where the run ends or has ended; absent, it goes on.
    pub end: Option<(bool, Blob)>,
    /// The numbers of the messages that it has read.
    pub consumed: Vec<u64>,
    /// Jobs to enqueue, each with the number of the child. A job that is stored already as this child is left as it is.
    /// One that must be unique and is not refuses the step, unless it replaces what it is a duplicate of.
    pub jobs: Vec<(u64, NewJob)>,
    /// Jobs of this run to cancel. Those that have ended, or are not its own, are left as they are.
    pub cancelled: Vec<JobId>,
    /// Jobs of this run to cancel unless a worker has them. Those that are active, have ended, or are not its own, are
    /// left as they are.
    pub withdrawn: Vec<JobId>,
    /// Runs to start, without keys. A run that is stored already with the same parent is left as it is.
    pub runs: Vec<NewRun>,
    /// Messages to other runs. Runs that are not stored any more get none.
    pub signals: Vec<(RunId, Signal)>,
    /// Which events the run learns of from now on.
    pub interest: Option<Arc<Interest>>,
    /// What the run tells of itself. Those who listen learn of it if and only if the step is written.
    pub events: Vec<OtherEvent>,
}

impl RunStep {
    /// A step that changes nothing but the revision.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self {
            id: run.id,
            revision: run.revision,
            version: run.version,
            state: Arc::clone(&run.state),
            timer: run.timer,
            end: run.end.as_ref().map(|end| (end.succeeded, Arc::clone(&end.result))),
            consumed: Vec::new(),
            jobs: Vec::new(),
            cancelled: Vec::new(),
            withdrawn: Vec::new(),
            runs: Vec::new(),
            signals: Vec::new(),
            interest: run.interest.clone(),
            events: Vec::new(),
        }
    }
}

/// What a step did.
#[derive(Clone, Debug, PartialEq)]
pub struct Advanced {
    /// The run after it.
    pub run: Run,
    /// What happened to jobs: those that were enqueued, each behind those that it replaced, then those that were
    /// cancelled or withdrawn.
    pub transitions: Vec<Transition>,
    /// The runs that are pending because of it, this one included; each once, by id.
    pub pending: Vec<RunId>,
}

/// What became of a step.
pub type Stepped = Result<Advanced, RunRefusal>;

/// A step that was not written, or a message that was not delivered. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunRefusal {
    /// There is no such run.
    NotFound,
    /// The run has advanced since: this is its revision now.
    Changed(u64),
    /// The id of a job to be enqueued is that of another job.
    JobIdTaken(JobId),
    /// The id of a run to be started is that of another run.
    RunIdTaken(RunId),
    /// The job with this number must be unique, and is not. That its policy is to ignore it does not help: the run
    /// would wait for a job that is not its own.
    Duplicate(u64, Duplicate),
    /// The inbox of the run has so many messages that no more are taken from outside.
    InboxFull(usize),
}

impl fmt::Display for RunRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => write!(f, "there is no such run"),
            Self::Changed(revision) => write!(f, "the run has advanced meanwhile, to revision {revision}"),
            Self::JobIdTaken(id) => write!(f, "the id {id}, which a job of the run was to have, is taken"),
            Self::RunIdTaken(id) => write!(f, "the id {id}, which a run of the run was to have, is taken"),
            Self::Duplicate(child, duplicate) => write!(f, "the job {child} of the run is a duplicate: {duplicate}"),
            Self::InboxFull(most) => {
                write!(f, "the inbox of the run has {most} messages, the most that are taken; send it again later")
            }
        }
    }
}

impl std::error::Error for RunRefusal {}

/// How many messages may wait in the inbox of a run before signals from outside are refused. Those of its jobs and runs
/// always fit: it has started them.
pub(crate) const INBOX_MESSAGES: usize = 10_000;
