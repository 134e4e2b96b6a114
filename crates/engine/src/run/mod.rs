//! Runs: pure programs above single jobs.
//!
//! A program is a function from a state and an input to the next state and effects. It knows no store, reads no clock
//! and draws no random numbers. The engine reads runs that are pending with their messages, calls the program once for
//! each input, and writes the last state, the messages that were read and all effects in one atomic step. A crash
//! before that leaves everything as it was, and the program is called again with the same inputs.

mod advance;
mod advancer;
mod clock_step;
mod draft;
mod limits;

pub use advancer::{AdvanceNotice, advance_runs};
pub use limits::RunLimits;

use crate::{Engine, EngineError, Submission};
use redrive_policy::{Draw, Moment};
use redrive_store::{
    Blob, EventBody, Interest, JobId, MessageBody, NewRun, OtherEvent, Run, RunFilter, RunId, RunRefusal, Signal,
    StartRefusal,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, watch};

/// A program: what runs of its kind do.
pub trait Program: Send + Sync {
    /// The name under which its runs are stored.
    fn kind(&self) -> &'static str;

    /// The version of the states that it writes. It reads those of all earlier versions.
    fn version(&self) -> u32;

    /// What the run does next. The same context and input always give the same step.
    ///
    /// # Errors
    /// Why the state cannot be read. The run fails with this.
    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String>;

    /// What the run does with the first of these inputs, of which there is at least one, or with as many more as it
    /// takes at once; and how many it has taken. A program whose state is large reads and writes it once for many
    /// messages.
    ///
    /// # Errors
    /// As for [`Program::step`].
    fn steps(&self, context: &Context<'_>, inputs: &[Input<'_>]) -> Result<(usize, ProgramStep), String> {
        let first = inputs.first().ok_or("there is nothing to do")?;
        Ok((1, self.step(context, first)?))
    }

    /// A job that the program has asked for, as the engine takes it. `document` is what the effect has.
    ///
    /// # Errors
    /// Why it cannot be enqueued. The program is called with [`Input::JobRefused`].
    fn submission(&self, engine: &Engine, document: &[u8], now: Moment) -> Result<Submission, String>;

    /// Whether its runs are called with the signal [`CLOCK_STEPPED`] when the wall clock was set, and when the engine
    /// starts: their timers stand for times of the wall clock.
    fn follows_wall_clock(&self) -> bool {
        false
    }

    /// How many jobs and runs one run may start.
    fn most_children(&self, limits: &RunLimits) -> u64 {
        limits.children
    }
}

/// The signal that the wall clock was set, or may have been set while no engine was there.
pub const CLOCK_STEPPED: &str = "clock_stepped";

/// What a program knows of its run besides the input. All times are those of the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The run.
    pub id: RunId,
    /// The state, as the last step has left it; at first, what the run was started with.
    pub state: &'a [u8],
    /// The version of the program that wrote the state.
    pub version: u32,
    /// When the run was started.
    pub created: Moment,
    /// What time it is.
    pub now: Moment,
    /// The random number of this step. It is the same when the step is computed again.
    pub draw: Draw,
    /// Whether the run has ended.
    pub ended: bool,
    /// Random bits, from which the ids of its children are derived.
    pub seed: u64,
    /// Whether the run has got more messages than are read in one step.
    pub more_waits: bool,
}

impl Context<'_> {
    /// The id of a job that the run has started, or would start.
    #[must_use]
    pub fn job_id(&self, child: Child) -> JobId {
        JobId::of_child(child.at, self.id, self.seed, child.number)
    }
}

/// Why a program is called.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<'a> {
    /// The run was started.
    Started,
    /// A message arrived.
    Message(&'a MessageBody),
    /// The time of the timer has come. There is no timer any more.
    TimerDue,
    /// A job that the program asked for cannot be enqueued.
    JobRefused {
        /// The number of the child.
        child: u64,
        /// Why.
        why: &'a str,
    },
}

/// What a program does with an input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramStep {
    /// The state from now on.
    pub state: Vec<u8>,
    /// What else happens.
    pub effects: Vec<Effect>,
}

/// What a step does besides changing the state. Times are those of the wall clock.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Enqueues a job, which leaves a message when it ends.
    Enqueue {
        /// Which job.
        child: Child,
        /// The job, as [`Program::submission`] reads it.
        document: Vec<u8>,
    },
    /// Cancels a job of this run, if it has not ended.
    CancelJob(Child),
    /// Cancels a job of this run, if it has not ended and no worker has it.
    WithdrawJob(Child),
    /// Starts a run, which leaves a message when it ends.
    StartRun {
        /// Which run.
        child: Child,
        /// The kind of its program.
        program: &'static str,
        /// What it is started with.
        state: Vec<u8>,
    },
    /// Sends a message to a run that this one has started.
    SignalRun(Child, Signal),
    /// Sets the timer, or clears it.
    Timer(Option<Moment>),
    /// Ends the run.
    Finish {
        /// Whether it succeeded.
        succeeded: bool,
        /// Its result, or what went wrong.
        result: Vec<u8>,
    },
    /// A run that had ended goes on.
    Resume,
    /// From now on the run learns of these events, or of none.
    Listen(Option<Interest>),
    /// Tells what has happened. Where `with` names a job that this step enqueues, that one has to be accepted.
    Emit {
        /// The event.
        event: OtherEvent,
        /// The number of the job.
        with: Option<u64>,
    },
}

/// A job or a run that a run starts. Its id follows from the run and from this, so that a program can name it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its number, unique among the children of the run.
    pub number: u64,
    /// The time in its id, by which lists sort it.
    pub at: Moment,
}

impl Child {
    /// A child that is listed with the run itself.
    #[must_use]
    pub const fn of(context: &Context<'_>, number: u64) -> Self {
        Self { number, at: context.created }
    }
}

/// The programs of an engine, and the runs that have something to do.
#[derive(Default)]
pub(crate) struct Runs {
    programs: BTreeMap<&'static str, Arc<dyn Program>>,
    pub(crate) limits: RunLimits,
    /// Runs that got a message and have not been looked at since.
    pending: Mutex<BTreeSet<RunId>>,
    /// Runs that listen, as far as this engine has written their steps, and those of them that got an event. Others
    /// are found by the advancer.
    listeners: Mutex<BTreeMap<RunId, Arc<Interest>>>,
    told: Mutex<BTreeSet<RunId>>,
    woken: Notify,
    /// Changes whenever the step of a run was written here.
    advanced: watch::Sender<u64>,
    /// Other nodes have left something for runs to do.
    pub(crate) elsewhere: Notify,
    /// Held while runs that got messages are advanced. All that get some meanwhile are advanced together afterwards.
    turn: tokio::sync::Mutex<()>,
}

impl Runs {
    pub(crate) fn add(&mut self, program: Arc<dyn Program>) {
        self.programs.insert(program.kind(), program);
    }

    fn program(&self, kind: &str) -> Option<&Arc<dyn Program>> {
        self.programs.get(kind)
    }

    /// All programs with their versions, as the store asks for them.
    fn known(&self) -> Vec<(Arc<str>, u32)> {
        self.programs.values().map(|program| (Arc::from(program.kind()), program.version())).collect()
    }

    /// These runs have something to do.
    pub(crate) fn wake(&self, runs: impl IntoIterator<Item = RunId>) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pending.len();
        pending.extend(runs);
        if pending.len() > before {
            self.woken.notify_one();
        }
    }

    /// A step of a run was written.
    fn note_step(&self, run: &Run) {
        if self.advanced.receiver_count() > 0 {
            self.advanced.send_modify(|steps| *steps += 1);
        }
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        match &run.interest {
            Some(interest) => listeners.insert(run.id, Arc::clone(interest)),
            None => listeners.remove(&run.id),
        };
    }

    /// Something happened, which the store has left in the inboxes of runs that want it. They are advanced by the
    /// advancer, never by the caller that made it happen.
    pub(crate) fn wake_listeners(&self, events: &[EventBody]) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let wants = |interest: &Interest| events.iter().any(|event| interest.fits(event));
        let told: Vec<RunId> = listeners.iter().filter(|(_, interest)| wants(interest)).map(|(id, _)| *id).collect();
        drop(listeners);
        if !told.is_empty() {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).extend(told);
            self.woken.notify_one();
        }
    }

    /// Whether any run listens, as far as is known.
    pub(crate) fn has_listeners(&self) -> bool {
        !self.listeners.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn take_told(&self) -> Vec<RunId> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *told).into_iter().collect()
    }

    fn take_pending(&self) -> Vec<RunId> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *pending).into_iter().collect()
    }
}

/// A run to be started.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// Its id; absent, the engine makes one.
    pub id: Option<RunId>,
    /// The kind of its program.
    pub program: &'static str,
    /// What it is started with.
    pub state: Blob,
    /// Only one run has this key. A run that ends loses its key.
    pub key: Option<Arc<str>>,
}

impl Engine {
    /// Starts a run, and lets it take its first step.
    ///
    /// # Errors
    /// The id or the key is taken, there is no such program, the state is too large, or the store did not answer.
    pub async fn start_run(&self, request: RunRequest) -> Result<Run, EngineError> {
        let RunRequest { id, program, state, key } = request;
        let known = self.runs.program(program).ok_or_else(|| EngineError::NoSuchProgram(program.into()))?;
        let most = self.runs.limits.state_bytes;
        if state.len() > most {
            return Err(EngineError::RunTooLarge { found: state.len(), most });
        }
        let bits = || u128::from(self.randomness.bits());
        let id = id.unwrap_or_else(|| RunId::new(self.now(), bits() << 64 | bits()));
        let (version, seed) = (known.version(), self.randomness.bits());
        let new = NewRun { id, program: program.into(), version, state, key, parent: None, depth: 0, seed };
        match self.store.start_runs(vec![new], self.clock.now()).await? {
            Ok(_) => {}
            Err(StartRefusal::KeyTaken(_, holder)) => return Err(EngineError::RunKeyTaken(holder)),
            Err(StartRefusal::IdTaken(_)) => return Err(EngineError::RefusedRun(id, RunRefusal::RunIdTaken(id))),
        }
        self.advance_only(vec![id]).await?;
        self.run(id).await
    }

    /// Sends a message to a run, and lets the run read it.
    ///
    /// # Errors
    /// There is no such run, its inbox is full, or the store did not answer.
    pub async fn signal_run(&self, id: RunId, signal: Signal) -> Result<Run, EngineError> {
        let signalled = self.store.signal(id, signal, self.clock.now()).await?;
        signalled.map_err(|refusal| EngineError::RefusedRun(id, refusal))?;
        self.advance_only(vec![id]).await?;
        self.run(id).await
    }

    /// Changes whenever a run advances on this node. To miss nothing, subscribe first, and then look.
    #[must_use]
    pub fn watch_runs(&self) -> watch::Receiver<u64> {
        self.runs.advanced.subscribe()
    }

    /// One run.
    ///
    /// # Errors
    /// There is no such run, or the store did not answer.
    pub async fn run(&self, id: RunId) -> Result<Run, EngineError> {
        let run = self.store.run(id).await?.ok_or(EngineError::RefusedRun(id, RunRefusal::NotFound))?;
        Ok(self.shown_run(run))
    }

    /// The run that has a key.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn run_of_key(&self, key: Arc<str>) -> Result<Option<Run>, EngineError> {
        Ok(self.store.run_of_key(key).await?.map(|run| self.shown_run(run)))
    }

    /// Runs that match a filter, the newest first.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn list_runs(&self, filter: RunFilter, limit: usize) -> Result<Vec<Run>, EngineError> {
        let runs = self.store.runs(filter, limit).await?;
        Ok(runs.into_iter().map(|run| self.shown_run(run)).collect())
    }

    /// The id of a job that a run has started, or would start.
    #[must_use]
    pub fn child_job(run: &Run, child: Child) -> JobId {
        JobId::of_child(child.at, run.id, run.seed, child.number)
    }
}
