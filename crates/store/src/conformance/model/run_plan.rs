//! Steps of a history that concern runs.

use super::plan::{FEW, HeldPlan, JobPlan, LeasePlan, back, end, job, limit, wait_ms};
use super::step::Step;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A step that concerns runs. A run is given as a number: how many were started after it.
#[derive(Clone, Debug)]
pub enum RunsStep {
    /// Start runs.
    Start(Vec<RunPlan>),
    /// Write steps of runs.
    Advance(Vec<AdvancePlan>),
    /// Send a signal.
    Signal(u8, u8),
    /// Read what is pending.
    Pending {
        /// The newest version that is known of each program.
        newest: u8,
        /// Only these runs.
        only: Option<Vec<u8>>,
        /// At most this many runs.
        limit: usize,
        /// At most this many messages of each.
        messages: usize,
    },
    /// Ask when the next run is pending, of programs up to this version.
    Next(u8),
    /// Advance the clock to when the next run is pending.
    PassToNext,
    /// Read a run.
    Get(u8),
    /// Read the run of a key.
    OfKey(u8),
    /// List runs.
    List {
        /// Of this program.
        program: Option<u8>,
        /// That have ended, or have not.
        ended: Option<bool>,
        /// After this run.
        after: Option<u8>,
        /// At most this many.
        limit: usize,
    },
    /// List runs by their keys, behind one, at most so many.
    ListKeys(Option<u8>, usize),
    /// Prune runs that ended this many milliseconds ago.
    Prune(u32, usize),
}

impl RunsStep {
    pub(super) const ALL: Self = Self::List { program: None, ended: None, after: None, limit: usize::MAX };
    pub(super) const ALL_PENDING: Self =
        Self::Pending { newest: u8::MAX, only: None, limit: usize::MAX, messages: usize::MAX };
}

/// A run to be started.
#[derive(Clone, Copy, Debug)]
pub struct RunPlan {
    /// Its id: a new one, or that of a run that was started before.
    pub id: Option<u8>,
    /// Which program.
    pub program: u8,
    /// Which version of it.
    pub version: u8,
    /// Which key it has.
    pub key: Option<u8>,
    /// The run that starts it.
    pub parent: Option<u8>,
}

/// A step of a run, computed from the run as it is.
#[derive(Clone, Debug)]
pub struct AdvancePlan {
    /// The run.
    pub run: u8,
    /// By how much its revision is exceeded: not at all, or the step is refused.
    pub ahead: u8,
    /// The timer, in milliseconds from now.
    pub timer_ms: Option<u32>,
    /// Whether it ends, and how.
    pub end: Option<(bool, u8)>,
    /// How many of its messages it reads.
    pub consumed: usize,
    /// Jobs to enqueue, each with the number of the child.
    pub jobs: Vec<(u8, JobPlan)>,
    /// Jobs to cancel.
    pub cancelled: Vec<u8>,
    /// Jobs to withdraw.
    pub withdrawn: Vec<u8>,
    /// Runs to start.
    pub runs: Vec<RunPlan>,
    /// Signals to runs.
    pub signals: Vec<(u8, u8)>,
}

pub(super) fn steps() -> impl Strategy<Value = RunsStep> {
    prop_oneof![
        3 => vec(run(), 0..4).prop_map(RunsStep::Start),
        8 => vec(advance(), 1..4).prop_map(RunsStep::Advance),
        2 => (back(), 0..FEW).prop_map(|(run, name)| RunsStep::Signal(run, name)),
        1 => (wait_ms(), limit()).prop_map(|(ms, limit)| RunsStep::Prune(ms, limit)),
        4 => reads(),
    ]
}

/// A run with jobs, of which some end, and what it learns of them.
pub(super) fn cycle() -> impl Strategy<Value = Vec<Step>> {
    let ends = vec(((0..4_u8).prop_map(LeasePlan::by_token), end()), 1..4);
    let meanwhile = prop_oneof![
        2 => (0..3_u8).prop_map(Step::Cancel),
        2 => (0..3_u8).prop_map(|job| Step::Redrive(job, None)),
        1 => wait_ms().prop_map(Step::Pass),
        2 => Just(Step::PassToNextWake),
        2 => Just(Step::Runs(RunsStep::PassToNext)),
        1 => advance().prop_map(|plan| Step::Runs(RunsStep::Advance(vec![plan]))),
    ];
    let first = advance().prop_map(|plan| AdvancePlan { run: 0, ahead: 0, ..plan });
    (run(), first, any::<u64>(), ends, vec(meanwhile, 1..4), limit()).prop_map(
        |(run, first, seed, ends, meanwhile, messages)| {
            let claim = Step::Claim {
                queues: (0..FEW).collect(),
                held: HeldPlan::None,
                count: 9,
                bytes: usize::MAX,
                worker: 1,
                lease_ms: 1_000,
                timeout_ms: None,
                seed,
            };
            let start = [RunsStep::Start(vec![run]), RunsStep::Advance(vec![first])].map(Step::Runs);
            let pending = RunsStep::Pending { newest: FEW, only: None, limit: 100, messages };
            let work = [claim, Step::Settle(ends)].into_iter().chain(meanwhile);
            start.into_iter().chain(work).chain([Step::Promote(HeldPlan::None, 100), Step::Runs(pending)]).collect()
        },
    )
}

fn reads() -> impl Strategy<Value = RunsStep> {
    let only = option::weighted(0.3, vec(back(), 0..4));
    let pending = (0..FEW, only, limit(), limit()).prop_map(|(newest, only, limit, messages)| RunsStep::Pending {
        newest,
        only,
        limit,
        messages,
    });
    let filter = (option::weighted(0.3, 0..FEW), option::weighted(0.3, any::<bool>()), option::weighted(0.3, back()));
    let list =
        (filter, limit()).prop_map(|((program, ended, after), limit)| RunsStep::List { program, ended, after, limit });
    prop_oneof![
        6 => pending,
        2 => (0..FEW).prop_map(RunsStep::Next),
        2 => Just(RunsStep::PassToNext),
        1 => back().prop_map(RunsStep::Get),
        1 => (0..FEW).prop_map(RunsStep::OfKey),
        2 => list,
        1 => (option::weighted(0.5, 0..FEW), limit()).prop_map(|(after, limit)| RunsStep::ListKeys(after, limit)),
    ]
}

fn run() -> impl Strategy<Value = RunPlan> {
    let (id, parent) = (option::weighted(0.1, back()), option::weighted(0.3, back()));
    (id, 0..FEW, 0..FEW, option::weighted(0.3, 0..FEW), parent)
        .prop_map(|(id, program, version, key, parent)| RunPlan { id, program, version, key, parent })
}

fn advance() -> impl Strategy<Value = AdvancePlan> {
    let run = (prop_oneof![4 => 0..3_u8, 1 => back()], prop_oneof![8 => Just(0_u8), 1 => 1..3_u8]);
    let kept = (option::weighted(0.3, wait_ms()), option::weighted(0.2, (any::<bool>(), 0..2_u8)), limit());
    let signals = vec((back(), 0..FEW), 0..2);
    let ended = (vec(back(), 0..2), vec(back(), 0..2));
    (run, kept, vec((0..4_u8, job()), 0..3), ended, vec(run_of_step(), 0..2), signals).prop_map(
        |((run, ahead), (timer_ms, end, consumed), jobs, (cancelled, withdrawn), runs, signals)| AdvancePlan {
            run,
            ahead,
            timer_ms,
            end,
            consumed,
            jobs,
            cancelled,
            withdrawn,
            runs,
            signals,
        },
    )
}

/// A run that a step starts, mostly as a child of its own run.
fn run_of_step() -> impl Strategy<Value = RunPlan> {
    run().prop_map(|plan| RunPlan { parent: plan.parent.map(|_| 0), ..plan })
}
