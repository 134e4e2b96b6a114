//! Several queues: they take turns, and a held queue delays no other.

use super::harness::{DELAY_MS, Harness, LEASE_MS, QUEUE, START, ids, jobs};
use super::{CaseResult, Violation, ensure, same};
use crate::{Claim, Held, Job, JobId, Missing, NewJob, QueueRefusal, Redrive, Start, State};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

pub(super) async fn held_jobs_delay_no_other_and_are_not_counted(harness: &mut Harness<'_>) -> CaseResult {
    let mut waiting = Vec::new();
    for due_ms in [1, 10, 25] {
        waiting.push(scheduled(harness, "held", due_ms).await?);
    }
    let (first, second) = (scheduled(harness, QUEUE, 20).await?, scheduled(harness, QUEUE, 30).await?);
    harness.advance(30);
    let before = harness.get(waiting[0]).await?;
    same!(ids(&promote(harness, &["held"], 2).await?), [first, second], "what passes, with a limit of two");
    same!(harness.get(waiting[0]).await?, before, "what is held back");
    same!(promote(harness, &["held", "unknown"], 9).await?, Vec::new(), "what is left in other queues");
    Ok(())
}

pub(super) async fn held_jobs_are_held_in_every_waiting_state(harness: &mut Harness<'_>) -> CaseResult {
    let failed = harness.claimed().await?;
    let failed = harness.fail(&failed).await?;
    let snoozed = harness.claimed().await?;
    let snoozed = harness.release(&snoozed, 1_000, 9).await??;
    let scheduled = scheduled(harness, QUEUE, 1_000).await?;
    let waiting = [failed.id, snoozed.id, scheduled];
    harness.advance(1_000);
    same!(promote(harness, &[QUEUE], 9).await?, Vec::new(), "what passes where the queue is held");
    same!(ids(&harness.promote(9).await?), waiting, "what passes where it is not");
    Ok(())
}

pub(super) async fn held_jobs_go_out_in_order_once_their_queue_is_free(harness: &mut Harness<'_>) -> CaseResult {
    let mut waiting = Vec::new();
    for due_ms in [30, 10, 20, 10, 40] {
        waiting.push(scheduled(harness, "held", due_ms).await?);
    }
    harness.advance(40);
    same!(promote(harness, &["held"], 9).await?, Vec::new(), "what passes at first");
    let later = scheduled(harness, "held", 0).await?;
    harness.advance(1);
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.push(ids(&harness.promote(2).await?));
    }
    let expected = [vec![waiting[1], waiting[3]], vec![waiting[2], waiting[0]], vec![waiting[4]]];
    same!(steps, expected, "the steps, two jobs each");
    same!(harness.get(later).await?.state, State::Available, "a job that was never due");
    Ok(())
}

pub(super) async fn held_jobs_expire(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(20);
    let new = harness.job_with(|spec| (spec.queue, spec.expires) = ("held".into(), Some(expires)));
    let start = Start::Scheduled(harness.later(10));
    let id = harness.enqueue_new(NewJob { start, ..new }).await?.id;
    harness.advance(19);
    same!(promote(harness, &["held"], 9).await?, Vec::new(), "what happens to it when it is due");
    harness.advance(1);
    let moved = promote(harness, &["held"], 9).await?;
    same!(moved.iter().map(|job| (job.id, job.state)).collect::<Vec<_>>(), [(id, State::Discarded)], "its end");
    Ok(())
}

pub(super) async fn held_jobs_do_not_wake(harness: &mut Harness<'_>) -> CaseResult {
    scheduled(harness, "held", 10).await?;
    scheduled(harness, "other", 20).await?;
    let other = scheduled(harness, QUEUE, 30).await?;
    same!(wake_ms(harness, &[]).await?, Some(10), "the next moment where no queue is held");
    same!(wake_ms(harness, &["held"]).await?, Some(20), "where one is");
    same!(wake_ms(harness, &["held", "other"]).await?, Some(30), "where two are");
    same!(wake_ms(harness, &["held", "other", QUEUE]).await?, None, "where all are");
    harness.advance(30);
    same!(wake_ms(harness, &["held", "other", QUEUE]).await?, None, "where all are, and store_view is due");
    same!(ids(&promote(harness, &["held", "other"], 9).await?), [other], "what passes");
    same!(wake_ms(harness, &["held", "other"]).await?, None, "when it has passed");
    Ok(())
}

pub(super) async fn held_queues_wake_for_leases_and_expiries(harness: &mut Harness<'_>) -> CaseResult {
    harness.claimed().await?;
    scheduled(harness, QUEUE, 10).await?;
    same!(wake_ms(harness, &[QUEUE]).await?, Some(LEASE_MS.into()), "the end of a lease in a held queue");
    let expires = harness.later(500);
    harness.enqueue_with(|spec| spec.expires = Some(expires)).await?;
    same!(wake_ms(harness, &[QUEUE]).await?, Some(500), "an expiry in a held queue");
    Ok(())
}

pub(super) async fn held_queues_are_passed_over_by_a_claim(harness: &mut Harness<'_>) -> CaseResult {
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(harness.enqueue_with(|spec| (spec.queue, spec.priority) = ("held".into(), 5)).await?.id);
    }
    let other = [harness.enqueue_one().await?.id, harness.enqueue_one().await?.id];
    let claim = claim_beside(harness, &["held"], &["held", QUEUE], 2);
    same!(ids(&harness.claim_with(claim).await?), other, "two jobs, where the queue asked first is held");
    let claim = claim_beside(harness, &["held", QUEUE, "unknown"], &["held", "unknown", "held"], 9);
    same!(harness.claim_with(claim).await?, Vec::new(), "where all queues asked are held or unknown");
    same!(harness.get(held[0]).await?.state, State::Available, "what is held");
    same!(ids(&harness.claim_with(harness.claim_request(&["held"], 9)).await?), held, "where nothing is held any more");
    Ok(())
}

pub(super) async fn held_queues_return_no_job_whatever_made_it_available(harness: &mut Harness<'_>) -> CaseResult {
    let released = harness.claimed().await?;
    let failed = harness.claimed().await?;
    let ended = harness.claimed().await?;
    harness.done(&ended).await?;
    let pending = harness.job();
    let pending = harness.enqueue_new(NewJob { start: Start::Pending, ..pending }).await?;
    let due = scheduled(harness, QUEUE, DELAY_MS).await?;
    harness.fail(&failed).await?;
    harness.advance(DELAY_MS);
    same!(ids(&harness.promote(9).await?), [failed.id, due], "what is due, before the queue is held");
    harness.advance(1);
    harness.release(&released, 0, 9).await??;
    harness.advance(1);
    harness.store().activate(pending.id, harness.now()).await??;
    harness.advance(1);
    harness.store().redrive(ended.id, Redrive::default(), harness.now()).await??;
    harness.advance(1);
    let new = harness.enqueue_one().await?;
    same!(
        harness.claim_with(claim_beside(harness, &[QUEUE], &[QUEUE], 9)).await?,
        Vec::new(),
        "while the queue is held"
    );
    let expected = [failed.id, due, released.id, pending.id, ended.id, new.id];
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.extend(ids(&harness.claim_with(claim_beside(harness, &["other"], &[QUEUE], 2)).await?));
    }
    same!(seen, expected, "when the queue is no longer held, in order");
    Ok(())
}

pub(super) async fn a_held_queue_is_not_paused_and_holding_does_not_end_a_pause(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let here = harness.enqueue_one().await?;
    let there = harness.enqueue_with(|spec| spec.queue = "there".into()).await?;
    harness.store().pause("there".into(), true, Missing::Refuse, harness.now()).await?;
    same!(
        harness.claim_with(claim_beside(harness, &[QUEUE], &[QUEUE, "there"], 9)).await?,
        Vec::new(),
        "held, and paused"
    );
    same!(harness.store().paused().await?, ["there".into()], "what is paused");
    same!(
        ids(&harness.claim_with(harness.claim_request(&["there", QUEUE], 9)).await?),
        [here.id],
        "where nothing is held"
    );
    harness.store().pause("there".into(), false, Missing::Refuse, harness.now()).await?;
    same!(harness.claim_with(claim_beside(harness, &["there"], &["there"], 9)).await?, Vec::new(), "resumed, and held");
    same!(ids(&harness.claim_with(harness.claim_request(&["there"], 9)).await?), [there.id], "resumed");
    Ok(())
}

pub(super) async fn paused_queues_are_listed_by_name(harness: &mut Harness<'_>) -> CaseResult {
    same!(harness.store().paused().await?, Vec::new(), "of an empty store");
    harness.enqueue_one().await?;
    for name in ["b", "c", "a"] {
        harness.store().pause(name.into(), true, Missing::Create, harness.now()).await?;
    }
    harness.store().pause("c".into(), false, Missing::Create, harness.now()).await?;
    same!(harness.store().paused().await?, ["a".into(), "b".into()], "two of four");
    harness.restart();
    same!(harness.store().paused().await?, ["a".into(), "b".into()], "after a restart");
    harness.store().forget_queue("a".into()).await?.map_err(|refusal| Violation::new(format!("{refusal:?}")))?;
    same!(harness.store().paused().await?, ["b".into()], "when one is forgotten");
    Ok(())
}

pub(super) async fn queues_take_turns_when_they_are_promoted(harness: &mut Harness<'_>) -> CaseResult {
    let mut many = Vec::new();
    for due_ms in [1, 2, 3, 4, 5, 6] {
        many.push(scheduled(harness, "many", due_ms).await?);
    }
    let late = scheduled(harness, "few", 50).await?;
    let two = [scheduled(harness, "two", 20).await?, scheduled(harness, "two", 30).await?];
    harness.advance(50);
    same!(ids(&harness.promote(2).await?), [many[0], two[0]], "two, of the queues whose first job is due first");
    same!(ids(&harness.promote(4).await?), [many[1], two[1], late, many[2]], "the next four, by turns");
    same!(ids(&harness.promote(9).await?), many[3..], "the rest");
    Ok(())
}

pub(super) async fn an_empty_queue_is_removed_on_request_and_created_again(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    let mut kept = harness.store().queues().await?;
    let refused = harness.store().forget_queue(QUEUE.into()).await?;
    same!(refused.err(), kept.pop().map(QueueRefusal::HasJobs), "with a job");
    same!(harness.get(job.id).await?, job, "its job");
    harness.cancel(job.id).await??;
    let ended = harness.store().forget_queue(QUEUE.into()).await?;
    ensure!(matches!(ended, Err(QueueRefusal::HasJobs(_))), "a queue with a job that has ended: {ended:?}");
    harness.store().remove(job.id).await??;
    harness.store().pause(QUEUE.into(), true, Missing::Refuse, harness.now()).await?;
    let forgotten = harness.store().forget_queue(QUEUE.into()).await?;
    same!(forgotten.map(|queue| (queue.name, queue.paused)), Ok((QUEUE.into(), true)), "without a job, and paused");
    same!(harness.store().queues().await?, Vec::new(), "the queues");
    same!(harness.store().forget_queue(QUEUE.into()).await?, Err(QueueRefusal::NotFound), "a second time");
    harness.advance(5);
    let again = harness.enqueue_one().await?;
    let other = harness.enqueue_with(|spec| spec.queue = "other".into()).await?;
    harness.restart();
    let seen: Vec<_> = harness.store().queues().await?.into_iter().map(|q| (q.name, q.paused, q.created)).collect();
    let expected = [(QUEUE.into(), false, harness.now()), ("other".into(), false, harness.now())];
    same!(seen, expected, "made anew, and another, after a restart");
    same!(ids(&harness.claim(9).await?), [again.id], "its job");
    same!(harness.get(other.id).await?, other, "the job of the other");
    Ok(())
}

pub(super) async fn old_queues_without_jobs_are_pruned(harness: &mut Harness<'_>) -> CaseResult {
    let day = Span::from_millis(1_000);
    for name in ["paused", "empty", "busy"] {
        let job = harness.enqueue_with(|spec| spec.queue = name.into()).await?;
        if name != "busy" {
            harness.cancel(job.id).await??;
            harness.store().remove(job.id).await??;
        }
    }
    harness.store().pause("paused".into(), true, Missing::Refuse, harness.now()).await?;
    harness.advance(999);
    same!(harness.store().prune_queues(day, harness.now()).await?, Vec::new(), "a moment early");
    harness.advance(1);
    harness.store().pause("new".into(), false, Missing::Create, harness.now()).await?;
    same!(harness.store().prune_queues(day, harness.now()).await?, ["empty".into()], "in time");
    harness.restart();
    let names: Vec<_> = harness.store().queues().await?.into_iter().map(|queue| queue.name).collect();
    same!(names, ["busy".into(), "new".into(), "paused".into()], "what is left, after a restart");
    harness.enqueue_with(|spec| spec.queue = "empty".into()).await?;
    same!(harness.store().prune_queues(Span::ZERO, harness.now()).await?, ["new".into()], "whatever their age");
    Ok(())
}

pub(super) async fn a_job_enqueued_while_its_queue_is_removed_is_not_lost(harness: &mut Harness<'_>) -> CaseResult {
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let new = harness.job();
        let id = new.id;
        harness.store().pause(QUEUE.into(), false, Missing::Create, harness.now()).await?;
        let now = harness.now();
        harness.together(2, |index, store| {
            let new = new.clone();
            Box::pin(async move {
                match index {
                    0 => store.enqueue(vec![new], now).await.map(drop),
                    _ => store.prune_queues(Span::ZERO, now).await.map(drop),
                }
            })
        })?;
        same!(harness.get(id).await?.spec.queue, QUEUE.into(), "the queue of the job");
        let counts: Vec<_> =
            harness.store().queues().await?.into_iter().map(|queue| (queue.name, queue.counts[2])).collect();
        same!(counts, [(QUEUE.into(), 1)], "the queues");
        harness.cancel(id).await??;
        harness.store().remove(id).await??;
    }
    Ok(())
}

/// A claim of some queues while some are held.
fn claim_beside(harness: &Harness<'_>, held: &[&str], queues: &[&str], count: usize) -> Claim {
    Claim { held: Arc::new(names(held)), ..harness.claim_request(queues, count) }
}

async fn promote(harness: &Harness<'_>, held: &[&str], limit: usize) -> Result<Vec<Job>, Violation> {
    Ok(jobs(harness.store().promote(&names(held), limit, harness.now()).await?))
}

/// The next moment, in milliseconds since the start of the case.
async fn wake_ms(harness: &Harness<'_>, held: &[&str]) -> Result<Option<i64>, Violation> {
    let wake = harness.store().next_wake(&names(held)).await?;
    Ok(wake.map(|wake| (wake.micros() - START.micros()) / 1_000))
}

fn names(queues: &[&str]) -> Held {
    Held::of_queues(queues.iter().map(|queue| (*queue).into()))
}

async fn scheduled(harness: &mut Harness<'_>, queue: &str, due_ms: u32) -> Result<JobId, Violation> {
    let due: Moment = harness.now().after(Span::from_millis(due_ms));
    let new = harness.job_with(|spec| spec.queue = queue.into());
    Ok(harness.enqueue_new(NewJob { start: Start::Scheduled(due), ..new }).await?.id)
}
