//! Signs of life, from a task of its own: whatever handlers do, leases are kept as long as the worker
//! lives and the server answers.

use super::runner::{Runner, Wanted};
use crate::Cancelled;
use crate::run::Run;
use crate::transport::Directive;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A sign of life is sent after this part of a lease, so that two may get lost.
const EVERY: u32 = 3;
/// How often in that time the desk is looked at.
const LOOKS: u32 = 4;
/// How many jobs share a request.
const MOST_TOGETHER: usize = 1_000;

/// Beats for as long as the worker runs.
pub(super) async fn run<S: Send + Sync + 'static>(runner: Arc<Runner<S>>) {
    loop {
        let shortest = runner.desk().runs().map(|run| run.lease.span).min();
        let lease = shortest.unwrap_or(runner.settings.lease).min(runner.settings.lease);
        tokio::time::sleep((lease / (EVERY * LOOKS)).max(Duration::from_millis(5))).await;
        let (expired, due) = sorted_out(&runner);
        for run in expired {
            run.cancellation.give(Cancelled::LeaseLost);
        }
        for some in due.chunks(MOST_TOGETHER) {
            beat(&runner, some).await;
        }
    }
}

/// The runs whose lease is over, and those that need a sign of life.
fn sorted_out<S: Send + Sync + 'static>(runner: &Runner<S>) -> (Vec<Arc<Run>>, Vec<Arc<Run>>) {
    let now = Instant::now();
    let held = runner.desk();
    let alive = held.runs().filter(|run| run.cancellation.why() != Some(Cancelled::LeaseLost));
    let (expired, good): (Vec<_>, Vec<_>) = alive.cloned().partition(|run| run.lease_until() <= now);
    let due = good.into_iter().filter(|run| run.alive() + run.lease.span / EVERY <= now).collect();
    (expired, due)
}

/// One sign of life. Where the server does not answer in time, the next look sends another.
async fn beat<S: Send + Sync + 'static>(runner: &Runner<S>, runs: &[Arc<Run>]) {
    let terms = &runner.settings.terms;
    let sent = Instant::now();
    let patience = runs.iter().map(|run| run.lease.span / EVERY).min().unwrap_or(runner.settings.lease);
    let answer = tokio::time::timeout(patience, runner.transport().beat(runs, terms)).await;
    let Ok(Ok(answer)) = answer else { return };
    for (index, run) in runs.iter().enumerate() {
        if answer.lost.contains(&index) {
            run.cancellation.give(Cancelled::LeaseLost);
        } else {
            run.note_alive(sent);
        }
    }
    let wanted = match answer.directive {
        Directive::Run => Wanted::Work,
        Directive::Quiet => Wanted::Quiet,
        Directive::Terminate => Wanted::Stop,
    };
    runner.wanted.send_if_modified(|now| {
        let changed = *now != wanted && *now != Wanted::Stop;
        if changed {
            *now = wanted;
        }
        changed
    });
}
