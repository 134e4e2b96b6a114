//! Heartbeats, from a task of their own: whatever handlers do, leases are extended as long as the worker
//! runs and the server answers.

use super::runner::{Mode, Runner};
use crate::Cancelled;
use crate::run::Run;
use crate::transport::Directive;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A heartbeat is sent after this part of a lease, so that two may get lost.
const EVERY: u32 = 3;
/// How often in that time the buffer is checked.
const CHECKS: u32 = 4;
/// The shortest time between two checks.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
/// How many jobs share a request.
const MAX_BATCH: usize = 1_000;

/// Sends heartbeats for as long as the worker runs.
pub(super) async fn run<S: Send + Sync + 'static>(runner: Arc<Runner<S>>) {
    let mut last = Instant::now();
    loop {
        tokio::time::sleep_until(next_check(&runner)).await;
        release_overdue(&runner);
        let (expired, due) = expired_and_due(&runner);
        for run in expired {
            run.cancellation.cancel(Cancelled::LeaseLost);
        }
        // From time to time also without a job, to get the directives of the server.
        if !due.is_empty() || last.elapsed() >= runner.settings.lease {
            last = Instant::now();
            let mut rest = &due[..];
            loop {
                let (some, more) = rest.split_at(rest.len().min(MAX_BATCH));
                heartbeat(&runner, some).await;
                rest = more;
                if rest.is_empty() {
                    break;
                }
            }
        }
    }
}

/// When to check the buffer: several times in a lease, and when one expires.
fn next_check<S: Send + Sync + 'static>(runner: &Runner<S>) -> Instant {
    let now = Instant::now();
    let buffer = runner.buffer();
    let shortest = buffer.runs().map(|run| run.lease.span).min().unwrap_or(runner.settings.lease);
    let check = shortest.min(runner.settings.lease) / (EVERY * CHECKS);
    let first_end = buffer.runs().filter(|run| !run.is_lost()).map(|run| run.lease_until()).min();
    let check = now + check;
    first_end.map_or(check, |end| end.min(check)).max(now + SHORTEST_PAUSE)
}

/// Releases prefetched jobs that have not started by the time of their first heartbeat: every handler here is
/// busy, and other workers may be free.
fn release_overdue<S: Send + Sync + 'static>(runner: &Runner<S>) {
    let now = Instant::now();
    let overdue = runner.buffer().take_overdue(|run| run.alive() + run.lease.span / EVERY <= now);
    if !overdue.is_empty() {
        runner.release(overdue);
    }
}

/// The runs whose lease is over, and those that need a heartbeat.
fn expired_and_due<S: Send + Sync + 'static>(runner: &Runner<S>) -> (Vec<Arc<Run>>, Vec<Arc<Run>>) {
    let now = Instant::now();
    let held = runner.buffer();
    let alive = held.runs().filter(|run| !run.is_lost());
    let (expired, good): (Vec<_>, Vec<_>) = alive.cloned().partition(|run| run.lease_until() <= now);
    let due = good.into_iter().filter(|run| run.alive() + run.lease.span / EVERY <= now).collect();
    (expired, due)
}

/// One heartbeat. If the server does not answer in time, the next check sends another.
async fn heartbeat<S: Send + Sync + 'static>(runner: &Runner<S>, runs: &[Arc<Run>]) {
    let report_defaults = &runner.settings.report_defaults;
    let sent = Instant::now();
    // Not beyond the end of a lease, because then the handler has to be cancelled.
    let timeout = runs.iter().map(|run| (run.lease.span / EVERY).min(run.lease_until() - sent)).min();
    let timeout = timeout.unwrap_or(runner.settings.lease / EVERY);
    let answer = tokio::time::timeout(timeout, runner.transport().heartbeat(runs, report_defaults)).await;
    let Ok(Ok(answer)) = answer else { return };
    for (index, run) in runs.iter().enumerate() {
        match answer.lost.iter().find(|(lost, _)| *lost == index) {
            Some((_, why)) => drop(run.cancellation.cancel(*why)),
            None => run.note_alive(sent),
        }
    }
    let mode = match answer.directive {
        Directive::Run => Mode::Work,
        Directive::Quiet => Mode::Quiet,
        Directive::Terminate => Mode::Stop,
    };
    runner.mode.send_if_modified(|now| {
        let changed = *now != mode && *now != Mode::Stop;
        if changed {
            *now = mode;
        }
        changed
    });
}
