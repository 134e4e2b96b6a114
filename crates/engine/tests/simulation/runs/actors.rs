//! Those who start, signal and redrive runs, and the workers, sweepers and advancers that bring them to their end.

use super::program::{CANCEL, ERRAND, Errand, NOTE, Plan};
use super::world::{Known, RunWorld};
use crate::common::Seeded;
use redrive_engine::{ClaimRequest, Ending, EngineError, FailureReport, Randomness, RunRequest};
use redrive_policy::Span;
use redrive_store::{Blob, Filter, Job, LeaseRef, Page, Redrive, RunId, Signal, Token};
use std::rc::Rc;

/// How many runs a client starts at most.
const RUNS: u64 = 6;

pub(crate) async fn starter(world: Rc<RunWorld>, rng: Seeded) {
    for _ in 0..rng.between(1, RUNS) {
        world.idle(rng.between(1, 40)).await;
        let timer_ms = rng.permille(500).then(|| rng.between(1, 5_000));
        let plan = Plan { jobs: rng.below(4), runs: rng.below(3), timer_ms };
        let id = RunId::new(world.now(), u128::from(rng.bits()) << 64 | u128::from(rng.bits()));
        let known = Known { plan, started: false, notes_sent: 0, notes: 0, cancel_sent: false, cancelled: false };
        world.known.borrow_mut().insert(id, known);
        // A start without an answer is repeated: its id is taken then, or it is not.
        while !world.is_closing() {
            let request =
                RunRequest { id: Some(id), program: ERRAND, state: Blob::from(Errand::new(plan).write()), key: None };
            match world.ask(|engine| async move { engine.start_run(request).await }).await {
                None => world.idle(rng.between(1, 5)).await,
                Some(Ok(_) | Err(EngineError::RefusedRun(..))) => {
                    change(&world, id, |known| known.started = true);
                    world.count("starts");
                    break;
                }
                Some(Err(other)) => panic!("a start is refused: {other}"),
            }
        }
        if world.is_closing() {
            return;
        }
    }
}

fn change(world: &RunWorld, id: RunId, change: impl FnOnce(&mut Known)) {
    change(world.known.borrow_mut().get_mut(&id).expect("a run of this client"));
}

/// Sends signals to runs: mostly notes, now and then that they are cancelled.
pub(crate) async fn signaller(world: Rc<RunWorld>, rng: Seeded) {
    while !world.is_closing() {
        world.idle(rng.between(1, 30)).await;
        let started: Vec<RunId> =
            world.known.borrow().iter().filter(|(_, known)| known.started).map(|(id, _)| *id).collect();
        if started.is_empty() {
            continue;
        }
        let id = *rng.pick(&started);
        let cancels = rng.permille(200);
        change(&world, id, |known| {
            known.cancel_sent |= cancels;
            known.notes_sent += u64::from(!cancels);
        });
        let signal = Signal { name: if cancels { CANCEL } else { NOTE }.into(), body: Blob::default() };
        match world.ask(|engine| async move { engine.signal_run(id, signal).await }).await {
            Some(Ok(run)) => {
                let errand = Errand::read(&run.state).expect("a state that can be read");
                // The answer shows the run after it has read the signal.
                change(&world, id, |known| {
                    known.notes += u64::from(!cancels);
                    known.cancelled |= errand.cancelled;
                    assert!(errand.notes >= known.notes, "the answer is from before the signal: {known:?}");
                });
                world.count(if cancels { "cancels" } else { "notes" });
            }
            Some(Err(other)) => panic!("a signal is refused: {other}"),
            None => world.count("signals without an answer"),
        }
    }
}

/// Redrives jobs that have failed.
pub(crate) async fn redriver(world: Rc<RunWorld>, rng: Seeded) {
    while !world.is_closing() {
        world.idle(rng.between(5, 60)).await;
        let filter = Filter { state: Some(redrive_store::State::Discarded), ..Filter::default() };
        let listed = world.ask(|engine| async move { engine.list(filter, Page::new(0, 5)).await }).await;
        let Some(Ok(listed)) = listed else { continue };
        if listed.jobs.is_empty() {
            continue;
        }
        let id = rng.pick(&listed.jobs).id;
        let redrive = Redrive { spec: None, unique: None, by: "a test".into() };
        if let Some(Ok(_)) = world.ask(|engine| async move { engine.redrive(id, redrive).await }).await {
            world.count("redrives");
        }
    }
}

pub(crate) async fn worker(world: Rc<RunWorld>, rng: Seeded) {
    while !world.is_closing() {
        world.idle(rng.between(1, 10)).await;
        work(&world, &rng).await;
    }
}

/// Claims some jobs and ends them, one way or another; answers how many there were.
pub(crate) async fn work(world: &RunWorld, rng: &Seeded) -> usize {
    let request = ClaimRequest { count: 3, ..ClaimRequest::new(RunWorld::queues(), "ada") };
    let claimed = world.ask(|engine| async move { engine.claim(&request).await }).await;
    let jobs: Vec<Job> = claimed.and_then(Result::ok).unwrap_or_default();
    for job in &jobs {
        // Some are forgotten, and run again when their lease has ended.
        if !world.is_closing() && rng.permille(100) {
            continue;
        }
        world.idle(rng.below(4)).await;
        let token = job.lease.as_ref().map_or(Token::None, |lease| Token::Lease(lease.token));
        let lease_ref = LeaseRef { id: job.id, token };
        let ending = if rng.permille(250) {
            let retryable = rng.permille(500).then_some(false);
            Ending::Failed(FailureReport { retryable, ..FailureReport::new(Blob::from(&b"{}"[..])) })
        } else {
            Ending::Done(None)
        };
        if let Some(Ok(answers)) =
            world.ask(|engine| async move { engine.settle(vec![(lease_ref, ending)]).await }).await
            && answers.iter().all(Result::is_ok)
        {
            world.count("reports");
        }
    }
    jobs.len()
}

/// What is due happens, and runs that nobody has advanced are advanced.
pub(crate) async fn sweeper(world: Rc<RunWorld>, rng: Seeded) {
    while !world.is_closing() {
        world.idle(rng.between(1, 15)).await;
        if rng.permille(20) {
            let length = Span::from_secs(rng.between(1, 100) as u32);
            world.advance(length);
            let _ = world.ask(|engine| async move { engine.stood_still(length).await }).await;
            world.count("standstills");
        }
        let _ = world.ask(|engine| async move { engine.sweep().await }).await;
        if rng.permille(500)
            && let Some(Ok(steps)) = world.ask(|engine| async move { engine.advance().await }).await
            && steps > 0
        {
            world.count("steps of the advancer");
        }
    }
}
