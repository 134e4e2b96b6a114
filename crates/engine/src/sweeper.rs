//! The only place that waits: it sweeps when something is due, and drains the inbox.

use crate::sweep::Backlog;
use crate::{Engine, EngineError, Step, SubmissionDecoder, Swept};
use redrive_policy::{Moment, Span};
use redrive_store::Drained;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// However quiet it is, the sweeper looks this often: clocks step, and other nodes write.
const LONGEST_INTERVAL: Span = Span::from_secs(1);
/// How soon the sweeper looks again when it could not do what is due, for example because another node has locked it.
/// Each further time in a row it waits twice as long.
const SHORTEST_INTERVAL: Span = Span::from_millis(5);
/// How often ended jobs are pruned, give or take the interval of the sweeper: often enough that few are pruned at once.
const PRUNE_EVERY: Duration = Duration::from_secs(2);

/// From one turn to the next it takes no longer, unless the server stood still: it was stopped or suspended, or its
/// store did not answer.
const LONGEST_TURN: Span = Span::from_secs(2);
/// It is not known how long the server was down before it started; no run is granted more than this.
const LONGEST_STANDSTILL: Span = Span::from_secs(86_400);
/// How often queues are pruned. To find those without jobs may take a look at every job.
const PRUNE_QUEUES_EVERY: Duration = Duration::from_secs(600);

/// How many inbox entries are read in one step.
const INBOX_STEP: usize = 100;
/// How often the inbox is read without a notification, which may be lost.
const INBOX_INTERVAL: Duration = Duration::from_secs(5);

/// Takes in what applications leave in the store until `stopped` completes; `decode` reads each entry. What
/// became of them is handed to `report`, and so is the first of several errors in a row, after which the work
/// goes on.
pub async fn drain_inbox(
    engine: &Engine,
    decode: &SubmissionDecoder<'_>,
    stopped: impl Future<Output = ()>,
    report: impl Fn(Result<&Drained, &EngineError>),
) {
    tokio::pin!(stopped);
    let mut failing = false;
    loop {
        let outcome = engine.drain_inbox(decode, INBOX_STEP).await;
        if outcome.is_ok() || !failing {
            report(outcome.as_ref());
        }
        failing = outcome.is_err();
        let interval = match outcome {
            Ok(drained) if drained.entries() >= INBOX_STEP => Duration::ZERO,
            Ok(_) => INBOX_INTERVAL,
            Err(_) => LONGEST_INTERVAL.into(),
        };
        tokio::select! {
            biased;
            () = &mut stopped => return,
            () = engine.inbox.notified() => {}
            () = tokio::time::sleep(interval) => {}
        }
    }
}

/// Something that the operator should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice<'e> {
    /// The store did not answer; the work goes on at the next turn.
    Failed(&'e EngineError),
    /// The wall clock was set.
    ClockStepped(Step),
    /// The server stood still for so long, or could not reach its store.
    StoodStill(Span),
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "sweep: {error}"),
            Self::ClockStepped(step) => {
                let (by, way) = (Span::saturating_ms(step.by_us.unsigned_abs() as f64 / 1e3), step.by_us > 0);
                let way = if way { "forward" } else { "back" };
                write!(f, "clock: the wall clock was set {way} by {by}; leases and delays go on by elapsed time")
            }
            Self::StoodStill(length) => {
                write!(f, "stood still for {length}; no run is taken from its worker before it had time to be heard")
            }
        }
    }
}

/// Sweeps and prunes until `stopped` completes. What is notable is handed to `report`.
pub async fn run(engine: Arc<Engine>, stopped: impl Future<Output = ()>, report: impl Fn(Notice<'_>)) {
    tokio::pin!(stopped);
    let mut rounds = Rounds { held_back: SHORTEST_INTERVAL, pruned: None, pruned_queues: None };
    let mut heard = None;
    // The wall clock may have been set while no engine was there.
    let mut untold_step = true;
    loop {
        if let Some(step) = engine.clock.check_wall() {
            report(Notice::ClockStepped(step));
            untold_step = true;
        }
        let still = standstill(&engine, heard);
        if heard.is_some() && still.is_some() {
            // What waits in the sockets is read first.
            tokio::select! {
                () = &mut stopped => break,
                () = tokio::time::sleep(LONGEST_INTERVAL.into()) => {}
            }
        }
        let begun = engine.clock.now();
        let turned = match still {
            Some(length) => engine.stood_still(length).await,
            None => Ok(()),
        };
        let turned = match turned {
            Ok(()) if untold_step => engine.tell_clock_stepped().await,
            other => other,
        };
        untold_step &= turned.is_err();
        let turned = match turned {
            Ok(()) => turn(&engine, &mut rounds).await,
            Err(error) => Err(error),
        };
        let interval = match turned {
            Ok(interval) => {
                still.filter(|_| heard.is_some()).into_iter().for_each(|length| report(Notice::StoodStill(length)));
                heard = Some(begun);
                interval
            }
            Err(error) => {
                report(Notice::Failed(&error));
                LONGEST_INTERVAL
            }
        };
        let nap = tokio::time::sleep(interval.into());
        tokio::pin!(nap);
        let ends = loop {
            tokio::select! {
                () = &mut stopped => break true,
                () = &mut nap => break false,
                () = engine.admission.earlier() => break false,
                () = next_window(&engine) => engine.admission.open_windows(engine.clock.now()),
            }
        };
        if ends {
            break;
        }
    }
    engine.clock.save();
}

/// Completes when a group opens for which somebody waits.
async fn next_window(engine: &Engine) {
    let windows = engine.admission.windows();
    loop {
        let opens = async {
            match windows.first() {
                Some(at) => tokio::time::sleep(at.since(engine.clock.now()).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = opens => return,
            () = windows.earlier() => {}
        }
    }
}

/// For how long no worker could be heard, where that is longer than from one turn to the next. Before the start, none
/// could.
fn standstill(engine: &Engine, heard: Option<Moment>) -> Option<Span> {
    let Some(heard) = heard else { return Some(LONGEST_STANDSTILL) };
    Some(engine.clock.now().since(heard)).filter(|since| *since > LONGEST_TURN)
}

/// What the turns of the sweeper remember.
struct Rounds {
    /// How long the next nap is, where what is due cannot be done.
    held_back: Span,
    pruned: Option<Instant>,
    pruned_queues: Option<Instant>,
}

fn is_over(last: Option<Instant>, span: Duration) -> bool {
    last.is_none_or(|at| at.elapsed() >= span)
}

/// One step of a sweep, and now and then a pruning; answers how long nothing is due. A store that does not answer
/// is asked once in a turn. A turn is short however much is due, or the next would take it for a standstill.
async fn turn(engine: &Engine, rounds: &mut Rounds) -> Result<Span, EngineError> {
    engine.admission.looking();
    let mut swept = Swept::default();
    let backlog = engine.sweep_once(&mut swept).await?;
    if is_over(rounds.pruned, PRUNE_EVERY) {
        engine.prune().await?;
        rounds.pruned = Some(Instant::now());
    }
    if is_over(rounds.pruned_queues, PRUNE_QUEUES_EVERY) {
        engine.prune_queues().await?;
        rounds.pruned_queues = Some(Instant::now());
    }
    if backlog == Backlog::Left {
        return Ok(Span::ZERO);
    }
    let next = engine.next_sweep().await?;
    let now = engine.clock.now();
    let interval = match next.map(|next| next.since(now)) {
        None => LONGEST_INTERVAL,
        Some(Span::ZERO) if swept == Swept::default() => {
            let interval = rounds.held_back;
            rounds.held_back = interval.times(2.0).at_most(LONGEST_INTERVAL);
            interval
        }
        Some(interval) => {
            rounds.held_back = SHORTEST_INTERVAL;
            interval.at_most(LONGEST_INTERVAL)
        }
    };
    engine.admission.looks_next(now.after(interval));
    Ok(interval)
}
