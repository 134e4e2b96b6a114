//! Those who enqueue, run, cancel, redrive and limit jobs.

use super::watch::Watch;
use super::{KEYS, QUEUES, STRICT_KEYS, own_limit, queue_limit};
use crate::common::Seeded;
use crate::nodes::Nodes;
use redrive_engine::{ClaimRequest, Ending, EngineError, FailureReport, Randomness, Submission};
use redrive_policy::{Moment, Span};
use redrive_store::{
    Blob, Bounds, Enqueued, Filter, Group, Job, JobId, LeaseRef, OnConflict, Page, Redrive, Refusal, Setting, Start,
    State, States, Token, Unique, UniqueKey,
};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) async fn producer(nodes: Rc<Nodes>, watch: Watch, rng: Seeded) {
    for _ in 0..rng.between(5, 25) {
        nodes.idle(rng.between(1, 25)).await;
        let batch: Vec<Submission> = (0..rng.between(1, 2)).map(|_| submission(&nodes, &rng)).collect();
        let asked = batch.iter().filter_map(|job| Some((job.id?, job.clone())));
        watch.seen().asked.extend(asked);
        // Without an answer it is sent again: then its ids are taken, or it is a duplicate of itself.
        for _ in 0..rng.between(1, 3) {
            let jobs = batch.clone();
            match nodes.ask(|engine| async move { engine.submit(jobs).await }).await {
                None if !nodes.is_closing() => nodes.idle(rng.between(1, 5)).await,
                None => return,
                Some(answer) => {
                    count(&nodes, &answer);
                    break;
                }
            }
        }
        if nodes.is_closing() {
            return;
        }
    }
}

fn count(nodes: &Nodes, answer: &Result<Vec<Enqueued>, EngineError>) {
    match answer {
        Ok(answers) => answers.iter().for_each(|answer| {
            nodes.count(match answer {
                Enqueued::Created(_) => "created",
                Enqueued::Replaced { .. } => "replaced",
                Enqueued::Ignored(_) => "ignored",
                Enqueued::Existing(_) => "existing",
            });
        }),
        Err(EngineError::NotUnique(_, duplicate)) if duplicate.irreplaceable => nodes.count("irreplaceable"),
        Err(EngineError::NotUnique(..)) => nodes.count("rejected"),
        Err(EngineError::Duplicate(_)) => nodes.count("sent twice"),
        Err(other) => panic!("a batch is refused: {other}"),
    }
}

fn submission(nodes: &Nodes, rng: &Seeded) -> Submission {
    let id = JobId::new(nodes.now(), u128::from(rng.bits()) << 64 | u128::from(rng.bits()));
    let start = match rng.below(4) {
        0 => Start::Scheduled(nodes.now().after(Span::from_millis(rng.below(20_000) as u32))),
        _ => Start::Available,
    };
    let limit = rng.permille(600).then(|| own_limit(KEYS[rng.below(4) as usize], rng));
    let kind = *rng.pick(&["mail", "report"]);
    let lease = Some(Span::from_secs(rng.between(1, 30) as u32));
    let unique = rng.permille(600).then(|| Arc::new(unique(rng)));
    let job = Submission::new(kind, *rng.pick(&QUEUES), Blob::from(&b"{}"[..]));
    Submission { id: Some(id), start, lease, limit, unique, priority: rng.below(3) as i32, ..job }
}

fn unique(rng: &Seeded) -> Unique {
    let key = rng.below(5) as u8;
    let on_conflict = *rng.pick(&OnConflict::ALL);
    let unique = Unique { on_conflict, ..Unique::new(UniqueKey([key; 32])) };
    if key < STRICT_KEYS {
        return unique;
    }
    let some = |states: &[State]| states.iter().copied().collect::<States>();
    let states = match rng.below(6) {
        0 => some(&[State::Available]),
        1 => some(&[State::Active]),
        2 => some(&[State::Scheduled, State::Retryable]),
        3 | 4 => some(&State::ALL),
        _ => States::UNENDED,
    };
    let period = rng.permille(500).then(|| Span::from_secs(rng.between(1, 60) as u32));
    Unique { states, period, ..unique }
}

pub(crate) async fn worker(nodes: Rc<Nodes>, rng: Seeded) {
    while !nodes.is_closing() {
        nodes.idle(rng.between(1, 10)).await;
        let request = ClaimRequest { count: rng.between(1, 4) as usize, ..request() };
        let claimed = nodes.ask(|engine| async move { engine.claim(&request).await }).await;
        for job in claimed.and_then(Result::ok).unwrap_or_default() {
            // Some are forgotten, and run again when their lease has ended.
            if rng.permille(800) {
                nodes.idle(rng.below(12)).await;
                end(&nodes, None, &job, ending(&rng)).await;
            }
        }
    }
}

pub(crate) fn request() -> ClaimRequest {
    ClaimRequest::new(QUEUES.iter().map(|queue| Arc::from(*queue)).collect(), "ada")
}

fn ending(rng: &Seeded) -> Ending {
    match rng.below(10) {
        0 | 1 => {
            let retryable = rng.permille(400).then_some(false);
            Ending::Failed(FailureReport { retryable, ..FailureReport::new(Blob::from(&b"{}"[..])) })
        }
        2 => Ending::Released(Span::from_millis(rng.below(5_000) as u32)),
        _ => Ending::Done(None),
    }
}

/// Reports the end of a run, to some node or this one.
pub(crate) async fn end(nodes: &Nodes, node: Option<usize>, job: &Job, ending: Ending) {
    let token = job.lease.as_ref().map_or(Token::None, |lease| Token::Lease(lease.token));
    let endings = vec![(LeaseRef { id: job.id, token }, ending)];
    let answer = match node {
        Some(node) => nodes.ask_node(node, |engine| async move { engine.settle(endings).await }).await,
        None => nodes.ask(|engine| async move { engine.settle(endings).await }).await,
    };
    if let Some(Ok(answers)) = answer
        && answers.iter().all(Result::is_ok)
    {
        nodes.count("reports");
    }
}

/// Cancels and redrives jobs, and changes limits.
pub(crate) async fn operator(nodes: Rc<Nodes>, rng: Seeded) {
    while !nodes.is_closing() {
        nodes.idle(rng.between(5, 50)).await;
        match rng.below(6) {
            0 => limit(&nodes, &rng).await,
            1 => hold(&nodes, &rng).await,
            2 => {
                if let Some(id) = some_job(&nodes, &rng, *rng.pick(&[State::Active, State::Available])).await {
                    let _ = nodes.ask(|engine| async move { engine.cancel(id).await }).await;
                }
            }
            _ => redrive(&nodes, &rng).await,
        }
    }
}

async fn some_job(nodes: &Nodes, rng: &Seeded, state: State) -> Option<JobId> {
    let filter = Filter { state: Some(state), ..Filter::default() };
    let listed = nodes.ask(|engine| async move { engine.list(filter, Page::new(0, 5)).await }).await;
    let jobs = listed?.ok()?.jobs;
    (!jobs.is_empty()).then(|| rng.pick(&jobs).id)
}

async fn redrive(nodes: &Nodes, rng: &Seeded) {
    let ended = *rng.pick(&[State::Completed, State::Cancelled, State::Discarded]);
    let Some(id) = some_job(nodes, rng, ended).await else { return };
    let redrive = Redrive { spec: None, unique: None, by: "a test".into() };
    match nodes.ask(|engine| async move { engine.redrive(id, redrive).await }).await {
        Some(Ok(_)) => nodes.count("redrives"),
        Some(Err(EngineError::Refused(_, Refusal::Duplicate(_)))) => nodes.count("refused redrives"),
        _ => {}
    }
}

async fn limit(nodes: &Nodes, rng: &Seeded) {
    let concurrency = Some(rng.between(1, 3) as u32);
    let (group, bounds) = match rng.below(4) {
        0 => (Group::Kind("report".into()), Bounds { concurrency, ..Bounds::default() }),
        1 => (Group::Queue(QUEUES[0].into()), Bounds { concurrency, ..Bounds::default() }),
        2 => (Group::Queue(QUEUES[1].into()), Bounds { concurrency, ..queue_limit() }),
        _ => (Group::Key((*rng.pick(&KEYS)).into()), Bounds { concurrency, ..Bounds::default() }),
    };
    // Without the limits of a type its next jobs would be in no group, and the rate of a queue counts from its start.
    let stays = matches!(group, Group::Kind(_)) || bounds.rate.is_some();
    let setting = (stays || rng.permille(700)).then(|| Setting { bounds, ..Setting::default() });
    if nodes.ask(|engine| async move { engine.set_limit(group, setting).await }).await.is_some() {
        nodes.count("limits set");
    }
}

async fn hold(nodes: &Nodes, rng: &Seeded) {
    let group = Group::Key((*rng.pick(&KEYS)).into());
    let until: Moment = nodes.now().after(Span::from_secs(rng.between(1, 20) as u32));
    if nodes.ask(|engine| async move { engine.hold_group(group, until).await }).await.is_some() {
        nodes.count("holds");
    }
}

pub(crate) async fn sweeper(nodes: Rc<Nodes>, rng: Seeded) {
    while !nodes.is_closing() {
        nodes.idle(rng.between(1, 15)).await;
        let _ = nodes.ask(|engine| async move { engine.sweep().await }).await;
        if rng.permille(50) {
            let _ = nodes.ask(|engine| async move { engine.prune().await }).await;
        }
    }
}
