//! A test for any program: it is interrupted at every single write, goes on after a restart, and must end as it does
//! without an interruption.

mod interrupted;

pub use interrupted::Interruption;

use crate::{
    ClaimRequest, Clock, Ending, Engine, EngineError, FailureReport, Layers, ManualClock, Program, Randomness,
    RunLimits, RunRequest, Settings,
};
use interrupted::Interrupted;
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Filter, Job, LeaseRef, Memory, Page, Run, RunFilter, RunId, Signal, State, Store, Token};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The time at which every test starts; a round number in 2023.
pub const START: Moment = Moment::from_micros(1_700_000_000_000_000);

/// How a worker ends an attempt.
#[derive(Clone, Debug)]
pub enum Report {
    /// It succeeds, with this JSON text.
    Done(String),
    /// It fails with this message.
    Fails(String),
    /// It ends its branch, which is not a failure.
    Prunes,
}

/// What is tried: a run, the worker that has its jobs, and what arrives from outside.
pub struct Trial {
    /// All programs that take part.
    pub programs: Vec<Arc<dyn Program>>,
    /// The kind of the run.
    pub program: &'static str,
    /// What it is started with.
    pub state: Blob,
    /// Its key.
    pub key: Option<Arc<str>>,
    /// How the worker ends a job.
    pub worker: fn(&Job) -> Report,
    /// Signals, each at a time after the start.
    pub signals: Vec<(Span, Signal)>,
    /// For how long the test goes on.
    pub lasts: Span,
}

/// Everything that can be seen at the end: the runs, and the jobs without the times of their attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome(pub String);

impl Trial {
    /// The outcome without an interruption, after every interruption has been tried: one before and one after every
    /// write.
    ///
    /// # Panics
    /// An interruption changes the outcome.
    pub async fn check(&self) -> Outcome {
        let (expected, writes) = self.run(Interruption::None).await;
        for number in 1..=writes {
            for at in [Interruption::Before(number), Interruption::After(number)] {
                let (found, _) = self.run(at).await;
                assert_eq!(found, expected, "{at:?} of {writes} writes");
            }
        }
        expected
    }

    /// One test from the start to the end.
    async fn run(&self, at: Interruption) -> (Outcome, u64) {
        let memory = Memory::new();
        let clock = Arc::new(ManualClock::at(START));
        let mut world = World { trial: self, store: Arc::new(Interrupted::new(memory.clone(), at)), clock };
        let mut writes = 0;
        let mut engine = world.engine();
        // The caller repeats what was not answered, as a client does: with the same id.
        while !world.done(world.start(&engine).await) {
            (engine, writes) = world.restarted(&memory, writes);
        }
        let mut signals = self.signals.clone();
        signals.sort_by_key(|(after, _)| after.ms().to_bits());
        let end = START.after(self.lasts);
        loop {
            let mut held = Vec::new();
            while !world.done(world.work(&engine, &mut held).await) {
                (engine, writes) = world.restarted(&memory, writes);
            }
            let due = signals.first().map(|(after, _)| START.after(*after));
            if due.is_some_and(|due| due <= world.clock.now()) {
                let (_, signal) = signals.remove(0);
                while !world.done(world.signal(&engine, &signal).await) {
                    (engine, writes) = world.restarted(&memory, writes);
                }
                continue;
            }
            let next =
                [engine.next_run().await, engine.next_sweep().await].into_iter().filter_map(Result::ok).flatten();
            match next.chain(due).filter(|next| *next <= end).min() {
                Some(next) => world.clock.advance(next.since(world.clock.now())),
                None => break,
            }
        }
        (Outcome(outcome(&memory).await), writes + world.store.writes())
    }
}

/// A server, which can crash.
struct World<'t> {
    trial: &'t Trial,
    store: Arc<Interrupted>,
    clock: Arc<ManualClock>,
}

impl World<'_> {
    fn engine(&self) -> Engine {
        let settings = Settings::new(layers());
        let engine = Engine::new(
            Arc::clone(&self.store) as Arc<dyn Store>,
            Arc::clone(&self.clock) as Arc<dyn Clock>,
            Arc::new(Fixed),
            settings,
        );
        engine.with_programs(self.trial.programs.iter().cloned(), RunLimits::default())
    }

    /// The server after a crash, on what is stored. It is not interrupted again.
    fn restarted(&mut self, memory: &Memory, before: u64) -> (Engine, u64) {
        let writes = before + self.store.writes();
        self.store = Arc::new(Interrupted::new(memory.clone(), Interruption::None));
        (self.engine(), writes)
    }

    /// Whether an operation was answered. Every other error is one of the test.
    #[allow(clippy::panic, reason = "a test fails by a panic")]
    fn done<T>(&self, answer: Result<T, EngineError>) -> bool {
        match answer {
            Ok(_) => true,
            Err(EngineError::Store(_)) => false,
            Err(other) => panic!("{other}"),
        }
    }

    fn id(&self) -> RunId {
        RunId::new(START, 7)
    }

    async fn start(&self, engine: &Engine) -> Result<(), EngineError> {
        let Trial { program, state, key, .. } = self.trial;
        let request = RunRequest { id: Some(self.id()), program, state: Arc::clone(state), key: key.clone() };
        match engine.start_run(request).await {
            Ok(_) | Err(EngineError::RunKeyTaken(_) | EngineError::RefusedRun(..)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A signal whose answer is lost is sent again: programs have to bear that.
    async fn signal(&self, engine: &Engine, signal: &Signal) -> Result<(), EngineError> {
        engine.signal_run(self.id(), signal.clone()).await.map(drop)
    }

    /// Works until there is nothing to do at this time. `held` are jobs that were claimed and whose report was not
    /// answered: the worker reports them again.
    async fn work(&self, engine: &Engine, held: &mut Vec<Job>) -> Result<(), EngineError> {
        loop {
            let swept = engine.sweep().await?;
            let advanced = engine.advance().await?;
            if held.is_empty() {
                *held = self.claim(engine).await?;
            }
            let claimed = held.len();
            while let Some(job) = held.first() {
                let token = job.lease.as_ref().map_or(Token::None, |lease| Token::Lease(lease.token));
                let ending = match (self.trial.worker)(job) {
                    Report::Done(result) => Ending::Done(Some(Blob::from(result.into_bytes()))),
                    Report::Fails(message) => Ending::Failed(failure(&message)),
                    Report::Prunes => {
                        Ending::Failed(FailureReport { signal: redrive_policy::Signal::Prune, ..failure("pruned") })
                    }
                };
                // A report that was carried out and not answered is refused as stale when it is repeated.
                let _ = engine.settle(vec![(LeaseRef { id: job.id, token }, ending)]).await?;
                held.remove(0);
            }
            if claimed == 0 && advanced == 0 && swept == crate::Swept::default() {
                return Ok(());
            }
        }
    }

    async fn claim(&self, engine: &Engine) -> Result<Vec<Job>, EngineError> {
        let queues = engine.queues().await?.into_iter().map(|queue| queue.name).collect();
        engine.claim(&ClaimRequest { count: 100, ..ClaimRequest::new(queues, "ada") }).await
    }
}

fn failure(message: &str) -> FailureReport {
    let error = serde_json::json!({ "type": "Boom", "message": message }).to_string();
    FailureReport { types: vec!["Boom".to_owned()], ..FailureReport::new(Blob::from(error.into_bytes())) }
}

#[allow(clippy::expect_used, reason = "a test fails by a panic, and the defaults are valid")]
fn layers() -> Layers {
    Layers::ojs_default().expect("the defaults are valid")
}

/// Randomness that is the same in every test: ids and draws do not depend on what was interrupted.
struct Fixed;

impl Randomness for Fixed {
    fn bits(&self) -> u64 {
        0x5eed
    }
}

#[allow(clippy::expect_used, reason = "a store in memory always answers")]
async fn outcome(memory: &Memory) -> String {
    let mut out = String::new();
    let runs: Vec<Run> = memory.runs(RunFilter::default(), usize::MAX).await.expect("an answer");
    for Run { id, program, state, timer, key, children, end, .. } in &runs {
        let state = String::from_utf8_lossy(state);
        let end = end.as_ref().map(|end| (end.succeeded, String::from_utf8_lossy(&end.result).into_owned()));
        let _ = writeln!(out, "run {id} {program} {key:?} timer {timer:?} children {children} end {end:?}\n  {state}");
    }
    let listed = memory.list(Filter::default(), Page::new(0, usize::MAX)).await.expect("an answer");
    let jobs: BTreeMap<_, _> = listed.jobs.iter().map(|job| (job.id, job)).collect();
    for Job { id, spec, state, attempt, due, result, parent, .. } in jobs.values() {
        let (kind, body) = (&spec.kind, String::from_utf8_lossy(&spec.body));
        let due = due.filter(|_| *state == State::Scheduled);
        let result = result.as_ref().map(|result| String::from_utf8_lossy(result));
        let _ = writeln!(out, "job {id} {kind} {state} {attempt} {due:?} {parent:?} {result:?}\n  {body}");
    }
    out
}
