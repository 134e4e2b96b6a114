//! The loop that advances runs when they get messages and when their timers are due.

use crate::{Engine, EngineError};
use redrive_policy::Span;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// However quiet it is, runs are looked for this often: other nodes write, and end before they advance what they left.
/// Their notifications may get lost.
const LONGEST_INTERVAL: Span = Span::from_secs(1);
/// How soon runs are looked for again when what is pending could not be advanced. Each further time in a row the
/// interval doubles.
const SHORTEST_INTERVAL: Span = Span::from_millis(5);
/// How soon runs are looked for that got something to do on another node, which is to do it first.
const LEFT_TO_OTHERS: Duration = Duration::from_millis(100);
/// How often runs that have ended are pruned.
const PRUNE_EVERY: Duration = Duration::from_secs(2);

/// What happened to the loop.
#[derive(Clone, Copy, Debug)]
pub enum AdvanceNotice<'a> {
    /// The store did not answer; runs are advanced later.
    Failed(&'a EngineError),
}

impl fmt::Display for AdvanceNotice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "cannot advance runs: {error}"),
        }
    }
}

/// Advances runs until `stopped` completes.
pub async fn advance_runs(engine: Arc<Engine>, stopped: impl Future<Output = ()>, report: impl Fn(AdvanceNotice<'_>)) {
    tokio::pin!(stopped);
    let (mut idle, mut pruned, mut looked) = (SHORTEST_INTERVAL, Instant::now(), None::<Instant>);
    let mut recalled = Instant::now();
    loop {
        if recalled.elapsed() >= LONGEST_INTERVAL.into() {
            recalled = Instant::now();
            // Another node may have begun maintenance, or ended it.
            if let Err(error) = engine.recall_maintenance().await {
                report(AdvanceNotice::Failed(&error));
            }
        }
        let turn = turn(&engine, &mut idle, &mut looked).await;
        let interval = turn.unwrap_or_else(|error| {
            report(AdvanceNotice::Failed(&error));
            LONGEST_INTERVAL
        });
        if pruned.elapsed() >= PRUNE_EVERY {
            pruned = Instant::now();
            if let Err(error) = engine.prune_runs().await {
                report(AdvanceNotice::Failed(&error));
            }
        }
        tokio::select! {
            () = &mut stopped => return,
            () = engine.runs.woken.notified() => {}
            () = left_by_others(&engine) => {}
            () = tokio::time::sleep(interval.into()) => {}
        }
    }
}

/// Waits until another node has left something to do, and has had the time to do it. Where this is interrupted, runs
/// are looked for at once.
async fn left_by_others(engine: &Engine) {
    engine.runs.elsewhere.notified().await;
    tokio::time::sleep(LEFT_TO_OTHERS).await;
}

/// Advances what has got messages, and now and then all that is pending; answers for how long nothing is.
async fn turn(engine: &Engine, idle: &mut Span, looked: &mut Option<Instant>) -> Result<Span, EngineError> {
    engine.advance_woken().await;
    engine.advance_told().await?;
    // Timers are looked at when nothing arrives, and often enough when something always does.
    if looked.is_some_and(|at| at.elapsed() < SHORTEST_INTERVAL.into()) {
        return Ok(SHORTEST_INTERVAL);
    }
    *looked = Some(Instant::now());
    let due = |next: Option<redrive_policy::Moment>| next.map(|next| next.since(engine.clock.now()));
    let mut next = due(engine.next_run().await?);
    if next == Some(Span::ZERO) {
        let steps = engine.advance().await?;
        next = due(engine.next_run().await?);
        if steps == 0 && next == Some(Span::ZERO) {
            let interval = *idle;
            *idle = interval.times(2.0).at_most(LONGEST_INTERVAL);
            return Ok(interval);
        }
    }
    *idle = SHORTEST_INTERVAL;
    Ok(next.unwrap_or(LONGEST_INTERVAL).at_most(LONGEST_INTERVAL))
}
