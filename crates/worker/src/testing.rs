//! Tests of handlers without waiting: the engine in memory, with a clock that the test moves.
//!
//! ```
//! use redrive_worker::testing::Harness;
//! use redrive_worker::{Failure, NewJob, Worker};
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! static RUNS: AtomicU32 = AtomicU32::new(0);
//!
//! async fn flaky(name: String) -> Result<String, Failure> {
//!     match RUNS.fetch_add(1, Ordering::Relaxed) {
//!         0 | 1 => Err(Failure::new("external.timeout", "not yet")),
//!         _ => Ok(format!("hello, {name}")),
//!     }
//! }
//!
//! let harness = Harness::new()?;
//! let worker = Worker::builder(harness.client()).handle("greet", flaky).build()?;
//! let job = harness.client().enqueue(NewJob::new("greet", "world")?).await?;
//!
//! let drained = harness.drain(&worker).await?;
//! assert_eq!(drained.runs.len(), 3);
//! assert!(drained.waited.as_secs_f64() >= 1.5, "by the clock of the harness");
//! assert_eq!(harness.client().job(job.id()).await?.result::<String>()?, "hello, world");
//! # Ok(())
//! # }
//! ```

use crate::run::Run;
use crate::transport::embedded::{Local, delivery, envelopes, settings};
use crate::transport::{Ending, RunReport, Settled};
use crate::worker::executor::attempt;
use crate::worker::runner::Runner;
use crate::{Client, ClientError, Worker};
use redrive_engine::{ClaimRequest, Clock, Engine, ManualClock, Randomness, RunLimits, Swept};
use redrive_ojs::runs::programs;
use redrive_ojs::{Envelopes, Limits};
use redrive_policy::{Moment, Span};
use redrive_store::Memory;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// 2026-02-13T10:00:00Z: the clock of every harness starts here.
const START: Moment = Moment::from_micros(1_770_976_800_000_000);
/// A drain that has run this many jobs will not end.
const MAX_RUNS: usize = 100_000;

/// An engine in memory whose time stands still until it is moved. Every harness draws the same jitter,
/// so that a test that passes once passes always.
pub struct Harness {
    client: Client,
    engine: Arc<Engine>,
    envelopes: Arc<Envelopes>,
    clock: Arc<ManualClock>,
}

/// What a drain did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Drained {
    /// The runs, in the order in which they ended.
    pub runs: Vec<Ran>,
    /// How far the clock was advanced.
    pub waited: Duration,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran {
    /// The job.
    pub job_id: String,
    /// Its type.
    pub kind: String,
    /// Which run it was, from 1.
    pub attempt: u32,
    /// What became of the job: `completed`, `retryable`, `discarded`, `available`.
    pub state: String,
    /// The type of the failure, where it failed.
    pub failure: Option<String>,
    /// Whether it is among the dead letters now.
    pub dead: bool,
    /// How long it waits for its next run.
    pub retry_after: Option<Duration>,
}

impl Harness {
    /// An empty harness.
    ///
    /// # Errors
    /// Never, as long as the default policy is valid.
    pub fn new() -> Result<Self, ClientError> {
        let clock = Arc::new(ManualClock::at(START));
        let (store, time) = (Arc::new(Memory::new()), Arc::clone(&clock) as _);
        let engine = Engine::new(store, time, Arc::new(FixedSequence::default()), settings()?);
        let engine = Arc::new(engine.with_programs(programs(Limits::default()), RunLimits::default()));
        let client = Client::over(Local::without_loops(Arc::clone(&engine)));
        Ok(Self { client, envelopes: envelopes(&engine), engine, clock })
    }

    /// The client for the code under test.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Advances the clock, and carries out what is due by then: jobs, and schedules. A schedule of which several slots
    /// have passed enqueues one job, as after a standstill; advance by one slot at a time to see each.
    ///
    /// # Errors
    /// Never: memory always answers.
    pub async fn advance(&self, time: Duration) -> Result<(), ClientError> {
        self.clock.advance(time.into());
        self.sweep().await.map(drop)
    }

    /// Runs jobs with the handlers of a worker until none is left that could run without further action. When all jobs
    /// that are left wait, the clock jumps to the first of them. It does not jump to the next slot of a schedule, which
    /// would never end: [`Harness::advance`] does.
    ///
    /// # Errors
    /// Some job snoozes or fails for ever. The worker cannot run a job, because it has no handler for its type or the
    /// handler declines it.
    pub async fn drain<S: Send + Sync + 'static>(&self, worker: &Worker<S>) -> Result<Drained, ClientError> {
        let (runner, begun) = (Runner::new(worker), self.clock.now());
        let mut drained = Drained::default();
        loop {
            let swept = self.sweep().await?;
            let ran = self.run_ready(&runner, &mut drained).await?;
            if drained.runs.len() > MAX_RUNS {
                return Err(ClientError::Invalid(format!(
                    "{MAX_RUNS} runs, and still there are jobs to run; some job snoozes or fails for ever"
                )));
            }
            let now = self.clock.now();
            match self.engine.next_sweep().await.map_err(unanswered)? {
                _ if ran => {}
                Some(next) if next > now => self.clock.set(next),
                // It is due and held back, for example by a paused queue.
                Some(_) if swept != Swept::default() => {}
                _ => {
                    drained.waited = now.since(begun).into();
                    return Ok(drained);
                }
            }
        }
    }

    async fn sweep(&self) -> Result<Swept, ClientError> {
        self.engine.advance().await.map_err(unanswered)?;
        self.engine.sweep().await.map_err(unanswered)
    }

    /// Runs a job that is available; false if there is none.
    async fn run_ready<S: Send + Sync + 'static>(
        &self,
        runner: &Runner<S>,
        drained: &mut Drained,
    ) -> Result<bool, ClientError> {
        let settings = &runner.settings;
        let claim = ClaimRequest {
            lease: Some(Span::from(settings.lease)),
            ..ClaimRequest::new(settings.queues.to_vec(), Arc::clone(&settings.report_defaults.worker))
        };
        let claimed = self.engine.claim(&claim).await.map_err(unanswered)?;
        let Some(delivery) = claimed.into_iter().next().and_then(|job| delivery(job, &self.envelopes)) else {
            return Ok(false);
        };
        let run = Arc::new(Run::new(delivery.job, delivery.lease, 0, Instant::now()));
        if let Some(ending) = attempt(runner, &run).await {
            let (failure, declined) = match &ending {
                Ending::Failed(failure) => (Some(failure.type_name().to_owned()), None),
                Ending::Declined { reason, .. } => (None, Some(reason.clone())),
                _ => (None, None),
            };
            let report = RunReport { run, ending };
            let settled = runner.transport().settle(std::slice::from_ref(&report), &settings.report_defaults).await?;
            drained.runs.extend(settled.first().and_then(|settled| ran(&report.run, failure, settled)));
            if let Some(reason) = declined {
                return Err(ClientError::Invalid(reason));
            }
        }
        Ok(true)
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("now", &self.clock.now()).finish_non_exhaustive()
    }
}

fn ran(run: &Run, failure: Option<String>, settled: &Settled) -> Option<Ran> {
    let Settled::Accepted { state, retry_after, dead } = settled else { return None };
    Some(Ran {
        job_id: run.job.id().to_owned(),
        kind: run.job.kind().to_owned(),
        attempt: run.job.attempt(),
        state: state.to_string(),
        failure,
        dead: *dead,
        retry_after: *retry_after,
    })
}

fn unanswered(error: redrive_engine::EngineError) -> ClientError {
    ClientError::Unreachable(error.to_string())
}

/// The same sequence every time, spread evenly.
#[derive(Debug, Default)]
struct FixedSequence(AtomicU64);

impl Randomness for FixedSequence {
    fn bits(&self) -> u64 {
        // Multiples of the golden ratio, modulo one.
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}
