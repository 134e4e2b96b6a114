//! The steps of a random history, and how they are drawn.

use super::plan::{self, End, FEW, HeldPlan, JobPlan, LeasePlan, ListPlan, SpecPlan, limit, wait_ms};
use super::run_plan::{self, RunsStep};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// One step: an operation with its arguments, a move of the clock, or a restart. A job is given as a
/// number: how many were enqueued after it.
#[derive(Clone, Debug)]
pub enum Step {
    /// Enqueue jobs.
    Enqueue(Vec<JobPlan>),
    /// Claim jobs.
    Claim {
        /// From these queues.
        queues: Vec<u8>,
        /// While these are held.
        held: HeldPlan,
        /// At most this many.
        count: usize,
        /// With at most this many bytes.
        bytes: usize,
        /// As this worker.
        worker: u8,
        /// With a lease of this many milliseconds.
        lease_ms: u32,
        /// With this timeout of a run, in milliseconds.
        timeout_ms: Option<u32>,
        /// With these random bits.
        seed: u64,
    },
    /// Send heartbeats.
    Extend(Vec<LeasePlan>, Option<u32>),
    /// End runs.
    Settle(Vec<(LeasePlan, End)>),
    /// End overdue runs.
    Reclaim(usize),
    /// Promote due jobs.
    Promote(HeldPlan, usize),
    /// Cancel a job.
    Cancel(u8),
    /// Activate a job.
    Activate(u8),
    /// Redrive a job.
    Redrive(u8, Option<SpecPlan>),
    /// Remove a job.
    Remove(u8),
    /// Prune jobs that ended this many milliseconds ago, and dead letters of another age.
    Prune(u32, u32, usize),
    /// Pause or resume a queue; an unknown one is either refused or created.
    Pause(u8, bool, bool),
    /// Remove a queue.
    ForgetQueue(u8),
    /// Prune queues without jobs of this age, in milliseconds.
    PruneQueues(u32),
    /// Set how many jobs of a group may be active, for so many milliseconds; or remove that.
    SetLimit(u8, Option<u32>, Option<u32>),
    /// Hold the group of a key for so many milliseconds.
    HoldGroup(u8, u32),
    /// Read how groups stand.
    Standings,
    /// Read a job.
    Get(u8),
    /// List jobs.
    List(ListPlan),
    /// List the queues.
    Queues,
    /// List the paused queues.
    Paused,
    /// Ask for the next wake.
    NextWake(HeldPlan),
    /// Something about runs.
    Runs(RunsStep),
    /// Advance the clock by this many milliseconds.
    Pass(u32),
    /// Advance the clock to the next wake, so that boundaries are hit exactly.
    PassToNextWake,
    /// Set the clock back by this many milliseconds.
    StepBack(u32),
    /// The server stood still for this many milliseconds, until now.
    StoodStill(u32),
    /// Close the store and open it again.
    Restart,
}

/// Random histories of up to `most` scripts: single steps, and sometimes several cycles of ordinary work,
/// without which no job would get far.
pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let script = prop_oneof![
        75 => step().prop_map(|step| vec![step]),
        4 => work_cycles(3),
        1 => work_cycles(40),
        10 => run_plan::cycle(),
    ];
    vec(script, 1..=most.max(1)).prop_map(|scripts| scripts.concat())
}

/// The same cycle again and again: jobs are claimed, mostly fail, and are retried, or redriven.
/// Almost every step of every cycle happens; the others are what a shrinking history leaves out.
fn work_cycles(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let happens = vec(prop::bool::weighted(0.99), count * 5);
    (work_cycle(), happens).prop_map(|(cycle, happens)| {
        let parts = cycle.iter().cycle().zip(happens);
        parts.filter(|(_, happens)| *happens).map(|(step, _)| step.clone()).collect()
    })
}

fn work_cycle() -> impl Strategy<Value = [Step; 5]> {
    let released = (wait_ms(), 1..5_u32).prop_map(|(delay_ms, most)| End::Released { delay_ms, most });
    let end = prop_oneof![2 => plan::end(), 6 => (0..2_u8).prop_map(End::Failed), 2 => released];
    let ends = vec(((0..6_u8).prop_map(LeasePlan::by_token), end), 1..6);
    let pause = prop_oneof![3 => Just(Step::PassToNextWake), 1 => wait_ms().prop_map(Step::Pass)];
    let last = prop_oneof![
        2 => plan::held().prop_map(Step::NextWake),
        1 => plan::back().prop_map(|back| Step::Redrive(back, None)),
    ];
    (limit(), any::<u64>(), ends, pause, plan::held(), last).prop_map(|(count, seed, ends, pause, held, last)| {
        let queues = (0..FEW).collect();
        let claim = Step::Claim {
            queues,
            held: HeldPlan::None,
            count,
            bytes: usize::MAX,
            worker: 0,
            lease_ms: 1_000,
            timeout_ms: None,
            seed,
        };
        [claim, Step::Settle(ends), pause, Step::Promote(held, 100), last]
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => worker_steps(),
        12 => clock_steps(),
        8 => operator_steps(),
        12 => run_plan::steps().prop_map(Step::Runs),
        3 => read_steps(),
        2 => Just(Step::Restart),
    ]
}

/// What workers and the engine do.
fn worker_steps() -> impl Strategy<Value = Step> {
    let size = (limit(), prop_oneof![3 => Just(usize::MAX), 1 => 0..6_000_usize]);
    let claim =
        (vec(0..FEW, 1..4), plan::held(), size, 0..FEW, wait_ms(), option::weighted(0.3, wait_ms()), any::<u64>());
    prop_oneof![
        4 => vec(plan::job(), 0..6).prop_map(Step::Enqueue),
        6 => claim.prop_map(|(queues, held, (count, bytes), worker, lease_ms, timeout_ms, seed)| {
            Step::Claim { queues, held, count, bytes, worker, lease_ms, timeout_ms, seed }
        }),
        2 => (vec(plan::lease_ref(), 1..4), option::weighted(0.3, wait_ms()))
            .prop_map(|(lease_refs, ms)| Step::Extend(lease_refs, ms)),
        6 => vec((plan::lease_ref(), plan::end()), 1..4).prop_map(Step::Settle),
    ]
}

fn clock_steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => wait_ms().prop_map(Step::Pass),
        3 => Just(Step::PassToNextWake),
        1 => wait_ms().prop_map(Step::StepBack),
        2 => wait_ms().prop_map(Step::StoodStill),
        4 => limit().prop_map(Step::Reclaim),
        6 => (plan::held(), limit()).prop_map(|(held, limit)| Step::Promote(held, limit)),
    ]
}

/// What operators do.
fn operator_steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => plan::back().prop_map(Step::Cancel),
        2 => plan::back().prop_map(Step::Activate),
        8 => (plan::back(), option::weighted(0.3, plan::spec())).prop_map(|(job, spec)| Step::Redrive(job, spec)),
        2 => plan::back().prop_map(Step::Remove),
        2 => (wait_ms(), wait_ms(), limit()).prop_map(|(ended, dead, limit)| Step::Prune(ended, dead, limit)),
        3 => (0..=FEW, any::<bool>(), any::<bool>())
            .prop_map(|(queue, paused, only_known)| Step::Pause(queue, paused, only_known)),
        1 => (0..=FEW).prop_map(Step::ForgetQueue),
        5 => wait_ms().prop_map(Step::PruneQueues),
        1 => (0..3 * FEW, option::weighted(0.7, 0..3_u32), option::of(wait_ms()))
            .prop_map(|(group, most, ms)| Step::SetLimit(group, most, ms)),
        1 => (0..FEW, wait_ms()).prop_map(|(key, ms)| Step::HoldGroup(key, ms)),
    ]
}

fn read_steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => plan::back().prop_map(Step::Get),
        2 => plan::list().prop_map(Step::List),
        1 => Just(Step::Queues),
        1 => Just(Step::Standings),
        1 => Just(Step::Paused),
        1 => plan::held().prop_map(Step::NextWake),
    ]
}
