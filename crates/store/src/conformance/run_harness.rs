//! Runs in short form, for the cases about them.

use super::harness::{Harness, START};
use super::{Violation, ensure, same};
use crate::{
    Advanced, Blob, Job, JobId, Message, MessageBody, NewJob, NewRun, Parent, PendingRun, PendingRuns, Run, RunFilter,
    RunId, RunStep, Signal, StartRefusal, Stepped,
};
use std::sync::Arc;

/// The program of runs, unless a case says otherwise.
pub(super) const PROGRAM: &str = "flow";
/// The newest version of it that the suite asks for.
pub(super) const VERSION: u32 = 3;

impl Harness<'_> {
    /// A run to be started.
    pub(super) fn new_run(&mut self) -> NewRun {
        let id = RunId::from_bytes(self.new_id().to_bytes());
        NewRun {
            id,
            program: PROGRAM.into(),
            version: VERSION,
            state: blob("input"),
            key: None,
            parent: None,
            depth: 0,
            seed: 0xfeed_face_cafe_f00d,
        }
    }

    pub(super) async fn start(&self, runs: Vec<NewRun>) -> Result<Result<Vec<Run>, StartRefusal>, Violation> {
        Ok(self.store().start_runs(runs, self.now()).await?)
    }

    pub(super) async fn start_new(&self, new: NewRun) -> Result<Run, Violation> {
        match <[Run; 1]>::try_from(self.start(vec![new]).await??) {
            Ok([run]) => Ok(run),
            Err(runs) => Err(Violation::new(format!("one run was started, and the answer is {runs:?}"))),
        }
    }

    /// A run that is pending because it is new.
    pub(super) async fn new_started(&mut self) -> Result<Run, Violation> {
        let new = self.new_run();
        self.start_new(new).await
    }

    /// A run that waits for messages.
    pub(super) async fn waiting_run(&mut self) -> Result<Run, Violation> {
        let run = self.new_started().await?;
        Ok(self.stepped(RunStep::of(&run)).await?.run)
    }

    /// A run that waits for messages, with these jobs.
    pub(super) async fn run_with_jobs(&mut self, jobs: Vec<NewJob>) -> Result<(Run, Vec<Job>), Violation> {
        let run = self.new_started().await?;
        let jobs = (1..).zip(jobs).collect();
        let advanced = self.stepped(RunStep { jobs, ..RunStep::of(&run) }).await?;
        Ok((advanced.run, advanced.transitions.into_iter().map(|transition| transition.job).collect()))
    }

    /// A run that waits for messages, with one job.
    pub(super) async fn run_with_job(&mut self) -> Result<(Run, Job), Violation> {
        let new = self.job();
        self.run_with_this_job(new).await
    }

    pub(super) async fn run_with_this_job(&mut self, new: NewJob) -> Result<(Run, Job), Violation> {
        let (run, mut jobs) = self.run_with_jobs(vec![new]).await?;
        ensure!(jobs.len() == 1, "a step with one job answers the jobs {jobs:?}");
        let job = jobs.remove(0);
        Ok((run, job))
    }

    /// A run that another run has started, both of which wait for messages.
    pub(super) async fn parent_and_child(&mut self) -> Result<(Run, Run), Violation> {
        let parent = self.new_started().await?;
        let new = NewRun { parent: Some(Parent { run: parent.id, child: 7 }), depth: 1, ..self.new_run() };
        let id = new.id;
        let parent = self.stepped(RunStep { runs: vec![new], ..RunStep::of(&parent) }).await?.run;
        let child = self.run(id).await?;
        Ok((parent, self.stepped(RunStep::of(&child)).await?.run))
    }

    /// Writes one step; returns the whole answer of the store.
    pub(super) async fn step(&self, step: RunStep) -> Result<Stepped, Violation> {
        match <[Stepped; 1]>::try_from(self.store().advance(vec![step], self.now()).await?) {
            Ok([stepped]) => Ok(stepped),
            Err(answers) => Err(Violation::new(format!("one step was written, and the answers are {answers:?}"))),
        }
    }

    /// Writes one step, which must not be refused.
    pub(super) async fn stepped(&self, step: RunStep) -> Result<Advanced, Violation> {
        Ok(self.step(step).await??)
    }

    pub(super) async fn run(&self, id: RunId) -> Result<Run, Violation> {
        self.store().run(id).await?.ok_or_else(|| Violation::new(format!("the run {id} is lost")))
    }

    pub(super) async fn signal(&self, id: RunId, name: &str) -> Result<Run, Violation> {
        Ok(self.store().signal(id, signal(name), self.now()).await??)
    }

    pub(super) async fn pending_with(&self, pending: PendingRuns) -> Result<Vec<PendingRun>, Violation> {
        Ok(self.store().pending_runs(pending, self.now()).await?)
    }

    /// The runs of the program that are pending, in order.
    pub(super) async fn pending(&self) -> Result<Vec<RunId>, Violation> {
        Ok(run_ids(&self.pending_with(all_pending()).await?))
    }

    /// What is in the inbox of a run.
    pub(super) async fn inbox(&self, id: RunId) -> Result<Vec<Message>, Violation> {
        let pending = self.pending_with(PendingRuns { only: Some(vec![id]), ..all_pending() }).await?;
        let messages: Vec<Message> = pending.into_iter().flat_map(|pending| pending.messages).collect();
        same!(messages.is_sorted_by(|a, b| a.number < b.number), true, "the order of the messages {messages:?}");
        Ok(messages)
    }

    /// What the messages in the inbox of a run say.
    pub(super) async fn bodies(&self, id: RunId) -> Result<Vec<MessageBody>, Violation> {
        Ok(self.inbox(id).await?.into_iter().map(|message| message.body).collect())
    }

    pub(super) async fn listed_runs(&self, filter: RunFilter) -> Result<Vec<RunId>, Violation> {
        Ok(self.store().runs(filter, usize::MAX).await?.into_iter().map(|run| run.id).collect())
    }

    /// Everything that a store returns of runs without being given an id; messages without their numbers.
    pub(super) async fn runs_view(&self) -> Result<RunsView, Violation> {
        let pending = self.pending_with(all_pending()).await?;
        let said =
            |pending: PendingRun| pending.messages.into_iter().map(|message| (message.at, message.body)).collect();
        Ok(RunsView {
            runs: self.store().runs(RunFilter::default(), usize::MAX).await?,
            pending: run_ids(&pending),
            messages: pending.into_iter().map(said).collect(),
            next: self.store().next_run(programs()).await?,
        })
    }
}

/// Everything that a store returns of runs without being given an id.
#[derive(Debug, PartialEq)]
pub(super) struct RunsView {
    runs: Vec<Run>,
    pending: Vec<RunId>,
    messages: Vec<Vec<(redrive_policy::Moment, MessageBody)>>,
    next: Option<redrive_policy::Moment>,
}

pub(super) fn programs() -> Vec<(Arc<str>, u32)> {
    vec![(PROGRAM.into(), VERSION)]
}

/// All runs of the program that are pending, with all their messages.
pub(super) fn all_pending() -> PendingRuns {
    PendingRuns { programs: programs(), only: None, limit: usize::MAX, messages: usize::MAX }
}

pub(super) fn run_ids(pending: &[PendingRun]) -> Vec<RunId> {
    pending.iter().map(|pending| pending.run.id).collect()
}

pub(super) fn blob(text: &str) -> Blob {
    Blob::from(text.as_bytes())
}

pub(super) fn signal(name: &str) -> Signal {
    Signal { name: name.into(), body: blob("{\"n\":1}") }
}

pub(super) fn said(name: &str) -> MessageBody {
    MessageBody::Signal(signal(name))
}

/// The id of a run that is not stored.
pub(super) fn no_run() -> RunId {
    RunId::new(START, u128::MAX)
}

/// The id of a job that is not stored.
pub(super) fn no_job() -> JobId {
    JobId::new(START, u128::MAX)
}
