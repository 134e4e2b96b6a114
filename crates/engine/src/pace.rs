//! The only place that waits: it runs the sweeps when they are due, and takes in what comes from outside.

use crate::{Engine, EngineError, Swept};
use redrive_policy::Span;
use redrive_store::{Opener, Received};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// However quiet it is, the sweeper looks this often: clocks step, and other nodes write.
const LONGEST_NAP: Span = Span::from_secs(1);
/// How soon the sweeper looks again when what is due cannot be done, as where another node is at it. Each
/// further time in a row it waits twice as long.
const SHORTEST_NAP: Span = Span::from_millis(5);
/// How often ended jobs are pruned, to the length of a nap: so often that there is never a mountain of them.
const PRUNE_EVERY: Duration = Duration::from_secs(2);

/// How many letters are taken in at a time.
const LETTERS: usize = 100;
/// How often is looked for letters that nobody rang for: a notification may be lost.
const LETTERS_EVERY: Duration = Duration::from_secs(5);

/// Takes in what applications leave in the store until `stopped` completes; `open` reads each letter. What
/// became of them is handed to `report`, and so is the first of several errors in a row, after which the work
/// goes on.
pub async fn receive(
    engine: &Engine,
    open: &Opener<'_>,
    stopped: impl Future<Output = ()>,
    report: impl Fn(Result<&Received, &EngineError>),
) {
    tokio::pin!(stopped);
    let mut failing = false;
    loop {
        let outcome = engine.receive(open, LETTERS).await;
        if outcome.is_ok() || !failing {
            report(outcome.as_ref());
        }
        failing = outcome.is_err();
        let nap = match outcome {
            Ok(received) if received.letters() >= LETTERS => Duration::ZERO,
            Ok(_) => LETTERS_EVERY,
            Err(_) => LONGEST_NAP.into(),
        };
        tokio::select! {
            biased;
            () = &mut stopped => return,
            () = engine.letters.notified() => {}
            () = tokio::time::sleep(nap) => {}
        }
    }
}

/// Sweeps and prunes until `stopped` completes. Errors of the store are handed to `report`, and the
/// work goes on at the next turn.
pub async fn run(engine: Arc<Engine>, stopped: impl Future<Output = ()>, report: impl Fn(&EngineError)) {
    tokio::pin!(stopped);
    let mut pruned = None;
    let mut held_back = SHORTEST_NAP;
    loop {
        let nap = match turn(&engine, &mut held_back, &mut pruned).await {
            Ok(nap) => nap,
            Err(error) => {
                report(&error);
                LONGEST_NAP
            }
        };
        tokio::select! {
            () = &mut stopped => return,
            () = tokio::time::sleep(nap.into()) => {}
            () = engine.earlier.notified() => {}
        }
    }
}

/// One sweep, and now and then a pruning; answers how long nothing is due. A store that does not answer is
/// asked once in a turn.
async fn turn(engine: &Engine, held_back: &mut Span, pruned: &mut Option<Instant>) -> Result<Span, EngineError> {
    engine.planned.store(i64::MAX, Ordering::Release);
    let swept = engine.sweep().await?;
    if pruned.is_none_or(|at| at.elapsed() >= PRUNE_EVERY) {
        engine.prune().await?;
        *pruned = Some(Instant::now());
    }
    let next = engine.next_sweep().await?;
    let now = engine.now();
    let nap = match next.map(|next| next.since(now)) {
        None => LONGEST_NAP,
        Some(Span::ZERO) if swept == Swept::default() => {
            let nap = *held_back;
            *held_back = nap.times(2.0).at_most(LONGEST_NAP);
            nap
        }
        Some(nap) => {
            *held_back = SHORTEST_NAP;
            nap.at_most(LONGEST_NAP)
        }
    };
    engine.planned.store(now.after(nap).micros(), Ordering::Release);
    Ok(nap)
}
