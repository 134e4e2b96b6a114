//! The phases of a run.

use super::drain::{WorkerLoad, drain};
use super::fill::{EnqueueLoad, EnqueueRequest, fill};
use super::http::Target;
use super::tally::{Latencies, Ledger, process_cpu};
use super::wire::{JobTemplate, Special};
use crate::exit::Failed;
use serde_json::Value;
use std::cell::RefCell;
use std::rc::Rc;
use std::str::FromStr;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// How jobs are enqueued if that is not measured.
const QUICK: EnqueueLoad = EnqueueLoad { connections: 4, batch: 100, request: EnqueueRequest::Batch };
/// The jobs of a chain.
const CHAIN: usize = 10;
/// The jobs of a group, and the one after them.
const GROUP: usize = 101;

/// What all phases share.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) target: Target,
    /// Distinguishes the queues of this run from those of others.
    pub(super) run: String,
    /// The batch worker.
    pub(super) worker: WorkerLoad,
    /// How long a phase may take.
    pub(super) limit: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Single,
    Batches,
    ConcurrentBatches,
    Claim,
    ClaimSingle,
    Fail,
    FailSingle,
    Chains,
    Groups,
    Unique,
}

impl Phase {
    pub(super) const ALL: [Self; 10] = [
        Self::Single,
        Self::Batches,
        Self::ConcurrentBatches,
        Self::Claim,
        Self::ClaimSingle,
        Self::Fail,
        Self::FailSingle,
        Self::Chains,
        Self::Groups,
        Self::Unique,
    ];

    pub(super) const fn letter(self) -> &'static str {
        match self {
            Self::Single => "a",
            Self::Batches => "b",
            Self::ConcurrentBatches => "b4",
            Self::Claim => "c",
            Self::ClaimSingle => "c1",
            Self::Fail => "d",
            Self::FailSingle => "d1",
            Self::Chains => "w",
            Self::Groups => "g",
            Self::Unique => "u",
        }
    }

    pub(super) fn title(self, plan: &Plan) -> String {
        let WorkerLoad { connections, batch } = plan.worker;
        let many = format!("{connections} connections, up to {batch} jobs in a fetch and in a settle");
        match self {
            Self::Single => "enqueue one by one, 16 connections".to_owned(),
            Self::Batches => "enqueue in batches of 100, one after another".to_owned(),
            Self::ConcurrentBatches => "enqueue in batches of 100, 4 connections".to_owned(),
            Self::Claim => format!("claim and ack, {many}"),
            Self::ClaimSingle => "claim and ack one by one, 50 connections".to_owned(),
            Self::Fail => format!("fail twice, then succeed, {many}"),
            Self::FailSingle => "fail twice, then succeed, one by one, 50 connections".to_owned(),
            Self::Chains => format!("chains of 10 jobs, {many}"),
            Self::Groups => format!("100 jobs at once and one after them, {many}"),
            Self::Unique => "enqueue unique jobs in batches of 100, one after another".to_owned(),
        }
    }

    /// How the phase enqueues jobs.
    const fn load(self) -> EnqueueLoad {
        let (connections, batch, request) = match self {
            Self::Single => (16, 1, EnqueueRequest::Job),
            Self::Batches | Self::Unique => (1, 100, EnqueueRequest::Batch),
            Self::Chains => (16, CHAIN, EnqueueRequest::Chain),
            Self::Groups => (4, GROUP, EnqueueRequest::Group),
            _ => return QUICK,
        };
        EnqueueLoad { connections, batch, request }
    }

    /// What the phase measures.
    const fn measures(self) -> Measures {
        match self {
            Self::Single | Self::Batches | Self::ConcurrentBatches | Self::Unique => Measures::Filling,
            Self::Claim | Self::ClaimSingle | Self::Fail | Self::FailSingle => Measures::Draining,
            Self::Chains | Self::Groups => Measures::Both,
        }
    }

    const fn worker(self, plan: &Plan) -> WorkerLoad {
        match self {
            Self::ClaimSingle | Self::FailSingle => WorkerLoad { connections: 50, batch: 1 },
            _ => plan.worker,
        }
    }

    const fn special(self) -> Special {
        match self {
            Self::Fail | Self::FailSingle => Special::Fails,
            Self::Unique => Special::Unique,
            _ => Special::Nothing,
        }
    }

    /// How many jobs the phase handles, if the fast phases handle `jobs`.
    const fn job_count(self, jobs: usize) -> usize {
        match self {
            Self::ClaimSingle | Self::Fail => jobs / 2,
            Self::FailSingle => jobs / 5,
            Self::Chains => jobs / 2 / CHAIN * CHAIN,
            // As many as begun hundreds: the smallest run still has a group.
            Self::Groups => jobs.div_ceil(200) * GROUP,
            _ => jobs,
        }
    }
}

/// Which part of a phase is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measures {
    /// Enqueueing the jobs.
    Filling,
    /// Claiming and settling them.
    Draining,
    /// From the first enqueue to the last settlement.
    Both,
}

impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|phase| phase.letter() == text);
        known.ok_or_else(|| format!("\"{text}\" is not a phase; there are a, b, b4, c, c1, d, d1, w, g, u"))
    }
}

/// What a phase measured.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) phase: Phase,
    pub(super) queue: String,
    pub(super) jobs: usize,
    pub(super) runs: usize,
    pub(super) took: Duration,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
    /// The processor time of this program itself.
    pub(super) process_cpu: Option<Duration>,
}

/// Fills a queue and drains it, and measures what the phase is about.
pub(super) fn run(plan: &Plan, phase: Phase, jobs: usize) -> Result<Measured, Failed> {
    // One thread: the measuring program must not take the processors away from the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start: {error}")))?;
    let jobs = phase.job_count(jobs);
    let ledger = Rc::new(RefCell::new(Ledger::new(jobs, phase.special() == Special::Fails)));
    let clients = LocalSet::new();
    let measuring = async { tokio::time::timeout(plan.limit, measure(plan, phase, jobs, &ledger)).await };
    let measured = runtime.block_on(clients.run_until(measuring));
    measured.unwrap_or_else(|_| {
        let (limit, state) = (plan.limit.as_secs(), ledger.borrow().state());
        Err(Failed::invalid(format!("not done within {limit} s: {state}")))
    })
}

async fn measure(plan: &Plan, phase: Phase, jobs: usize, ledger: &Rc<RefCell<Ledger>>) -> Result<Measured, Failed> {
    let template = JobTemplate::new(format!("bench-{}-{}", plan.run, phase.letter()), phase.special());
    let (of_fill, of_drain) = (Rc::default(), Rc::default());
    let whole = Stopwatch::start();
    fill(&plan.target, &template, jobs, phase.load(), &of_fill).await?;
    let filled = whole.stop();
    let drain_only = Stopwatch::start();
    drain(&plan.target, &template, ledger, phase.worker(plan), &of_drain).await?;
    let ((took, process_cpu), latencies) = match phase.measures() {
        Measures::Filling => (filled, of_fill),
        Measures::Draining => (drain_only.stop(), of_drain),
        Measures::Both => (whole.stop(), of_drain),
    };
    let runs = ledger.borrow().runs();
    let [p50_ms, p99_ms, max_ms] = RefCell::<Latencies>::borrow_mut(&latencies).quantiles_ms([0.5, 0.99, 1.0]);
    Ok(Measured { phase, queue: template.queue().to_owned(), jobs, runs, took, p50_ms, p99_ms, max_ms, process_cpu })
}

struct Stopwatch {
    started: Instant,
    cpu: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { cpu: process_cpu(), started: Instant::now() }
    }

    fn stop(&self) -> (Duration, Option<Duration>) {
        let took = self.started.elapsed();
        (took, process_cpu().zip(self.cpu).map(|(now, before)| now.saturating_sub(before)))
    }
}

/// Checks the server's own counts of a queue: all jobs are completed, none is left.
pub(super) fn check_count(stats: &Value, jobs: usize) -> Result<(), Failed> {
    let count = |state: &str| stats[state].as_u64();
    let left: u64 =
        ["available", "active", "scheduled", "pending", "retryable", "discarded"].iter().filter_map(|s| count(s)).sum();
    if count("completed") == Some(jobs as u64) && left == 0 {
        return Ok(());
    }
    Err(Failed::invalid(format!("of {jobs} jobs the server counts {stats}")))
}
