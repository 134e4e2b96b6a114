//! Unique jobs: which stored jobs make a new one a duplicate, and what happens then.

use super::harness::Harness;
use super::{CaseResult, Violation, ensure, same};
use crate::{
    Duplicate, EnqueueRefusal, Enqueued, Job, NewJob, OnConflict, Redrive, Refusal, Retention, State, States, Unique,
    UniqueKey,
};
use redrive_policy::Span;
use std::sync::Arc;

/// A key, by a number.
pub(super) const fn key(number: u8) -> UniqueKey {
    UniqueKey([number; 32])
}

/// A new job that must be unique.
pub(super) fn unique(harness: &mut Harness<'_>, number: u8, change: impl FnOnce(&mut Unique)) -> NewJob {
    let mut unique = Unique::new(key(number));
    change(&mut unique);
    NewJob { unique: Some(Arc::new(unique)), ..harness.job() }
}

/// The refusal of a job at a position because of another.
pub(super) fn duplicate(index: usize, job: &Job, number: u8) -> EnqueueRefusal {
    let duplicate = Duplicate { id: job.id, state: job.state, key: key(number), irreplaceable: false };
    EnqueueRefusal::Duplicate { index, duplicate }
}

pub(super) async fn unique_refuses_a_duplicate_and_its_whole_batch(harness: &mut Harness<'_>) -> CaseResult {
    let first = unique(harness, 1, |_| {});
    let first = harness.enqueue_new(first).await?;
    same!(harness.get(first.id).await?, first, "the job, read back with what it must be unique in");
    let before = harness.store_view().await?;
    let batch = vec![harness.job(), unique(harness, 1, |_| {}), unique(harness, 2, |_| {})];
    let other = batch[2].clone();
    same!(harness.enqueue(batch).await?, Err(duplicate(1, &first, 1)), "a batch with a duplicate");
    same!(harness.store_view().await?, before, "the store after a batch that was refused");
    harness.enqueue_new(other).await?;
    harness.enqueue_one().await?;
    Ok(())
}

pub(super) async fn unique_holds_in_each_state_that_has_not_ended(harness: &mut Harness<'_>) -> CaseResult {
    for (number, state) in (1..).zip(State::ALL) {
        let held = in_state(harness, number, state).await?;
        let again = unique(harness, number, |_| {});
        let answer = harness.enqueue(vec![again]).await?;
        if state.is_terminal() {
            ensure!(
                matches!(answer.as_deref(), Ok([Enqueued::Created(_)])),
                "a job that is {state} made a new one a duplicate: {answer:?}"
            );
        } else {
            same!(answer, Err(duplicate(0, &held, number)), "a duplicate of a job that is {state}");
        }
    }
    Ok(())
}

pub(super) async fn unique_looks_at_the_states_that_the_new_job_names(harness: &mut Harness<'_>) -> CaseResult {
    for (number, state) in (1..).zip(State::ALL) {
        let held = in_state(harness, number, state).await?;
        let others = States::from_bits(!States::from_iter([state]).bits());
        let only = unique(harness, number, |unique| unique.states = States::from_iter([state]));
        same!(harness.enqueue(vec![only]).await?, Err(duplicate(0, &held, number)), "a duplicate in {state} alone");
        let unseen = unique(harness, number, |unique| unique.states = others);
        harness.enqueue_new(unseen).await?;
    }
    Ok(())
}

pub(super) async fn unique_counts_the_period_from_the_creation_of_the_stored_job(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let within = |unique: &mut Unique| unique.period = Some(Span::from_millis(2_000));
    let held = unique(harness, 1, within);
    let held = harness.enqueue_new(held).await?;
    harness.advance_to_just_before(harness.later(2_000));
    let early = unique(harness, 1, within);
    same!(harness.enqueue(vec![early]).await?, Err(duplicate(0, &held, 1)), "a duplicate just before the end");
    harness.advance_to(held.times.created.after(Span::from_millis(2_000)));
    let forever = unique(harness, 1, |_| {});
    same!(harness.enqueue(vec![forever]).await?, Err(duplicate(0, &held, 1)), "a duplicate without a period");
    let late = unique(harness, 1, within);
    let answer = harness.enqueue(vec![late]).await?;
    let Ok([Enqueued::Created(late)]) = answer.as_deref() else {
        ensure!(false, "a job behind the period is answered by {answer:?}");
        return Ok(());
    };
    // Of the two, only the second is young enough.
    let third = unique(harness, 1, within);
    same!(harness.enqueue(vec![third]).await?, Err(duplicate(0, late, 1)), "a duplicate of the younger one");
    let first = unique(harness, 1, |unique| unique.on_conflict = OnConflict::Ignore);
    same!(harness.enqueue(vec![first]).await?, Ok(vec![Enqueued::Ignored(held)]), "a duplicate of both");
    Ok(())
}

pub(super) async fn unique_ignores_a_duplicate(harness: &mut Harness<'_>) -> CaseResult {
    let held = unique(harness, 1, |_| {});
    let held = harness.enqueue_new(held).await?;
    let held = harness.claim_next(held.id).await?;
    let before = harness.store_view().await?;
    let ignored = |harness: &mut Harness<'_>| {
        let mut job = unique(harness, 1, |unique| unique.on_conflict = OnConflict::Ignore);
        job.idempotency_key = Some("k".into());
        job
    };
    let (first, second) = (ignored(harness), ignored(harness));
    let answers = harness.enqueue(vec![first, second]).await?;
    same!(answers, Ok(vec![Enqueued::Ignored(held.clone()), Enqueued::Ignored(held.clone())]), "two duplicates");
    same!(harness.store_view().await?, before, "the store after two jobs that were ignored");
    harness.done(&held).await?;
    let again = ignored(harness);
    let again = harness.enqueue_new(again).await?;
    same!(again.attempt, 0, "the job that the key is free for, and the idempotency key with it");
    Ok(())
}

pub(super) async fn unique_conflicts_within_one_batch(harness: &mut Harness<'_>) -> CaseResult {
    let twice = vec![unique(harness, 1, |_| {}), unique(harness, 1, |_| {})];
    let first = twice[0].id;
    let refused = harness.enqueue(twice).await?;
    let expected = Duplicate { id: first, state: State::Available, key: key(1), irreplaceable: false };
    same!(refused, Err(EnqueueRefusal::Duplicate { index: 1, duplicate: expected }), "one key twice in a batch");
    same!(harness.store_view().await?.0.total, Some(0), "how many jobs are stored");
    let ignoring = unique(harness, 1, |unique| unique.on_conflict = OnConflict::Ignore);
    let replacing = unique(harness, 1, |unique| unique.on_conflict = OnConflict::Replace);
    let batch = vec![unique(harness, 1, |_| {}), ignoring, replacing];
    let ids = [batch[0].id, batch[2].id];
    let answers = harness.enqueue(batch).await??;
    let [Enqueued::Created(first), Enqueued::Ignored(same), Enqueued::Replaced { job, replaced }] = &answers[..] else {
        return Err(Violation::new(format!("a first, an ignored and a replacing job are answered by {answers:?}")));
    };
    same!((first.id, same, job.id), (ids[0], first, ids[1]), "the jobs of the answers");
    same!(first.state, State::Available, "the first one when it was stored");
    same!(replaced.len(), 1, "how many jobs were replaced");
    same!(harness.get(ids[0]).await?, replaced[0].job, "the job that was replaced");
    same!(harness.get(ids[0]).await?.state, State::Cancelled, "its state");
    same!(&harness.get(ids[1]).await?, job, "the job that replaced it");
    same!(super::harness::ids(&harness.claim(9).await?), [ids[1]], "what can be claimed");
    Ok(())
}

pub(super) async fn unique_checks_idempotency_keys_and_ids_first(harness: &mut Harness<'_>) -> CaseResult {
    let new = NewJob { idempotency_key: Some("k".into()), ..unique(harness, 1, |_| {}) };
    let held = harness.enqueue_new(new.clone()).await?;
    same!(
        harness.enqueue(vec![new.clone()]).await?,
        Ok(vec![Enqueued::Existing(held.clone())]),
        "a request sent again"
    );
    let unkeyed = NewJob { idempotency_key: None, ..new };
    let taken = EnqueueRefusal::IdTaken { index: 0, id: held.id };
    same!(harness.enqueue(vec![unkeyed]).await?, Err(taken), "a taken id of a duplicate");
    Ok(())
}

pub(super) async fn unique_keys_are_free_once_their_job_is_removed(harness: &mut Harness<'_>) -> CaseResult {
    let ever = |unique: &mut Unique| unique.states = States::from_bits(u8::MAX);
    for (number, prune) in [(1, false), (2, true)] {
        let held = in_state(harness, number, State::Cancelled).await?;
        let again = unique(harness, number, ever);
        same!(harness.enqueue(vec![again]).await?, Err(duplicate(0, &held, number)), "a duplicate of what has ended");
        if prune {
            let all = Retention { finished: Span::ZERO, dead: Span::ZERO };
            same!(harness.store().prune(all, 9, harness.now()).await?, 1, "how many jobs are removed");
        } else {
            harness.store().remove(held.id).await??;
        }
        let free = unique(harness, number, ever);
        harness.enqueue_new(free).await?;
    }
    Ok(())
}

pub(super) async fn unique_is_not_checked_again_when_a_job_becomes_available(harness: &mut Harness<'_>) -> CaseResult {
    let waiting = |unique: &mut Unique| unique.states = States::from_iter([State::Available]);
    let first = unique(harness, 1, waiting);
    let first = harness.enqueue_new(first).await?;
    let claimed = harness.claim_next(first.id).await?;
    let second = unique(harness, 1, waiting);
    let second = harness.enqueue_new(second).await?;
    harness.fail(&claimed).await?;
    harness.advance_to(harness.later(60_000));
    harness.promote(9).await?;
    same!(harness.get(first.id).await?.state, State::Available, "the first job after its failure");
    let third = unique(harness, 1, |unique| unique.on_conflict = OnConflict::Ignore);
    let first = harness.get(first.id).await?;
    same!(harness.enqueue(vec![third]).await?, Ok(vec![Enqueued::Ignored(first)]), "a duplicate of both: the oldest");
    same!(harness.get(second.id).await?.state, State::Available, "the second job");
    Ok(())
}

pub(super) async fn unique_refuses_a_redrive_while_another_job_has_the_key(harness: &mut Harness<'_>) -> CaseResult {
    let ended = in_state(harness, 1, State::Discarded).await?;
    // For which conflicts are ignored or replaced makes no difference: a redrive is refused.
    let second = unique(harness, 1, |unique| unique.on_conflict = OnConflict::Replace);
    let second = harness.enqueue_new(second).await?;
    let other = Duplicate { id: second.id, state: State::Available, key: key(1), irreplaceable: false };
    let refused = harness.redrive(ended.id, Redrive::default()).await?;
    same!(refused, Err(Refusal::Duplicate(other)), "a redrive while another job has the key");
    same!(harness.get(ended.id).await?, ended, "the job after the refusal");
    harness.cancel(second.id).await??;
    let redriven = harness.redrive(ended.id, Redrive::default()).await??;
    same!((redriven.state, &redriven.unique), (State::Available, &ended.unique), "the job, redriven");
    let refused = harness.redrive(second.id, Redrive::default()).await?;
    let other = Duplicate { id: ended.id, ..other };
    same!(refused, Err(Refusal::Duplicate(other)), "a redrive of the other one");
    let third = unique(harness, 1, |_| {});
    same!(harness.enqueue(vec![third]).await?, Err(duplicate(0, &redriven, 1)), "a duplicate of what was redriven");
    Ok(())
}

pub(super) async fn unique_follows_the_key_that_a_redrive_brings(harness: &mut Harness<'_>) -> CaseResult {
    let ended = in_state(harness, 1, State::Completed).await?;
    let taken = unique(harness, 2, |_| {});
    let taken = harness.enqueue_new(taken).await?;
    let to = |number: Option<u8>| {
        let unique = number.map(|number| Arc::new(Unique::new(key(number))));
        Redrive { spec: Some(Arc::clone(&ended.spec)), unique, by: "ada".into() }
    };
    let other = Duplicate { id: taken.id, state: State::Available, key: key(2), irreplaceable: false };
    let refused = harness.redrive(ended.id, to(Some(2))).await?;
    same!(refused, Err(Refusal::Duplicate(other)), "a redrive with the key of another job");
    let redriven = harness.redrive(ended.id, to(Some(3))).await??;
    let old = unique(harness, 1, |_| {});
    harness.enqueue_new(old).await?;
    let new = unique(harness, 3, |_| {});
    same!(harness.enqueue(vec![new]).await?, Err(duplicate(0, &redriven, 3)), "a duplicate by the new key");
    harness.cancel(ended.id).await??;
    same!(harness.redrive(ended.id, to(None)).await??.unique, None, "the job that need not be unique any more");
    let free = unique(harness, 3, |_| {});
    harness.enqueue_new(free).await?;
    Ok(())
}

pub(super) async fn unique_survives_a_restart(harness: &mut Harness<'_>) -> CaseResult {
    let ever = |unique: &mut Unique| unique.states = States::from_bits(u8::MAX);
    let (first, second) =
        (in_state(harness, 1, State::Available).await?, in_state(harness, 2, State::Completed).await?);
    harness.restart();
    same!(harness.get(first.id).await?, first, "a job that must be unique, after a restart");
    for (number, held) in [(1, &first), (2, &second)] {
        let again = unique(harness, number, ever);
        same!(harness.enqueue(vec![again]).await?, Err(duplicate(0, held, number)), "a duplicate after a restart");
    }
    Ok(())
}

/// A job with a key, brought into a state by the shortest path.
pub(super) async fn in_state(harness: &mut Harness<'_>, number: u8, state: State) -> Result<Job, Violation> {
    let unique = Some(Arc::new(Unique::new(key(number))));
    harness.job_in_with(state, |new| new.unique = unique).await
}
