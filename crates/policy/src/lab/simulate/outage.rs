//! While jobs have nothing to do with each other: during the outage, and after it too where no
//! capacity makes them compete. Each thread takes one batch of the cohort after the other.

use super::job::{Job, Model};
use super::tally::Tally;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// The jobs of one batch.
const BATCH: u32 = 8_192;

/// What a thread found.
struct Part {
    tally: Tally,
    /// The jobs of each batch that compete for the capacity, with the number of the batch.
    competing: Vec<(u32, Vec<Job>)>,
}

/// Runs the whole cohort. Returns the counts, and the jobs that compete for the capacity in the
/// order of their numbers.
///
/// Neither depends on the number of threads: each job has its own source of draws, and counts add
/// up in any order.
pub(super) fn run(model: &Model<'_>, threads: u32, progress: &(dyn Fn(f64) + Sync)) -> (Tally, Vec<Job>) {
    let (next, done) = (&AtomicU32::new(0), &AtomicU32::new(0));
    let batches = model.scenario.jobs.div_ceil(BATCH);
    let work = move || {
        let mut part = Part { tally: Tally::new(model.scenario.horizon), competing: Vec::new() };
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if batch >= batches {
                return part;
            }
            let jobs = run_batch(model, batch, &mut part.tally);
            part.competing.push((batch, jobs));
            progress(f64::from(done.fetch_add(1, Ordering::Relaxed) + 1) / f64::from(batches));
        }
    };
    thread::scope(|scope| {
        // Where the system has no thread to give, the others do its work.
        let helpers: Vec<_> =
            (1..threads.min(batches)).filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut whole = work();
        for helper in helpers {
            let mut part = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            whole.tally.add(&mut part.tally);
            whole.competing.append(&mut part.competing);
        }
        whole.competing.sort_unstable_by_key(|(batch, _)| *batch);
        (whole.tally, whole.competing.into_iter().flat_map(|(_, jobs)| jobs).collect())
    })
}

fn run_batch(model: &Model<'_>, batch: u32, tally: &mut Tally) -> Vec<Job> {
    let start = batch * BATCH;
    let mut competing = Vec::new();
    for number in start..(start + BATCH).min(model.scenario.jobs) {
        let mut job = Job::new(model, number);
        if run_alone(model, &mut job, tally) {
            competing.push(job);
        }
    }
    competing
}

/// Runs a job as long as no other job matters to it. True where from here on others do.
fn run_alone(model: &Model<'_>, job: &mut Job, tally: &mut Tally) -> bool {
    if job.due >= model.horizon {
        tally.waits(false);
        return false;
    }
    loop {
        let after_outage = job.due >= model.outage_end;
        if after_outage && model.scenario.capacity_per_s.is_some() {
            return true;
        }
        tally.attempt(job.due, job.is_fresh());
        let comes_back = if after_outage { job.serve(model, tally) } else { job.fail(model, tally) };
        if !comes_back {
            return false;
        }
    }
}
