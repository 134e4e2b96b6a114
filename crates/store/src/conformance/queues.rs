//! Queues among themselves: they take turns, and one that is held back delays no other.

use super::bench::{Bench, DELAY_MS, LEASE_MS, QUEUE, START, ids, jobs};
use super::{Flaw, Verified, ensure, same};
use crate::{Claim, Held, Job, JobId, Missing, NewJob, QueueRefusal, Redrive, Start, State};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

pub(super) async fn held_jobs_delay_no_other_and_are_not_counted(bench: &mut Bench<'_>) -> Verified {
    let mut waiting = Vec::new();
    for due_ms in [1, 10, 25] {
        waiting.push(scheduled(bench, "held", due_ms).await?);
    }
    let (first, second) = (scheduled(bench, QUEUE, 20).await?, scheduled(bench, QUEUE, 30).await?);
    bench.pass(30);
    let before = bench.get(waiting[0]).await?;
    same!(ids(&promote(bench, &["held"], 2).await?), [first, second], "what passes, with a limit of two");
    same!(bench.get(waiting[0]).await?, before, "what is held back");
    same!(promote(bench, &["held", "unknown"], 9).await?, Vec::new(), "what is left in other queues");
    Ok(())
}

pub(super) async fn held_jobs_are_held_in_every_waiting_state(bench: &mut Bench<'_>) -> Verified {
    let failed = bench.held().await?;
    let failed = bench.fail(&failed).await?;
    let snoozed = bench.held().await?;
    let snoozed = bench.release(&snoozed, 1_000, 9).await??;
    let scheduled = scheduled(bench, QUEUE, 1_000).await?;
    let waiting = [failed.id, snoozed.id, scheduled];
    bench.pass(1_000);
    same!(promote(bench, &[QUEUE], 9).await?, Vec::new(), "what passes where the queue is held");
    same!(ids(&bench.promote(9).await?), waiting, "what passes where it is not");
    Ok(())
}

pub(super) async fn held_jobs_go_out_in_order_once_their_queue_is_free(bench: &mut Bench<'_>) -> Verified {
    let mut waiting = Vec::new();
    for due_ms in [30, 10, 20, 10, 40] {
        waiting.push(scheduled(bench, "held", due_ms).await?);
    }
    bench.pass(40);
    same!(promote(bench, &["held"], 9).await?, Vec::new(), "what passes at first");
    let later = scheduled(bench, "held", 0).await?;
    bench.pass(1);
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.push(ids(&bench.promote(2).await?));
    }
    let expected = [vec![waiting[1], waiting[3]], vec![waiting[2], waiting[0]], vec![waiting[4]]];
    same!(steps, expected, "the steps, two jobs each");
    same!(bench.get(later).await?.state, State::Available, "a job that was never due");
    Ok(())
}

pub(super) async fn held_jobs_expire(bench: &mut Bench<'_>) -> Verified {
    let expires = bench.later(20);
    let new = bench.job_with(|spec| (spec.queue, spec.expires) = ("held".into(), Some(expires)));
    let start = Start::Scheduled(bench.later(10));
    let id = bench.add(NewJob { start, ..new }).await?.id;
    bench.pass(19);
    same!(promote(bench, &["held"], 9).await?, Vec::new(), "what happens to it when it is due");
    bench.pass(1);
    let moved = promote(bench, &["held"], 9).await?;
    same!(moved.iter().map(|job| (job.id, job.state)).collect::<Vec<_>>(), [(id, State::Discarded)], "its end");
    Ok(())
}

pub(super) async fn held_jobs_do_not_wake(bench: &mut Bench<'_>) -> Verified {
    scheduled(bench, "held", 10).await?;
    scheduled(bench, "other", 20).await?;
    let other = scheduled(bench, QUEUE, 30).await?;
    same!(wake_ms(bench, &[]).await?, Some(10), "the next moment where no queue is held");
    same!(wake_ms(bench, &["held"]).await?, Some(20), "where one is");
    same!(wake_ms(bench, &["held", "other"]).await?, Some(30), "where two are");
    same!(wake_ms(bench, &["held", "other", QUEUE]).await?, None, "where all are");
    bench.pass(30);
    same!(wake_ms(bench, &["held", "other", QUEUE]).await?, None, "where all are, and everything is due");
    same!(ids(&promote(bench, &["held", "other"], 9).await?), [other], "what passes");
    same!(wake_ms(bench, &["held", "other"]).await?, None, "when it has passed");
    Ok(())
}

pub(super) async fn held_queues_wake_for_leases_and_expiries(bench: &mut Bench<'_>) -> Verified {
    bench.held().await?;
    scheduled(bench, QUEUE, 10).await?;
    same!(wake_ms(bench, &[QUEUE]).await?, Some(LEASE_MS.into()), "the end of a lease in a held queue");
    let expires = bench.later(500);
    bench.added_with(|spec| spec.expires = Some(expires)).await?;
    same!(wake_ms(bench, &[QUEUE]).await?, Some(500), "an expiry in a held queue");
    Ok(())
}

pub(super) async fn held_queues_are_passed_over_by_a_claim(bench: &mut Bench<'_>) -> Verified {
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(bench.added_with(|spec| (spec.queue, spec.priority) = ("held".into(), 5)).await?.id);
    }
    let other = [bench.added().await?.id, bench.added().await?.id];
    let claim = claim_beside(bench, &["held"], &["held", QUEUE], 2);
    same!(ids(&bench.claim_by(claim).await?), other, "two jobs, where the queue asked first is held");
    let claim = claim_beside(bench, &["held", QUEUE, "unknown"], &["held", "unknown", "held"], 9);
    same!(bench.claim_by(claim).await?, Vec::new(), "where all queues asked are held or unknown");
    same!(bench.get(held[0]).await?.state, State::Available, "what is held");
    same!(ids(&bench.claim_by(bench.request(&["held"], 9)).await?), held, "where nothing is held any more");
    Ok(())
}

pub(super) async fn held_queues_give_no_job_whatever_made_it_available(bench: &mut Bench<'_>) -> Verified {
    let released = bench.held().await?;
    let failed = bench.held().await?;
    let ended = bench.held().await?;
    bench.done(&ended).await?;
    let pending = bench.job();
    let pending = bench.add(NewJob { start: Start::Pending, ..pending }).await?;
    let due = scheduled(bench, QUEUE, DELAY_MS).await?;
    bench.fail(&failed).await?;
    bench.pass(DELAY_MS);
    same!(ids(&bench.promote(9).await?), [failed.id, due], "what is due, before the queue is held");
    bench.pass(1);
    bench.release(&released, 0, 9).await??;
    bench.pass(1);
    bench.store().activate(pending.id, bench.now()).await??;
    bench.pass(1);
    bench.store().redrive(ended.id, Redrive::default(), bench.now()).await??;
    bench.pass(1);
    let new = bench.added().await?;
    same!(bench.claim_by(claim_beside(bench, &[QUEUE], &[QUEUE], 9)).await?, Vec::new(), "while the queue is held");
    let expected = [failed.id, due, released.id, pending.id, ended.id, new.id];
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.extend(ids(&bench.claim_by(claim_beside(bench, &["other"], &[QUEUE], 2)).await?));
    }
    same!(seen, expected, "when the hold is over, in order");
    Ok(())
}

pub(super) async fn a_hold_is_no_pause_and_does_not_end_one(bench: &mut Bench<'_>) -> Verified {
    let here = bench.added().await?;
    let there = bench.added_with(|spec| spec.queue = "there".into()).await?;
    bench.store().pause("there".into(), true, Missing::Refuse, bench.now()).await?;
    same!(bench.claim_by(claim_beside(bench, &[QUEUE], &[QUEUE, "there"], 9)).await?, Vec::new(), "held, and paused");
    same!(bench.store().paused().await?, ["there".into()], "what is paused");
    same!(ids(&bench.claim_by(bench.request(&["there", QUEUE], 9)).await?), [here.id], "where nothing is held");
    bench.store().pause("there".into(), false, Missing::Refuse, bench.now()).await?;
    same!(bench.claim_by(claim_beside(bench, &["there"], &["there"], 9)).await?, Vec::new(), "resumed, and held");
    same!(ids(&bench.claim_by(bench.request(&["there"], 9)).await?), [there.id], "resumed");
    Ok(())
}

pub(super) async fn paused_queues_are_told_by_name(bench: &mut Bench<'_>) -> Verified {
    same!(bench.store().paused().await?, Vec::new(), "of an empty store");
    bench.added().await?;
    for name in ["b", "c", "a"] {
        bench.store().pause(name.into(), true, Missing::Create, bench.now()).await?;
    }
    bench.store().pause("c".into(), false, Missing::Create, bench.now()).await?;
    same!(bench.store().paused().await?, ["a".into(), "b".into()], "two of four");
    bench.restart();
    same!(bench.store().paused().await?, ["a".into(), "b".into()], "after a restart");
    bench.store().forget_queue("a".into()).await?.map_err(|refusal| Flaw::new(format!("{refusal:?}")))?;
    same!(bench.store().paused().await?, ["b".into()], "when one is forgotten");
    Ok(())
}

pub(super) async fn queues_take_turns_when_they_are_promoted(bench: &mut Bench<'_>) -> Verified {
    let mut many = Vec::new();
    for due_ms in [1, 2, 3, 4, 5, 6] {
        many.push(scheduled(bench, "many", due_ms).await?);
    }
    let late = scheduled(bench, "few", 50).await?;
    let two = [scheduled(bench, "two", 20).await?, scheduled(bench, "two", 30).await?];
    bench.pass(50);
    same!(ids(&bench.promote(2).await?), [many[0], two[0]], "two, of the queues whose first job is due first");
    same!(ids(&bench.promote(4).await?), [many[1], two[1], late, many[2]], "the next four, by turns");
    same!(ids(&bench.promote(9).await?), many[3..], "the rest");
    Ok(())
}

pub(super) async fn an_empty_queue_is_forgotten_on_request_and_made_anew(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added().await?;
    let mut kept = bench.store().queues().await?;
    let refused = bench.store().forget_queue(QUEUE.into()).await?;
    same!(refused.err(), kept.pop().map(QueueRefusal::HasJobs), "with a job");
    same!(bench.get(job.id).await?, job, "its job");
    bench.cancel(job.id).await??;
    let ended = bench.store().forget_queue(QUEUE.into()).await?;
    ensure!(matches!(ended, Err(QueueRefusal::HasJobs(_))), "a queue with a job that has ended: {ended:?}");
    bench.store().remove(job.id).await??;
    bench.store().pause(QUEUE.into(), true, Missing::Refuse, bench.now()).await?;
    let forgotten = bench.store().forget_queue(QUEUE.into()).await?;
    same!(forgotten.map(|queue| (queue.name, queue.paused)), Ok((QUEUE.into(), true)), "without a job, and paused");
    same!(bench.store().queues().await?, Vec::new(), "the queues");
    same!(bench.store().forget_queue(QUEUE.into()).await?, Err(QueueRefusal::NotFound), "a second time");
    bench.pass(5);
    let again = bench.added().await?;
    let other = bench.added_with(|spec| spec.queue = "other".into()).await?;
    bench.restart();
    let seen: Vec<_> = bench.store().queues().await?.into_iter().map(|q| (q.name, q.paused, q.created)).collect();
    let expected = [(QUEUE.into(), false, bench.now()), ("other".into(), false, bench.now())];
    same!(seen, expected, "made anew, and another, after a restart");
    same!(ids(&bench.claim(9).await?), [again.id], "its job");
    same!(bench.get(other.id).await?, other, "the job of the other");
    Ok(())
}

pub(super) async fn old_queues_without_jobs_are_forgotten(bench: &mut Bench<'_>) -> Verified {
    let day = Span::from_millis(1_000);
    for name in ["paused", "empty", "busy"] {
        let job = bench.added_with(|spec| spec.queue = name.into()).await?;
        if name != "busy" {
            bench.cancel(job.id).await??;
            bench.store().remove(job.id).await??;
        }
    }
    bench.store().pause("paused".into(), true, Missing::Refuse, bench.now()).await?;
    bench.pass(999);
    same!(bench.store().prune_queues(day, bench.now()).await?, Vec::new(), "a moment early");
    bench.pass(1);
    bench.store().pause("new".into(), false, Missing::Create, bench.now()).await?;
    same!(bench.store().prune_queues(day, bench.now()).await?, ["empty".into()], "in time");
    bench.restart();
    let names: Vec<_> = bench.store().queues().await?.into_iter().map(|queue| queue.name).collect();
    same!(names, ["busy".into(), "new".into(), "paused".into()], "what is left, after a restart");
    bench.added_with(|spec| spec.queue = "empty".into()).await?;
    same!(bench.store().prune_queues(Span::ZERO, bench.now()).await?, ["new".into()], "whatever their age");
    Ok(())
}

pub(super) async fn a_job_that_comes_while_its_queue_is_forgotten_is_not_lost(bench: &mut Bench<'_>) -> Verified {
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let new = bench.job();
        let id = new.id;
        bench.store().pause(QUEUE.into(), false, Missing::Create, bench.now()).await?;
        let now = bench.now();
        bench.together(2, |index, store| {
            let new = new.clone();
            Box::pin(async move {
                match index {
                    0 => store.enqueue(vec![new], now).await.map(drop),
                    _ => store.prune_queues(Span::ZERO, now).await.map(drop),
                }
            })
        })?;
        same!(bench.get(id).await?.spec.queue, QUEUE.into(), "the queue of the job");
        let counts: Vec<_> =
            bench.store().queues().await?.into_iter().map(|queue| (queue.name, queue.counts[2])).collect();
        same!(counts, [(QUEUE.into(), 1)], "the queues");
        bench.cancel(id).await??;
        bench.store().remove(id).await??;
    }
    Ok(())
}

/// A claim of some queues while some are held.
fn claim_beside(bench: &Bench<'_>, held: &[&str], queues: &[&str], count: usize) -> Claim {
    Claim { held: Arc::new(names(held)), ..bench.request(queues, count) }
}

async fn promote(bench: &Bench<'_>, held: &[&str], limit: usize) -> Result<Vec<Job>, Flaw> {
    Ok(jobs(bench.store().promote(&names(held), limit, bench.now()).await?))
}

/// The next moment, in milliseconds since the start of the case.
async fn wake_ms(bench: &Bench<'_>, held: &[&str]) -> Result<Option<i64>, Flaw> {
    let wake = bench.store().next_wake(&names(held)).await?;
    Ok(wake.map(|wake| (wake.micros() - START.micros()) / 1_000))
}

fn names(queues: &[&str]) -> Held {
    Held::of_queues(queues.iter().map(|queue| (*queue).into()))
}

async fn scheduled(bench: &mut Bench<'_>, queue: &str, due_ms: u32) -> Result<JobId, Flaw> {
    let due: Moment = bench.now().after(Span::from_millis(due_ms));
    let new = bench.job_with(|spec| spec.queue = queue.into());
    Ok(bench.add(NewJob { start: Start::Scheduled(due), ..new }).await?.id)
}
