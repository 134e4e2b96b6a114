//! Handing jobs out: the order, and what a lease holds.

use super::bench::{Bench, LEASE_MS, QUEUE, SEED, START, WORKER, ids, token};
use super::{Verified, ensure, same};
use crate::{Claim, Job, Lease, LeaseToken, Missing, NewJob, Start, State};
use redrive_policy::Span;

pub(super) async fn claim_takes_queues_in_the_order_given(bench: &mut Bench<'_>) -> Verified {
    let mut added = Vec::new();
    for queue in ["a", "b", "c"] {
        // The urgent job of a later queue does not pass the others of an earlier one.
        let priority = if queue == "a" { 9 } else { 0 };
        let change = |spec: &mut crate::Spec| (spec.queue, spec.priority) = (queue.into(), priority);
        added.push(bench.added_with(change).await?.id);
    }
    let claimed = bench.claim_by(bench.request(&["c", "a", "b"], 2)).await?;
    same!(ids(&claimed), [added[2], added[0]], "two jobs of the queues c, a, b");
    let rest = bench.claim_by(bench.request(&["c", "a", "b"], 2)).await?;
    same!(ids(&rest), [added[1]], "the rest of them");
    Ok(())
}

pub(super) async fn claim_takes_higher_priorities_first(bench: &mut Bench<'_>) -> Verified {
    let mut added = Vec::new();
    for priority in [0, -1, i32::MAX, 7, i32::MIN] {
        added.push((priority, bench.added_with(|spec| spec.priority = priority).await?.id));
    }
    added.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
    let expected: Vec<_> = added.into_iter().map(|(_, id)| id).collect();
    same!(ids(&bench.claim(9).await?), expected, "jobs of five priorities");
    Ok(())
}

pub(super) async fn claim_takes_first_what_became_available_first(bench: &mut Bench<'_>) -> Verified {
    let scheduled = bench.job();
    let due = bench.later(10);
    let oldest = bench.add(NewJob { start: Start::Scheduled(due), ..scheduled }).await?;
    bench.pass(5);
    let second = bench.added().await?;
    bench.pass(20);
    let third = bench.added().await?;
    bench.pass(1);
    bench.promote(9).await?;
    same!(ids(&bench.claim(9).await?), [second.id, third.id, oldest.id], "the line, by the time they joined it");
    Ok(())
}

pub(super) async fn claim_takes_equal_times_by_name(bench: &mut Bench<'_>) -> Verified {
    let mut jobs: Vec<NewJob> = (0..6).map(|_| bench.job()).collect();
    let names: Vec<_> = jobs.iter().map(|job| job.id).collect();
    jobs.swap(0, 4);
    jobs.reverse();
    bench.enqueue(jobs).await??;
    same!(ids(&bench.claim(4).await?), names[..4], "the first four of one batch");
    same!(ids(&bench.claim(4).await?), names[4..], "the others");
    Ok(())
}

pub(super) async fn claim_hands_out_at_most_what_is_asked_and_each_job_once(bench: &mut Bench<'_>) -> Verified {
    let mut added = Vec::new();
    for _ in 0..5 {
        added.push(bench.added().await?.id);
    }
    same!(bench.claim(0).await?, Vec::new(), "a claim of none");
    same!(ids(&bench.claim(2).await?), added[..2], "a claim of two");
    let twice = bench.claim_by(bench.request(&[QUEUE, QUEUE], 9)).await?;
    same!(ids(&twice), added[2..], "a claim that names the queue twice");
    same!(bench.claim(9).await?, Vec::new(), "a claim on an empty queue");
    Ok(())
}

pub(super) async fn claim_ends_before_it_has_too_many_bytes(bench: &mut Bench<'_>) -> Verified {
    let mut names = Vec::new();
    for (queue, length) in [("a", 10), ("a", 10_000), ("a", 60_000), ("b", 10), ("b", 10_000), ("b", 30_000)] {
        let body = vec![b'x'; length];
        names.push(bench.added_with(|spec| (spec.queue, spec.body) = (queue.into(), body.into())).await?.id);
    }
    let request = || Claim { bytes: 30_000, ..bench.request(&["a", "b"], 9) };
    same!(ids(&bench.claim_by(request()).await?), names[..2], "what fits, and nothing in place of what does not");
    same!(bench.get(names[2]).await?.state, State::Available, "the job that did not fit");
    same!(ids(&bench.claim_by(request()).await?), names[2..3], "a job that is too large for any claim, alone");
    same!(ids(&bench.claim_by(request()).await?), names[3..5], "what fits of the next queue");
    let enough = Claim { bytes: 32_000, ..request() };
    same!(ids(&bench.claim_by(enough).await?), names[5..], "what is left");
    let none = Claim { bytes: 0, ..request() };
    let job = bench.added_with(|spec| spec.queue = "b".into()).await?;
    same!(ids(&bench.claim_by(none).await?), [job.id], "one job, where no byte is asked for");
    Ok(())
}

pub(super) async fn claim_of_an_unknown_queue_gives_nothing_and_makes_none(bench: &mut Bench<'_>) -> Verified {
    same!(bench.claim_by(bench.request(&["nowhere"], 9)).await?, Vec::new(), "a claim on an unknown queue");
    same!(bench.store().queues().await?, Vec::new(), "the queues after it");
    Ok(())
}

pub(super) async fn claim_passes_over_paused_queues(bench: &mut Bench<'_>) -> Verified {
    let here = bench.added().await?;
    let there = bench.added_with(|spec| spec.queue = "there".into()).await?;
    bench.store().pause(QUEUE.into(), true, Missing::Create, bench.now()).await?;
    same!(ids(&bench.claim_by(bench.request(&[QUEUE, "there"], 9)).await?), [there.id], "with the first one paused");
    bench.store().pause(QUEUE.into(), false, Missing::Create, bench.now()).await?;
    same!(ids(&bench.claim(9).await?), [here.id], "with the queue open again");
    Ok(())
}

pub(super) async fn claim_passes_over_what_has_expired(bench: &mut Bench<'_>) -> Verified {
    let expires = bench.later(10);
    let lost = bench.added_with(|spec| (spec.expires, spec.priority) = (Some(expires), 5)).await?;
    let good = bench.added().await?;
    bench.pass_to(expires);
    same!(ids(&bench.claim(9).await?), [good.id], "what can be claimed when one job expires");
    same!(bench.get(lost.id).await?.state, State::Available, "the other, until it is promoted out of the way");
    Ok(())
}

pub(super) async fn claim_up_to_the_last_moment_before_a_job_expires(bench: &mut Bench<'_>) -> Verified {
    let expires = bench.later(10);
    let job = bench.added_with(|spec| spec.expires = Some(expires)).await?;
    bench.pass_to_just_before(expires);
    same!(ids(&bench.claim(9).await?), [job.id], "what can be claimed a microsecond before");
    bench.pass(1_000);
    same!(bench.promote(9).await?, Vec::new(), "what expiry does to a run that has started");
    Ok(())
}

pub(super) async fn claim_counts_the_run_and_writes_the_lease(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added().await?;
    bench.pass(3);
    let claimed = bench.take(job.id).await?;
    let lease = Lease {
        token: LeaseToken::derive(SEED, job.id, 1),
        worker: WORKER.into(),
        alive: bench.now(),
        until: bench.later(LEASE_MS),
        span: Span::from_millis(LEASE_MS),
        deadline: None,
    };
    let mut expected = Job { state: State::Active, attempt: 1, leases: 1, lease: Some(lease), ..job };
    expected.times.started = Some(bench.now());
    same!(claimed, expected, "a job in the hands of a worker");
    same!(bench.get(claimed.id).await?, expected, "the same job, read back");
    Ok(())
}

pub(super) async fn claim_numbers_the_leases_of_a_job(bench: &mut Bench<'_>) -> Verified {
    let first = bench.held().await?;
    bench.release(&first, 0, 9).await??;
    let second = bench.take(first.id).await?;
    let tokens = [token(&first)?, token(&second)?];
    let expected = [1, 2].map(|number| LeaseToken::derive(SEED, first.id, number));
    same!(tokens, expected, "the tokens of two leases of one job, claimed with the same bits");
    ensure!(tokens[0].nonce != tokens[1].nonce, "both leases have the nonce of {}", tokens[0]);
    Ok(())
}

pub(super) async fn claim_goes_by_the_lease_and_timeout_of_the_job_before_its_own(bench: &mut Bench<'_>) -> Verified {
    let silent = bench.added().await?;
    let (lease, timeout) = (Span::saturating_ms(0.5), Span::from_millis(700));
    let said = bench.added_with(|spec| (spec.lease, spec.timeout) = (Some(lease), Some(timeout))).await?;
    let request = Claim { timeout: Some(Span::from_millis(90)), ..bench.request(&[QUEUE], 9) };
    let claimed = bench.claim_by(request).await?;
    same!(ids(&claimed), [silent.id, said.id], "the claimed jobs");
    let spans: Vec<_> = claimed.iter().flat_map(|job| &job.lease).map(|l| (l.span, l.until, l.deadline)).collect();
    let expected = [
        (Span::from_millis(LEASE_MS), START.after(Span::from_millis(LEASE_MS)), Some(bench.later(90))),
        (lease, START.after(lease), Some(bench.later(700))),
    ];
    same!(spans, expected, "span, end and deadline of the leases");
    Ok(())
}
