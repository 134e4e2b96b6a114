//! A cohort of jobs meets an outage.
//!
//! The model: attempts take no time. Every attempt during the outage fails. After it, the first
//! attempts of each second, up to the capacity, are served; the others of that second fail. A
//! served attempt fails with the scenario's own probability, and otherwise its job is done. What
//! follows a failure is decided by [`decide`](crate::decide), with the job's history from its
//! arrival on. To compare policies, give each the same scenario: the jobs have the same draws.
//!
//! Memory is bounded by the limits of a scenario: some 100 bytes for each job that outlives the
//! outage, and counts by second and by instant, at most 64 MB and 12 bytes for each second of the
//! horizon for each thread, of which there are at most four.

mod instants;
mod job;
mod outage;
mod outcome;
mod recovery;
mod scenario;
mod tally;

use crate::{Policy, Problems};
use job::Model;
use std::num::NonZero;
use std::thread::available_parallelism;

pub use outcome::{BusiestInstant, MOST_BINS, Outcome, Peak, Series};
pub use scenario::{Arrival, LONGEST_HORIZON, MOST_JOBS, Scenario};

/// Each thread has counts of its own, and more threads than this cost more memory than they gain.
const MOST_THREADS: u32 = 4;

/// Runs a scenario under a policy, on as many threads as the machine has, four at most.
///
/// `progress` is called now and then, from any thread, with the share of the work that is done.
///
/// # Errors
/// Every value of the scenario that is not allowed.
pub fn simulate(scenario: &Scenario, policy: &Policy, progress: &(dyn Fn(f64) + Sync)) -> Result<Outcome, Problems> {
    simulate_on(available_parallelism().unwrap_or(NonZero::<usize>::MIN), scenario, policy, progress)
}

/// As [`simulate`], on a number of threads, four at most. The outcome does not depend on the number.
///
/// # Errors
/// Every value of the scenario that is not allowed.
pub fn simulate_on(
    threads: NonZero<usize>,
    scenario: &Scenario,
    policy: &Policy,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Outcome, Problems> {
    scenario.check()?;
    let model = Model::new(scenario, policy);
    let threads = u32::try_from(threads.get()).unwrap_or(MOST_THREADS).min(MOST_THREADS);
    // With a capacity there is a second half, of about as much work.
    let alone = if scenario.capacity_per_s.is_some() { 0.5 } else { 1.0 };
    let (mut tally, competing) = outage::run(&model, threads, &|done| progress(done * alone));
    recovery::run(&model, competing, &mut tally, &|done| progress(alone + done * (1.0 - alone)));
    tally.retries.settle();
    progress(1.0);
    Ok(Outcome::of(&tally, scenario.jobs, model.outage_end))
}
