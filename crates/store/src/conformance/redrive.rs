//! What operators do to jobs: cancel, activate, redrive and remove them.

use super::harness::{DELAY_MS, Harness, ids, lease_of, stopped, token};
use super::{CaseResult, same};
use crate::{Job, KEPT_REVISIONS, Redrive, Refusal, Retention, Revision, Spec, State};
use redrive_policy::{Disposition, History, Span};
use std::sync::Arc;

pub(super) async fn cancel_ends_whatever_has_not_ended(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        let job = harness.job_in(state).await?;
        harness.advance(3);
        let mut expected = Job { state: State::Cancelled, due: None, lease: None, ..job };
        expected.times.finished = Some(harness.now());
        let answer = harness.store().cancel(expected.id, harness.now()).await??;
        same!((&answer.job, answer.from), (&expected, Some(state)), "a cancelled {state} job");
        same!(harness.get(expected.id).await?, expected, "the same job, read back");
    }
    harness.advance(1_000_000);
    same!((harness.reclaim(9).await?, harness.promote(9).await?), (vec![], vec![]), "what time does to them");
    Ok(())
}

pub(super) async fn cancel_of_what_has_ended_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        let job = harness.job_in(state).await?;
        harness.advance(3);
        let answer = harness.cancel(job.id).await?;
        same!(answer, Err(Refusal::WrongState(state)), "a cancelled {state} job");
        same!(harness.get(job.id).await?, job, "the {state} job");
    }
    let unknown = harness.new_id();
    same!(harness.cancel(unknown).await?, Err(Refusal::NotFound), "an unknown job");
    Ok(())
}

pub(super) async fn activate_makes_a_pending_job_available(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.job_in(State::Pending).await?;
    harness.advance(3);
    let mut expected = Job { state: State::Available, ..job };
    expected.times.available = Some(harness.now());
    same!(harness.activate(expected.id).await?, Ok(expected.clone()), "an activated job");
    same!(harness.claim_next(expected.id).await?.attempt, 1, "its run");
    Ok(())
}

pub(super) async fn activate_of_anything_else_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| *state != State::Pending) {
        let job = harness.job_in(state).await?;
        let answer = harness.activate(job.id).await?;
        same!(answer, Err(Refusal::WrongState(state)), "a {state} job, activated");
        same!(harness.get(job.id).await?, job, "the {state} job");
    }
    let unknown = harness.new_id();
    same!(harness.activate(unknown).await?, Err(Refusal::NotFound), "an unknown job");
    Ok(())
}

pub(super) async fn redrive_starts_a_new_generation_in_every_ended_state(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        let job = harness.job_in(state).await?;
        harness.advance(3);
        let mut expected = Job {
            state: State::Available,
            attempt: 0,
            history: History::new(harness.now()),
            generation: 1,
            dead: false,
            last_delay: None,
            result: None,
            settled: None,
            completed_by: None,
            ..job
        };
        (expected.times.available, expected.times.finished) = (Some(harness.now()), None);
        let redriven = harness.redrive(expected.id, Redrive::default()).await?;
        same!(redriven, Ok(expected.clone()), "a {state} job, redriven");
        same!(harness.get(expected.id).await?, expected, "the same job, read back");
        let claimed = harness.claim_next(expected.id).await?;
        same!(
            (claimed.attempt, token(&claimed)?.number),
            (1, expected.leases + 1),
            "run and lease of the new generation"
        );
    }
    Ok(())
}

pub(super) async fn redrive_keeps_the_failures_and_counts_generations(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    for _generation in 0..3 {
        for _run in 0..3 {
            harness.fail(&harness.claim_next(job.id).await?).await?;
            harness.advance(DELAY_MS);
            harness.promote(9).await?;
        }
        harness.redrive(job.id, Redrive::default()).await??;
    }
    let job = harness.get(job.id).await?;
    let runs: Vec<_> = job.failures.iter().map(|run| (run.generation, run.attempt)).collect();
    let expected = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)];
    same!(runs, expected, "generation and run of every failure");
    same!((job.generation, job.leases, job.attempt, job.history.failures()), (3, 9, 0, 0), "the counts");
    same!(job.last_delay, None, "the delay of the last retry in a generation without one");
    Ok(())
}

pub(super) async fn redrive_resets_the_count_of_releases(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    harness.release(&harness.claim_next(job.id).await?, 0, 1).await??;
    harness.cancel(job.id).await??;
    let redriven = harness.redrive(job.id, Redrive::default()).await??;
    same!(redriven.releases, 0, "how often the redriven job was released");
    Ok(())
}

pub(super) async fn redrive_may_replace_the_spec_of_the_job(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.job_in(State::Discarded).await?;
    let spec = Spec {
        queue: "elsewhere".into(),
        priority: 4,
        body: Arc::from(*b"[2]"),
        expires: Some(harness.later(9)),
        ..(*job.spec).clone()
    };
    harness.advance(1);
    let redriven = harness.redrive(job.id, respecified(spec.clone())).await??;
    same!(*redriven.spec, spec, "the spec now");
    same!(harness.get(job.id).await?, redriven, "the same job, read back");
    let queues = harness.store().queues().await?;
    let seen: Vec<_> = queues
        .iter()
        .map(|queue| (&*queue.name, queue.count(State::Discarded), queue.count(State::Available)))
        .collect();
    same!(seen, [("discarded", 0, 0), ("elsewhere", 0, 1)], "discarded and available jobs of both queues");
    same!(queues.last().map(|queue| queue.created), Some(harness.now()), "when the new queue was first seen");
    same!(harness.next_wake().await?, spec.expires, "when the redriven job expires");
    same!(
        ids(&harness.claim_with(harness.claim_request(&["elsewhere"], 9)).await?),
        [job.id],
        "what can be claimed from its new queue"
    );
    Ok(())
}

pub(super) async fn redrive_clears_the_time_at_which_the_job_expires(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(50);
    let waiting = harness.enqueue_with(|spec| spec.expires = Some(expires)).await?;
    let failed = harness.claimed_with(|spec| (spec.expires, spec.priority) = (Some(expires), 1)).await?;
    harness.settle(lease_of(&failed)?, stopped(Disposition::DeadLetter)).await??;
    harness.advance_to(expires);
    same!(ids(&harness.promote(9).await?), [waiting.id], "what expires");
    for (job, what) in [(waiting, "a job that expired"), (failed, "a dead letter whose time is over")] {
        harness.advance(1);
        let redriven = harness.redrive(job.id, Redrive::default()).await??;
        same!(*redriven.spec, Spec { expires: None, ..(*job.spec).clone() }, "the spec of {what}");
        same!(redriven.revisions, Vec::new(), "what the redrive replaced");
        harness.restart();
        same!(harness.get(job.id).await?, redriven, "{what}, redriven and read back");
        same!((harness.promote(9).await?, harness.next_wake().await?), (vec![], None), "what time does to it");
        let done = harness.done(&harness.claim_next(job.id).await?).await?;
        same!(done.attempt, 1, "the run of {what}");
    }
    Ok(())
}

pub(super) async fn redrive_stores_the_body_that_it_replaces_and_by_whom(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.job_in(State::Cancelled).await?;
    let mut expected = Vec::new();
    for generation in 0..7_u32 {
        harness.advance(1);
        let before = harness.get(job.id).await?;
        let by: Arc<str> = format!("ada-{generation}").into();
        // One in three says the same again, in another place: nothing is replaced.
        let body = if generation % 3 == 2 {
            before.spec.body.clone()
        } else {
            Arc::from(format!("[{generation}]").as_bytes())
        };
        if body != before.spec.body {
            let (at, body) = (harness.now(), before.spec.body.clone());
            expected.push(Revision { generation, at, by: by.clone(), body });
        }
        let spec = Spec { body, queue: format!("queue-{generation}").into(), ..(*before.spec).clone() };
        let redrive = Redrive { spec: Some(Arc::new(spec)), unique: None, by };
        harness.redrive(job.id, redrive).await??;
        harness.cancel(job.id).await??;
    }
    harness.redrive(job.id, Redrive::default()).await??;
    same!(expected.len(), KEPT_REVISIONS, "how many there are");
    same!(harness.get(job.id).await?.revisions, expected, "what was replaced, oldest first");
    let spec = Spec { body: Arc::from(*b"[]"), ..(*harness.get(job.id).await?.spec).clone() };
    harness.cancel(job.id).await??;
    harness.redrive(job.id, respecified(spec)).await??;
    let kept = harness.get(job.id).await?.revisions;
    same!(kept[..kept.len() - 1], expected[1..], "what is left when one more comes");
    harness.restart();
    same!(harness.get(job.id).await?.revisions, kept, "the same after a restart");
    Ok(())
}

pub(super) async fn redrive_of_what_has_not_ended_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        let job = harness.job_in(state).await?;
        let other = respecified(Spec { priority: 9, ..(*job.spec).clone() });
        let answer = harness.redrive(job.id, other).await?;
        same!(answer, Err(Refusal::WrongState(state)), "a {state} job, redriven");
        same!(harness.get(job.id).await?, job, "the {state} job");
    }
    let unknown = harness.new_id();
    same!(harness.redrive(unknown, Redrive::default()).await?, Err(Refusal::NotFound), "an unknown job");
    Ok(())
}

pub(super) async fn remove_deletes_a_job_that_has_ended(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        let job = harness.job_in(state).await?;
        same!(harness.store().remove(job.id).await?, Ok(job.clone()), "a {state} job, removed");
        same!(harness.store().get(job.id).await?, None, "the same job, looked up");
        same!(harness.store().remove(job.id).await?, Err(Refusal::NotFound), "the same job, removed again");
    }
    let (listed, queues, wake) = harness.store_view().await?;
    same!((listed.total, queues.len(), wake), (Some(0), 3, None), "jobs, queues and next moment of what is left");
    Ok(())
}

pub(super) async fn remove_of_what_has_not_ended_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        let job = harness.job_in(state).await?;
        same!(harness.store().remove(job.id).await?, Err(Refusal::WrongState(state)), "a {state} job, removed");
        same!(harness.get(job.id).await?, job, "the {state} job");
    }
    Ok(())
}

pub(super) async fn remove_frees_the_id(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.job();
    harness.enqueue_new(job.clone()).await?;
    harness.cancel(job.id).await??;
    harness.store().remove(job.id).await??;
    let again = harness.enqueue_new(job).await?;
    same!((again.state, again.leases, again.generation), (State::Available, 0, 0), "a new job with the same id");
    Ok(())
}

pub(super) async fn prune_goes_by_the_time_of_the_end(harness: &mut Harness<'_>) -> CaseResult {
    let mut ended = Vec::new();
    for state in [State::Completed, State::Cancelled, State::Discarded] {
        ended.push(harness.job_in(state).await?.id);
    }
    let expired = harness.enqueue_with(|spec| spec.expires = Some(super::harness::START)).await?.id;
    harness.promote(9).await?;
    let kept = Retention { finished: Span::from_millis(10), dead: Span::from_millis(20) };
    let end = harness.later(10);
    harness.advance_to_just_before(end);
    same!(harness.store().prune(kept, 9, harness.now()).await?, 0, "how many go a microsecond early");
    harness.advance_to(end);
    same!(harness.store().prune(kept, 9, harness.now()).await?, 3, "how many go after 10 ms");
    same!(harness.store().get(expired).await?, None, "an expired job, which is not a dead letter");
    same!(harness.get(ended[2]).await?.dead, true, "the dead letter, which is retained longer");
    harness.advance(10);
    same!(harness.store().prune(kept, 9, harness.now()).await?, 1, "how many go after 20 ms");
    same!(harness.store_view().await?.0.total, Some(0), "how many are left");
    Ok(())
}

pub(super) async fn prune_takes_first_what_ended_first_and_at_most_the_limit(harness: &mut Harness<'_>) -> CaseResult {
    let dead = harness.job_in(State::Discarded).await?.id;
    let jobs = [harness.enqueue_one().await?.id, harness.enqueue_one().await?.id, harness.enqueue_one().await?.id];
    for index in [2, 0, 1] {
        harness.advance(1);
        harness.cancel(jobs[index]).await??;
    }
    let at_once = Retention { finished: Span::ZERO, dead: Span::ZERO };
    for (limit, left) in [(0, vec![2, 1, 0]), (1, vec![1, 0]), (2, vec![])] {
        same!(
            harness.store().prune(at_once, limit, harness.now()).await?,
            limit,
            "how many go with a limit of {limit}"
        );
        let mut expected: Vec<_> = left.into_iter().map(|index: usize| jobs[index]).collect();
        expected.push(dead);
        same!(ids(&harness.list(crate::Filter::default()).await?.jobs), expected, "what is left");
    }
    same!(harness.store().prune(at_once, 9, harness.now()).await?, 1, "how many dead letters go last");
    Ok(())
}

pub(super) async fn prune_leaves_what_has_not_ended(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        harness.job_in(state).await?;
    }
    let redriven = harness.job_in(State::Completed).await?;
    harness.redrive(redriven.id, Redrive::default()).await??;
    let before = harness.store_view().await?;
    harness.advance(1_000_000);
    let at_once = Retention { finished: Span::ZERO, dead: Span::ZERO };
    same!(harness.store().prune(at_once, 9, harness.now()).await?, 0, "how many go");
    same!(harness.store_view().await?, before, "the store");
    Ok(())
}

fn respecified(spec: Spec) -> Redrive {
    Redrive { spec: Some(Arc::new(spec)), ..Redrive::default() }
}
