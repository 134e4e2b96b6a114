//! An engine on a store in memory, with the commands in short form.

use super::common::Seeded;
use redrive_engine::{
    ClaimRequest, Clock, Ending, Engine, EngineError, FailureReport, JobPolicy, Layers, ManualClock, PolicyDocument,
    Settings, Submission,
};
use redrive_policy::dialect::Dialect;
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Enqueued, Job, JobId, LeaseRef, Memory, Refusal, Settled, State, Store, Token};
use serde_json::Value;
use std::sync::Arc;

/// When every test begins: the first second of 2026.
pub(crate) const START: Moment = Moment::from_micros(1_767_225_600_000_000);
pub(crate) const QUEUE: &str = "default";
pub(crate) const WORKER: &str = "worker-1";

pub(crate) struct Harness {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<ManualClock>,
}

impl Harness {
    /// The defaults.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// The defaults with other settings.
    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::on(Arc::new(Memory::new()), 1, change)
    }

    /// The defaults with other draws.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::on(Arc::new(Memory::new()), seed, |_| {})
    }

    pub(crate) fn on(store: Arc<dyn Store>, seed: u64, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
        change(&mut settings);
        let clock = Arc::new(ManualClock::at(START));
        let time: Arc<dyn Clock> = clock.clone();
        let engine = Engine::new(store, time, Arc::new(Seeded::new(seed)), settings);
        Self { engine: Arc::new(engine), clock }
    }

    pub(crate) async fn submit(&self, submission: Submission) -> Job {
        match self.engine.submit(vec![submission]).await.expect("stored").remove(0) {
            Enqueued::Created(job) => job,
            other => panic!("{} was there before", other.job().id),
        }
    }

    /// What one claim returns, at most `count`.
    pub(crate) async fn claim_some(&self, count: usize) -> Vec<Job> {
        self.engine.claim(&request(count)).await.expect("an answer")
    }

    /// The next job, if there is one.
    pub(crate) async fn try_claim(&self) -> Option<Job> {
        self.claim_some(1).await.pop()
    }

    /// The next job, which must exist.
    pub(crate) async fn claim(&self) -> Job {
        self.try_claim().await.expect("a job can be claimed")
    }

    /// Ends a run; returns the whole answer of the engine.
    pub(crate) async fn settled(&self, job: &Job, ending: Ending) -> Result<Settled, EngineError> {
        self.engine.settle(vec![(lease_ref(job), ending)]).await.expect("an answer").remove(0)
    }

    /// Ends a run; returns the job afterwards.
    pub(crate) async fn settle(&self, job: &Job, ending: Ending) -> Result<Job, EngineError> {
        self.settled(job, ending).await.map(Settled::into_job)
    }

    pub(crate) async fn done(&self, job: &Job) -> Job {
        self.settle(job, Ending::Done(None)).await.expect("the run is this worker's")
    }

    pub(crate) async fn fail(&self, job: &Job, report: FailureReport) -> Job {
        self.settle(job, Ending::Failed(report)).await.expect("the run is this worker's")
    }

    pub(crate) async fn release(&self, job: &Job, delay: Span) -> Result<Job, EngineError> {
        self.settle(job, Ending::Released(delay)).await
    }

    pub(crate) async fn extend(&self, job: &Job, span: Option<Span>) -> Result<Job, EngineError> {
        self.engine.extend(vec![lease_ref(job)], span).await.expect("an answer").remove(0)
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.engine.job(id).await.expect("the job is stored")
    }

    /// Sets the clock, and carries out what is due.
    pub(crate) async fn at(&self, now: Moment) {
        self.clock.set(now);
        self.engine.sweep().await.expect("swept");
    }

    /// Advances the clock, and carries out what is due.
    pub(crate) async fn advance(&self, span: Span) {
        self.at(self.clock.now().after(span)).await;
    }

    /// Claims a job that waits for its next run, and checks that it is not available a microsecond earlier.
    pub(crate) async fn claim_when_due(&self, waiting: &Job) -> Job {
        let due = waiting.due.expect("the job waits for a time");
        if due > self.clock.now() {
            self.at(Moment::from_micros(due.micros() - 1)).await;
            assert_eq!(self.try_claim().await, None, "claimed before {due:?}");
            self.at(due).await;
        } else {
            self.advance(Span::ZERO).await;
        }
        let job = self.claim().await;
        assert_eq!(job.id, waiting.id);
        job
    }

    /// Advances to the next sweep, and carries out what is due then.
    pub(crate) async fn advance_to_next_sweep(&self) {
        let next = self.engine.next_sweep().await.expect("an answer").expect("something waits");
        self.at(next.max(self.clock.now())).await;
    }
}

/// A job with defaults only.
pub(crate) fn job() -> Submission {
    Submission::new("mail.send", QUEUE, blob("{}"))
}

pub(crate) fn with_policy(dialect: Dialect, value: Value) -> Submission {
    Submission { policy: JobPolicy::Own(PolicyDocument { dialect, value }), ..job() }
}

pub(crate) fn with_ojs(value: Value) -> Submission {
    with_policy(Dialect::Ojs, value)
}

pub(crate) fn request(count: usize) -> ClaimRequest {
    ClaimRequest { count, ..ClaimRequest::new(vec![QUEUE.into()], WORKER) }
}

/// The lease of a claimed job.
pub(crate) fn lease_ref(job: &Job) -> LeaseRef {
    let token = job.lease.as_ref().expect("the job was claimed").token;
    LeaseRef { id: job.id, token: Token::Lease(token) }
}

pub(crate) fn blob(text: &str) -> Blob {
    Arc::from(text.as_bytes())
}

/// An ordinary failure.
pub(crate) fn failure() -> FailureReport {
    failure_of(&["external.timeout"])
}

/// A failure with these types.
pub(crate) fn failure_of(types: &[&str]) -> FailureReport {
    FailureReport {
        types: types.iter().map(|name| (*name).to_owned()).collect(),
        ..FailureReport::new(blob(r#"{"message":"did not work"}"#))
    }
}

pub(crate) fn secs(secs: u32) -> Span {
    Span::from_secs(secs)
}

pub(crate) fn ms(ms: f64) -> Span {
    Span::saturating_ms(ms)
}

/// A wait, in milliseconds.
pub(crate) fn wait_ms(from: Moment, to: Moment) -> f64 {
    to.since(from).ms()
}

/// The refusal, for a comparison.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, EngineError>) -> Refusal {
    match answer {
        Err(EngineError::Refused(_, refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// Claims and ends runs until the job has ended; returns how many runs there were.
pub(crate) async fn runs_until_ended(
    harness: &Harness,
    id: JobId,
    mut end: impl AsyncFnMut(&Harness, &Job, u32),
) -> u32 {
    for runs in 0.. {
        let job = harness.job(id).await;
        let claimed = match job.state {
            State::Available => harness.claim().await,
            State::Retryable => harness.claim_when_due(&job).await,
            State::Discarded | State::Completed => return runs,
            state => panic!("the job is {state}"),
        };
        assert_eq!(claimed.id, id);
        assert!(runs < 1_000, "runs for ever");
        end(harness, &claimed, runs).await;
    }
    unreachable!("the loop above has no end")
}
