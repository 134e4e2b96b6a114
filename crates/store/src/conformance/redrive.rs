//! What people do to jobs: call them off, activate, revive and forget them.

use super::bench::{Bench, DELAY_MS, held_by_token, ids, stopped, token};
use super::{Verified, same};
use crate::{Job, KEPT_REVISIONS, Redrive, Refusal, Retention, Revision, Spec, State};
use redrive_policy::{Disposition, History, Span};
use std::sync::Arc;

pub(super) async fn cancel_ends_whatever_has_not_ended(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        let job = bench.job_in(state).await?;
        bench.pass(3);
        let mut expected = Job { state: State::Cancelled, due: None, lease: None, ..job };
        expected.times.finished = Some(bench.now());
        let answer = bench.store().cancel(expected.id, bench.now()).await??;
        same!((&answer.job, answer.from), (&expected, Some(state)), "a {state} job, called off");
        same!(bench.get(expected.id).await?, expected, "the same job, read back");
    }
    bench.pass(1_000_000);
    same!((bench.reclaim(9).await?, bench.promote(9).await?), (vec![], vec![]), "what time does to them");
    Ok(())
}

pub(super) async fn cancel_of_what_has_ended_is_refused(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        let job = bench.job_in(state).await?;
        bench.pass(3);
        let answer = bench.cancel(job.id).await?;
        same!(answer, Err(Refusal::WrongState(state)), "a {state} job, called off");
        same!(bench.get(job.id).await?, job, "the {state} job");
    }
    let nobody = bench.name();
    same!(bench.cancel(nobody).await?, Err(Refusal::NotFound), "an unknown job");
    Ok(())
}

pub(super) async fn activate_makes_a_pending_job_available(bench: &mut Bench<'_>) -> Verified {
    let job = bench.job_in(State::Pending).await?;
    bench.pass(3);
    let mut expected = Job { state: State::Available, ..job };
    expected.times.available = Some(bench.now());
    same!(bench.activate(expected.id).await?, Ok(expected.clone()), "an activated job");
    same!(bench.take(expected.id).await?.attempt, 1, "its run");
    Ok(())
}

pub(super) async fn activate_of_anything_else_is_refused(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL.into_iter().filter(|state| *state != State::Pending) {
        let job = bench.job_in(state).await?;
        let answer = bench.activate(job.id).await?;
        same!(answer, Err(Refusal::WrongState(state)), "a {state} job, activated");
        same!(bench.get(job.id).await?, job, "the {state} job");
    }
    let nobody = bench.name();
    same!(bench.activate(nobody).await?, Err(Refusal::NotFound), "an unknown job");
    Ok(())
}

pub(super) async fn redrive_begins_another_generation_wherever_the_last_one_ended(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        let job = bench.job_in(state).await?;
        bench.pass(3);
        let mut expected = Job {
            state: State::Available,
            attempt: 0,
            history: History::new(bench.now()),
            generation: 1,
            dead: false,
            last_delay: None,
            result: None,
            settled: None,
            completed_by: None,
            ..job
        };
        (expected.times.available, expected.times.finished) = (Some(bench.now()), None);
        let redriven = bench.redrive(expected.id, Redrive::default()).await?;
        same!(redriven, Ok(expected.clone()), "a {state} job, revived");
        same!(bench.get(expected.id).await?, expected, "the same job, read back");
        let held = bench.take(expected.id).await?;
        same!((held.attempt, token(&held)?.number), (1, expected.leases + 1), "run and lease of the new life");
    }
    Ok(())
}

pub(super) async fn redrive_keeps_the_failures_and_counts_generations(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added().await?;
    for _generation in 0..3 {
        for _run in 0..3 {
            bench.fail(&bench.take(job.id).await?).await?;
            bench.pass(DELAY_MS);
            bench.promote(9).await?;
        }
        bench.redrive(job.id, Redrive::default()).await??;
    }
    let job = bench.get(job.id).await?;
    let runs: Vec<_> = job.failures.iter().map(|run| (run.generation, run.attempt)).collect();
    let expected = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)];
    same!(runs, expected, "life and run of every failure");
    same!((job.generation, job.leases, job.attempt, job.history.failures()), (3, 9, 0, 0), "the counts");
    same!(job.last_delay, None, "the delay of the last retry of a life that has had none");
    Ok(())
}

pub(super) async fn redrive_counts_releases_anew(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added().await?;
    bench.release(&bench.take(job.id).await?, 0, 1).await??;
    bench.cancel(job.id).await??;
    let redriven = bench.redrive(job.id, Redrive::default()).await??;
    same!(redriven.releases, 0, "how often the revived job was given back");
    Ok(())
}

pub(super) async fn redrive_may_replace_what_was_said_about_the_job(bench: &mut Bench<'_>) -> Verified {
    let job = bench.job_in(State::Discarded).await?;
    let spec = Spec {
        queue: "elsewhere".into(),
        priority: 4,
        body: Arc::from(*b"[2]"),
        expires: Some(bench.later(9)),
        ..(*job.spec).clone()
    };
    bench.pass(1);
    let redriven = bench.redrive(job.id, respecified(spec.clone())).await??;
    same!(*redriven.spec, spec, "what is said now");
    same!(bench.get(job.id).await?, redriven, "the same job, read back");
    let queues = bench.store().queues().await?;
    let seen: Vec<_> = queues
        .iter()
        .map(|queue| (&*queue.name, queue.count(State::Discarded), queue.count(State::Available)))
        .collect();
    same!(seen, [("discarded", 0, 0), ("elsewhere", 0, 1)], "discarded and available jobs of both queues");
    same!(queues.last().map(|queue| queue.created), Some(bench.now()), "when the new queue was first seen");
    same!(bench.next_wake().await?, spec.expires, "when the revived job expires");
    same!(ids(&bench.claim_by(bench.request(&["elsewhere"], 9)).await?), [job.id], "what its new queue hands out");
    Ok(())
}

pub(super) async fn redrive_clears_the_time_at_which_the_job_expires(bench: &mut Bench<'_>) -> Verified {
    let expires = bench.later(50);
    let waiting = bench.added_with(|spec| spec.expires = Some(expires)).await?;
    let failed = bench.held_with(|spec| (spec.expires, spec.priority) = (Some(expires), 1)).await?;
    bench.settle(held_by_token(&failed)?, stopped(Disposition::DeadLetter)).await??;
    bench.pass_to(expires);
    same!(ids(&bench.promote(9).await?), [waiting.id], "what expires");
    for (job, what) in [(waiting, "a job that expired"), (failed, "a dead letter whose time is over")] {
        bench.pass(1);
        let redriven = bench.redrive(job.id, Redrive::default()).await??;
        same!(*redriven.spec, Spec { expires: None, ..(*job.spec).clone() }, "what is said about {what}");
        same!(redriven.revisions, Vec::new(), "what the revival replaced");
        bench.restart();
        same!(bench.get(job.id).await?, redriven, "{what}, revived and read back");
        same!((bench.promote(9).await?, bench.next_wake().await?), (vec![], None), "what time does to it");
        let done = bench.done(&bench.take(job.id).await?).await?;
        same!(done.attempt, 1, "the run of {what}");
    }
    Ok(())
}

pub(super) async fn redrive_keeps_the_body_that_it_replaces_and_who_did(bench: &mut Bench<'_>) -> Verified {
    let job = bench.job_in(State::Cancelled).await?;
    let mut expected = Vec::new();
    for generation in 0..7_u32 {
        bench.pass(1);
        let before = bench.get(job.id).await?;
        let by: Arc<str> = format!("ada-{generation}").into();
        // One in three says the same again, in another place: nothing is replaced.
        let body = if generation % 3 == 2 {
            before.spec.body.clone()
        } else {
            Arc::from(format!("[{generation}]").as_bytes())
        };
        if body != before.spec.body {
            let (at, body) = (bench.now(), before.spec.body.clone());
            expected.push(Revision { generation, at, by: by.clone(), body });
        }
        let spec = Spec { body, queue: format!("queue-{generation}").into(), ..(*before.spec).clone() };
        let redrive = Redrive { spec: Some(Arc::new(spec)), by };
        bench.redrive(job.id, redrive).await??;
        bench.cancel(job.id).await??;
    }
    bench.redrive(job.id, Redrive::default()).await??;
    same!(expected.len(), KEPT_REVISIONS, "how many there are");
    same!(bench.get(job.id).await?.revisions, expected, "what was replaced, oldest first");
    let spec = Spec { body: Arc::from(*b"[]"), ..(*bench.get(job.id).await?.spec).clone() };
    bench.cancel(job.id).await??;
    bench.redrive(job.id, respecified(spec)).await??;
    let kept = bench.get(job.id).await?.revisions;
    same!(kept[..kept.len() - 1], expected[1..], "what is left when one more comes");
    bench.restart();
    same!(bench.get(job.id).await?.revisions, kept, "the same after a restart");
    Ok(())
}

pub(super) async fn redrive_of_what_has_not_ended_is_refused(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        let job = bench.job_in(state).await?;
        let other = respecified(Spec { priority: 9, ..(*job.spec).clone() });
        let answer = bench.redrive(job.id, other).await?;
        same!(answer, Err(Refusal::WrongState(state)), "a {state} job, revived");
        same!(bench.get(job.id).await?, job, "the {state} job");
    }
    let nobody = bench.name();
    same!(bench.redrive(nobody, Redrive::default()).await?, Err(Refusal::NotFound), "an unknown job");
    Ok(())
}

pub(super) async fn remove_forgets_what_has_ended(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        let job = bench.job_in(state).await?;
        same!(bench.store().remove(job.id).await?, Ok(job.clone()), "a {state} job, removed");
        same!(bench.store().get(job.id).await?, None, "the same job, looked up");
        same!(bench.store().remove(job.id).await?, Err(Refusal::NotFound), "the same job, removed again");
    }
    let (listed, queues, wake) = bench.everything().await?;
    same!((listed.total, queues.len(), wake), (Some(0), 3, None), "jobs, queues and next moment of what is left");
    Ok(())
}

pub(super) async fn remove_of_what_has_not_ended_is_refused(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        let job = bench.job_in(state).await?;
        same!(bench.store().remove(job.id).await?, Err(Refusal::WrongState(state)), "a {state} job, removed");
        same!(bench.get(job.id).await?, job, "the {state} job");
    }
    Ok(())
}

pub(super) async fn remove_frees_the_name(bench: &mut Bench<'_>) -> Verified {
    let job = bench.job();
    bench.add(job.clone()).await?;
    bench.cancel(job.id).await??;
    bench.store().remove(job.id).await??;
    let again = bench.add(job).await?;
    same!((again.state, again.leases, again.generation), (State::Available, 0, 0), "a new job of the same name");
    Ok(())
}

pub(super) async fn prune_goes_by_the_time_of_the_end(bench: &mut Bench<'_>) -> Verified {
    let mut ended = Vec::new();
    for state in [State::Completed, State::Cancelled, State::Discarded] {
        ended.push(bench.job_in(state).await?.id);
    }
    let expired = bench.added_with(|spec| spec.expires = Some(super::bench::START)).await?.id;
    bench.promote(9).await?;
    let kept = Retention { finished: Span::from_millis(10), dead: Span::from_millis(20) };
    let end = bench.later(10);
    bench.pass_to_just_before(end);
    same!(bench.store().prune(kept, 9, bench.now()).await?, 0, "how many go a microsecond early");
    bench.pass_to(end);
    same!(bench.store().prune(kept, 9, bench.now()).await?, 3, "how many go after 10 ms");
    same!(bench.store().get(expired).await?, None, "an expired job, which is no dead letter");
    same!(bench.get(ended[2]).await?.dead, true, "the dead letter, which is kept longer");
    bench.pass(10);
    same!(bench.store().prune(kept, 9, bench.now()).await?, 1, "how many go after 20 ms");
    same!(bench.everything().await?.0.total, Some(0), "how many are left");
    Ok(())
}

pub(super) async fn prune_takes_first_what_ended_first_and_at_most_the_limit(bench: &mut Bench<'_>) -> Verified {
    let dead = bench.job_in(State::Discarded).await?.id;
    let jobs = [bench.added().await?.id, bench.added().await?.id, bench.added().await?.id];
    for index in [2, 0, 1] {
        bench.pass(1);
        bench.cancel(jobs[index]).await??;
    }
    let at_once = Retention { finished: Span::ZERO, dead: Span::ZERO };
    for (limit, left) in [(0, vec![2, 1, 0]), (1, vec![1, 0]), (2, vec![])] {
        same!(bench.store().prune(at_once, limit, bench.now()).await?, limit, "how many go with a limit of {limit}");
        let mut expected: Vec<_> = left.into_iter().map(|index: usize| jobs[index]).collect();
        expected.push(dead);
        same!(ids(&bench.list(crate::Filter::default()).await?.jobs), expected, "what is left");
    }
    same!(bench.store().prune(at_once, 9, bench.now()).await?, 1, "how many dead letters go last");
    Ok(())
}

pub(super) async fn prune_leaves_what_has_not_ended(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL.into_iter().filter(|state| !state.is_terminal()) {
        bench.job_in(state).await?;
    }
    let redriven = bench.job_in(State::Completed).await?;
    bench.redrive(redriven.id, Redrive::default()).await??;
    let before = bench.everything().await?;
    bench.pass(1_000_000);
    let at_once = Retention { finished: Span::ZERO, dead: Span::ZERO };
    same!(bench.store().prune(at_once, 9, bench.now()).await?, 0, "how many go");
    same!(bench.everything().await?, before, "the store");
    Ok(())
}

fn respecified(spec: Spec) -> Redrive {
    Redrive { spec: Some(Arc::new(spec)), ..Redrive::default() }
}
