//! What a run learns that listens to events: all that it wants, whatever verb makes them, and nothing else.

use super::harness::{Harness, LEASE_MS, QUEUE, failed, lease_of, stopped};
use super::run_harness::blob;
use super::{CaseResult, Violation, same};
use crate::{
    AttemptOutcome, EventBody, Interest, Job, MessageBody, Missing, NewJob, OtherEvent, RESERVED_QUEUES, Redrive, Run,
    RunId, RunStep, Start, State,
};
use redrive_policy::Disposition;
use std::sync::Arc;

fn interest(types: &[&str]) -> Interest {
    Interest { types: types.iter().map(|one| Arc::from(*one)).collect(), ..Interest::default() }
}

/// A run that waits for messages, and listens.
async fn listening(harness: &mut Harness<'_>, interest: Interest) -> Result<Run, Violation> {
    let run = harness.new_started().await?;
    Ok(harness.stepped(RunStep { interest: Some(Arc::new(interest)), ..RunStep::of(&run) }).await?.run)
}

/// The events in the inbox of a run, in order.
async fn events(harness: &Harness<'_>, id: RunId) -> Result<Vec<EventBody>, Violation> {
    let event = |body| match body {
        MessageBody::Event { event, .. } => Ok(event),
        other => Err(Violation::new(format!("a message that is no event: {other:?}"))),
    };
    harness.bodies(id).await?.into_iter().map(event).collect()
}

/// The types of the events in the inbox of a run, in order.
async fn types(harness: &Harness<'_>, id: RunId) -> Result<Vec<String>, Violation> {
    Ok(events(harness, id).await?.iter().map(|event| event.event_type().to_owned()).collect())
}

fn event(event_type: &str, queue: Option<&str>) -> OtherEvent {
    OtherEvent {
        event_type: event_type.into(),
        subject: "s".into(),
        queue: queue.map(Arc::from),
        job_type: None,
        data: blob("{\"n\":1}"),
    }
}

pub(super) async fn run_that_listens_learns_of_what_every_verb_does(harness: &mut Harness<'_>) -> CaseResult {
    let run = listening(harness, interest(&["*"])).await?;
    let new = NewJob { start: Start::Scheduled(harness.later(10)), ..harness.job() };
    let job = harness.enqueue_new(new).await?;
    harness.advance(10);
    harness.promote(9).await?;
    let job = harness.claim_next(job.id).await?;
    harness.release(&job, 0, 9).await??;
    let job = harness.claim_next(job.id).await?;
    harness.settle(lease_of(&job)?, failed(harness.now())).await??;
    harness.advance(LEASE_MS);
    harness.promote(9).await?;
    let job = harness.claim_next(job.id).await?;
    harness.settle(lease_of(&job)?, stopped(Disposition::DeadLetter)).await??;
    harness.redrive(job.id, Redrive::default()).await??;
    let job = harness.claim_next(job.id).await?;
    harness.settle(lease_of(&job)?, AttemptOutcome::Done(Some(blob("1")))).await??;
    let expected = [
        "job.scheduled",
        "job.available",
        "job.started",
        "job.released",
        "job.started",
        "job.failed",
        "job.retrying",
        "job.available",
        "job.started",
        "job.failed",
        "job.discarded",
        "dead_letter.retried",
        "job.started",
        "job.completed",
    ];
    same!(types(harness, run.id).await?, expected, "what a life of a job leaves");
    let last = events(harness, run.id).await?.into_iter().filter_map(|event| event.job().cloned()).nth(13);
    same!(last.and_then(|event| event.result), Some(blob("1")), "the result in an event");
    Ok(())
}

pub(super) async fn run_that_listens_learns_of_the_other_ends(harness: &mut Harness<'_>) -> CaseResult {
    let run = listening(harness, interest(&["*"])).await?;
    let new = NewJob { start: Start::Pending, ..harness.job() };
    let job = harness.enqueue_new(new).await?;
    harness.activate(job.id).await??;
    harness.cancel(job.id).await??;
    let expires = harness.later(5);
    harness.enqueue_with(|spec| spec.expires = Some(expires)).await?;
    harness.advance(5);
    harness.promote(9).await?;
    harness.claimed().await?;
    harness.advance(LEASE_MS);
    harness.reclaim(9).await?;
    let expected = [
        "job.enqueued",
        "job.available",
        "job.cancelled",
        "job.enqueued",
        "job.expired",
        "job.enqueued",
        "job.started",
        "job.failed",
        "job.retrying",
    ];
    same!(types(harness, run.id).await?, expected, "what activation, cancellation, expiry and a lost worker leave");
    Ok(())
}

pub(super) async fn run_learns_of_what_it_wants_only(harness: &mut Harness<'_>) -> CaseResult {
    let named = |texts: &[&str]| texts.iter().map(|text| Arc::from(*text)).collect::<Vec<Arc<str>>>();
    let wanted = [
        (interest(&["job.completed"]), vec!["job.completed", "job.completed"]),
        (interest(&["queue.*"]), vec!["queue.paused"]),
        (interest(&[]), vec![]),
        (
            Interest { queues: named(&["other"]), ..interest(&["job.*"]) },
            vec!["job.enqueued", "job.started", "job.completed"],
        ),
        (
            Interest { queues: named(&["other"]), ..interest(&["*"]) },
            vec!["job.enqueued", "job.started", "job.completed", "queue.paused"],
        ),
        (Interest { job_types: named(&["rare.one"]), ..interest(&["job.enqueued"]) }, vec!["job.enqueued"]),
    ];
    let mut runs = Vec::new();
    for (interest, _) in &wanted {
        runs.push(listening(harness, interest.clone()).await?.id);
    }
    for (queue, kind) in [(QUEUE, "a.b"), ("other", "rare.one")] {
        let job = harness.enqueue_with(|spec| (spec.queue, spec.kind) = (queue.into(), kind.into())).await?;
        let claim = harness.claim_request(&[queue], 1);
        let claimed: Vec<Job> = harness.claim_with(claim).await?;
        same!(claimed.first().map(|job| job.id), Some(job.id), "the job that is claimed");
        harness.done(&claimed[0]).await?;
    }
    harness.store().pause("other".into(), true, Missing::Create, harness.now()).await?;
    for (run, (interest, expected)) in runs.into_iter().zip(wanted) {
        same!(types(harness, run).await?, expected, "what {interest:?} is told");
    }
    Ok(())
}

pub(super) async fn run_learns_of_pauses_that_change_something(harness: &mut Harness<'_>) -> CaseResult {
    let run = listening(harness, interest(&["queue.*"])).await?;
    for paused in [true, true, false, false] {
        harness.store().pause(QUEUE.into(), paused, Missing::Create, harness.now()).await?;
    }
    let refused = harness.store().pause("nowhere".into(), true, Missing::Refuse, harness.now()).await?;
    same!(refused, None, "the pause of a queue that is not there");
    same!(types(harness, run.id).await?, ["queue.paused", "queue.resumed"], "what four pauses leave");
    let told = events(harness, run.id).await?;
    same!(told[0].queue(), Some(QUEUE), "the queue that was paused");
    Ok(())
}

pub(super) async fn run_learns_of_the_steps_of_others(harness: &mut Harness<'_>) -> CaseResult {
    let run = listening(harness, interest(&["*"])).await?;
    let other = harness.waiting_run().await?;
    let (job, id) = {
        let job = harness.job();
        let id = job.id;
        (job, id)
    };
    let told = vec![event("flow.began", None), event("flow.went", Some("other"))];
    let step = RunStep { jobs: vec![(1, job)], events: told.clone(), ..RunStep::of(&other) };
    let other = harness.stepped(step.clone()).await?.run;
    same!(harness.step(step).await?.is_err(), true, "whether a step with an old revision is refused");
    harness.stepped(RunStep { cancelled: vec![id], ..RunStep::of(&other) }).await?;
    let expected = ["job.enqueued", "flow.began", "flow.went", "job.cancelled"];
    same!(types(harness, run.id).await?, expected, "what steps leave, and steps that are refused do not");
    let found = events(harness, run.id).await?.into_iter().nth(1);
    same!(found, told.into_iter().next().map(EventBody::Other), "the event as it was told");
    Ok(())
}

pub(super) async fn run_learns_nothing_of_reserved_queues(harness: &mut Harness<'_>) -> CaseResult {
    let run = listening(harness, interest(&["*"])).await?;
    let queue: Arc<str> = format!("{RESERVED_QUEUES}x").into();
    let job = harness.enqueue_with(|spec| spec.queue = Arc::clone(&queue)).await?;
    let claim = harness.claim_request(&[&queue], 1);
    let claimed = harness.claim_with(claim).await?;
    same!(claimed.first().map(|job| job.id), Some(job.id), "the job that is claimed");
    harness.done(&claimed[0]).await?;
    harness.store().pause(queue, true, Missing::Create, harness.now()).await?;
    let other = harness.waiting_run().await?;
    let told = vec![event("webhook.disabled", None)];
    harness.stepped(RunStep { events: told, ..RunStep::of(&other) }).await?;
    same!(types(harness, run.id).await?, Vec::<String>::new(), "what is told of a reserved queue");
    Ok(())
}

pub(super) async fn run_listens_until_it_is_told_otherwise(harness: &mut Harness<'_>) -> CaseResult {
    let (first, second) =
        (listening(harness, interest(&["job.enqueued"])).await?, listening(harness, interest(&["*"])).await?);
    harness.enqueue_one().await?;
    harness.restart();
    same!(harness.run(first.id).await?.interest, first.interest, "what a run wants after a restart");
    harness.enqueue_one().await?;
    for run in [&first, &second] {
        same!(types(harness, run.id).await?.len(), 2, "how many events are told, before and after a restart");
    }
    let first = harness.run(first.id).await?;
    let first = harness.stepped(RunStep { interest: None, ..RunStep::of(&first) }).await?.run;
    let second = harness.run(second.id).await?;
    let second = harness.stepped(RunStep { end: Some((true, blob("1"))), ..RunStep::of(&second) }).await?.run;
    same!((first.interest, second.interest), (None, None), "what runs want that have stopped or ended");
    harness.enqueue_one().await?;
    for run in [first.id, second.id] {
        same!(types(harness, run).await?.len(), 2, "how many events are told in the end");
    }
    Ok(())
}

pub(super) async fn run_learns_once_of_a_job_that_is_enqueued_again(harness: &mut Harness<'_>) -> CaseResult {
    let run = listening(harness, interest(&["*"])).await?;
    let new = NewJob { idempotency_key: Some("k".into()), ..harness.job() };
    let again = NewJob { id: harness.new_id(), ..new.clone() };
    let job = harness.enqueue_new(new.clone()).await?;
    harness.enqueue(vec![again]).await??;
    same!(
        harness.enqueue(vec![NewJob { idempotency_key: None, ..new }]).await?.is_err(),
        true,
        "whether an id is taken"
    );
    let job = harness.claim_next(job.id).await?;
    for _ in 0..2 {
        harness.done(&job).await?;
    }
    same!(harness.get(job.id).await?.state, State::Completed, "the state of the job");
    let expected = ["job.enqueued", "job.started", "job.completed"];
    same!(types(harness, run.id).await?, expected, "what repeated requests leave");
    harness.advance(LEASE_MS);
    same!(
        harness.store().next_run(super::run_harness::programs()).await?.is_some(),
        true,
        "whether the run is pending"
    );
    Ok(())
}
