//! Handing jobs in: all or none, names and keys.

use super::bench::{Bench, START, ids};
use super::{Flaw, Verified, ensure, same};
use crate::{DuplicateId, Enqueued, Job, NewJob, Retention, Start, State, Times};
use redrive_policy::{History, Moment, Span};
use std::sync::Arc;

pub(super) async fn enqueue_answers_the_job_as_it_is_kept(bench: &mut Bench<'_>) -> Verified {
    let new = bench.job();
    let expected = Job {
        id: new.id,
        spec: Arc::clone(&new.spec),
        state: State::Available,
        attempt: 0,
        history: History::new(START),
        due: None,
        lease: None,
        leases: 0,
        generation: 0,
        releases: 0,
        dead: false,
        times: Times { created: START, available: Some(START), started: None, finished: None },
        last_delay: None,
        failures: Vec::new(),
        revisions: Vec::new(),
        result: None,
        settled: None,
        completed_by: None,
    };
    same!(bench.add(new).await?, expected, "a new job");
    same!(bench.get(expected.id).await?, expected, "the same job, read back");
    Ok(())
}

pub(super) async fn enqueue_of_nothing_keeps_nothing(bench: &mut Bench<'_>) -> Verified {
    same!(bench.enqueue(Vec::new()).await?, Ok(Vec::new()), "an empty batch");
    same!(bench.everything().await?.1, Vec::new(), "the queues of an empty store");
    Ok(())
}

pub(super) async fn enqueue_scheduled_waits_for_its_time(bench: &mut Bench<'_>) -> Verified {
    let due = Moment::from_micros(START.micros() + 1);
    let new = bench.job();
    let job = bench.add(NewJob { start: Start::Scheduled(due), ..new }).await?;
    same!((job.state, job.due, job.times.available), (State::Scheduled, Some(due), None), "a job of the future");
    same!(bench.claim(9).await?, Vec::new(), "what can be claimed before its time");
    same!(ids(&bench.promote(9).await?), Vec::new(), "what is promoted before its time");
    bench.pass_to(due);
    same!(ids(&bench.promote(9).await?), [job.id], "what is promoted at its time");
    let claimed = bench.take(job.id).await?;
    same!((claimed.attempt, claimed.due, claimed.last_delay), (1, None, None), "its first run");
    Ok(())
}

pub(super) async fn enqueue_scheduled_for_now_or_earlier_is_available_at_once(bench: &mut Bench<'_>) -> Verified {
    for due in [START, Moment::from_micros(START.micros() - 1), Moment::ORIGIN] {
        let new = bench.job();
        let job = bench.add(NewJob { start: Start::Scheduled(due), ..new }).await?;
        same!((job.state, job.due, job.times.available), (State::Available, None, Some(START)), "due at {due:?}");
    }
    same!(bench.claim(9).await?.len(), 3, "what can be claimed at once");
    Ok(())
}

pub(super) async fn enqueue_pending_waits_for_activation(bench: &mut Bench<'_>) -> Verified {
    let new = bench.job();
    let job = bench.add(NewJob { start: Start::Pending, ..new }).await?;
    same!((job.state, job.due, job.times.available), (State::Pending, None, None), "a pending job");
    bench.pass(1_000_000_000);
    same!(bench.promote(9).await?, Vec::new(), "what time does to it");
    same!(bench.claim(9).await?, Vec::new(), "what can be claimed");
    Ok(())
}

pub(super) async fn enqueue_refuses_a_taken_name_and_keeps_nothing_of_the_batch(bench: &mut Bench<'_>) -> Verified {
    let taken = bench.added().await?.id;
    let before = bench.everything().await?;
    let (mut first, second, third) = (bench.job_with(|spec| spec.queue = "other".into()), bench.job(), bench.job());
    first.idempotency_key = Some("k".into());
    let refused = bench.enqueue(vec![first.clone(), NewJob { id: taken, ..second }, third]).await?;
    same!(refused, Err(DuplicateId { index: 1, id: taken }), "a batch with a taken name");
    same!(bench.everything().await?, before, "the store after the refusal");
    let again = bench.enqueue(vec![first]).await??;
    ensure!(matches!(&again[..], [Enqueued::Created(_)]), "the refused batch left its key behind: {again:?}");
    Ok(())
}

pub(super) async fn enqueue_refuses_a_name_twice_in_one_batch(bench: &mut Bench<'_>) -> Verified {
    let (first, second) = (bench.job(), bench.job());
    let id = first.id;
    let refused = bench.enqueue(vec![first, NewJob { id, ..second }]).await?;
    same!(refused, Err(DuplicateId { index: 1, id }), "a batch with one name twice");
    same!(bench.everything().await?.0.total, Some(0), "how many jobs are kept");
    Ok(())
}

pub(super) async fn enqueue_keeps_a_batch_in_the_order_given(bench: &mut Bench<'_>) -> Verified {
    let jobs: Vec<NewJob> = (0..5).map(|_| bench.job()).rev().collect();
    let names: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let created: Vec<Job> = bench.enqueue(jobs).await??.into_iter().map(job_of).collect();
    same!(ids(&created), names, "the answers to a batch");
    Ok(())
}

pub(super) async fn enqueue_hands_back_the_job_of_a_known_key_unchanged(bench: &mut Bench<'_>) -> Verified {
    let first = keyed(bench, "k");
    bench.add(first.clone()).await?;
    let held = bench.take(first.id).await?;
    bench.pass(5);
    let second = NewJob { start: Start::Pending, ..keyed(bench, "k") };
    same!(bench.enqueue(vec![second.clone()]).await?, Ok(vec![Enqueued::Existing(held.clone())]), "a known key");
    same!(bench.get(first.id).await?, held, "the job of the key");
    same!(bench.store().get(second.id).await?, None, "the second job");
    Ok(())
}

pub(super) async fn enqueue_knows_a_key_for_as_long_as_its_job_is_kept(bench: &mut Bench<'_>) -> Verified {
    let job = keyed(bench, "k");
    bench.add(job.clone()).await?;
    let done = bench.done(&bench.take(job.id).await?).await?;
    let again = keyed(bench, "k");
    same!(bench.enqueue(vec![again]).await?, Ok(vec![Enqueued::Existing(done)]), "the key of a completed job");
    bench.redrive(job.id, crate::Redrive::default()).await??;
    let again = keyed(bench, "k");
    let redriven = bench.get(job.id).await?;
    same!(bench.enqueue(vec![again]).await?, Ok(vec![Enqueued::Existing(redriven)]), "the key of a revived job");
    Ok(())
}

pub(super) async fn enqueue_knows_a_key_within_one_batch(bench: &mut Bench<'_>) -> Verified {
    let (first, other, second) = (keyed(bench, "k"), keyed(bench, "l"), keyed(bench, "k"));
    let answers = bench.enqueue(vec![first.clone(), other, second]).await??;
    let job = bench.get(first.id).await?;
    ensure!(
        matches!(
            &answers[..],
            [Enqueued::Created(a), Enqueued::Created(_), Enqueued::Existing(b)] if *a == job && *b == job
        ),
        "a batch with one key twice gives {answers:?}"
    );
    same!(bench.everything().await?.0.total, Some(2), "how many jobs are kept");
    Ok(())
}

pub(super) async fn enqueue_asks_for_the_key_before_the_name(bench: &mut Bench<'_>) -> Verified {
    let job = keyed(bench, "k");
    let kept = bench.add(job.clone()).await?;
    let twice = bench.enqueue(vec![job.clone(), job]).await?;
    same!(twice, Ok(vec![Enqueued::Existing(kept.clone()), Enqueued::Existing(kept)]), "a request sent again");
    Ok(())
}

pub(super) async fn enqueue_may_use_a_key_again_once_its_job_is_forgotten(bench: &mut Bench<'_>) -> Verified {
    let (removed, pruned) = (keyed(bench, "removed"), keyed(bench, "pruned"));
    for job in [removed.clone(), pruned.clone()] {
        bench.add(job.clone()).await?;
        bench.cancel(job.id).await??;
    }
    bench.store().remove(removed.id).await??;
    let at_once = Retention { finished: Span::ZERO, dead: Span::ZERO };
    same!(bench.store().prune(at_once, 9, bench.now()).await?, 1, "how many jobs are pruned");
    // The names are taken by others meanwhile, to whom the keys do not lead.
    let others = [removed, pruned].map(|job| NewJob { idempotency_key: None, ..job });
    bench.enqueue(Vec::from(others)).await??;
    for key in ["removed", "pruned"] {
        let again = keyed(bench, key);
        bench.add(again).await.map_err(|flaw| Flaw::new(format!("the key of a {key} job: {flaw}")))?;
    }
    Ok(())
}

pub(super) async fn enqueue_accepts_what_has_expired_and_never_hands_it_out(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added_with(|spec| spec.expires = Some(START)).await?;
    same!(job.state, State::Available, "a job that has expired already");
    same!(bench.claim(9).await?, Vec::new(), "what can be claimed");
    same!(ids(&bench.promote(9).await?), [job.id], "what the next promotion moves");
    same!(bench.get(job.id).await?.state, State::Discarded, "where it moves it");
    Ok(())
}

fn keyed(bench: &mut Bench<'_>, key: &str) -> NewJob {
    NewJob { idempotency_key: Some(key.into()), ..bench.job() }
}

fn job_of(enqueued: Enqueued) -> Job {
    match enqueued {
        Enqueued::Created(job) | Enqueued::Existing(job) => job,
    }
}
