//! A restart changes nothing.

use super::bench::{Bench, DELAY_MS, LEASE_MS, QUEUE, decision, failed_run, held_by_token, ids, token};
use super::{Flaw, Verified, same};
use crate::{Blob, Enqueued, Job, Missing, NewJob, Redrive, Refusal, Retention, RunOutcome, Spec, Start, State};
use redrive_policy::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Delegation, Disposition, Jitter, Matcher, Parts, Pattern, Policy,
    Rounding, Rule, Span, Unmatched,
};
use std::sync::Arc;

pub(super) async fn restart_of_an_empty_store_is_empty(bench: &mut Bench<'_>) -> Verified {
    let before = bench.everything().await?;
    bench.restart();
    same!(bench.everything().await?, before, "an empty store");
    Ok(())
}

pub(super) async fn restart_keeps_a_job_in_every_state(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL {
        let job = bench.job_in(state).await?;
        bench.restart();
        same!(bench.get(job.id).await?, job, "a {state} job after a restart");
    }
    let before = bench.everything().await?;
    for round in 1..=3 {
        bench.restart();
        same!(bench.everything().await?, before, "the store after restart {round}");
    }
    Ok(())
}

pub(super) async fn restart_keeps_all_that_was_said_about_a_job(bench: &mut Bench<'_>) -> Verified {
    let policy = Arc::new(Policy::new(elaborate()).map_err(|problems| Flaw::new(format!("{problems}")))?);
    let spec = Spec {
        kind: "e-mail.sénd\u{1f4e7}".into(),
        queue: "q \"1\"\n\0".into(),
        priority: i32::MIN,
        body: (0..=255).cycle().take(70_000).collect(),
        policy,
        timeout: Some(Span::saturating_ms(0.1)),
        lease: Some(Span::MAX),
        expires: Some(bench.later(u32::MAX)),
    };
    let new = bench.job_with(|said| *said = spec.clone());
    let job = bench.add(NewJob { start: Start::Pending, ..new }).await?;
    bench.restart();
    let kept = bench.get(job.id).await?;
    same!(*kept.spec, spec, "what was said");
    same!(kept, job, "the whole job");
    Ok(())
}

pub(super) async fn restart_keeps_leases_and_their_numbers(bench: &mut Bench<'_>) -> Verified {
    let (done, lost) = (bench.held().await?, bench.held_with(|spec| spec.timeout = Some(Span::MAX)).await?);
    bench.extend(held_by_token(&done)?, Some(Span::from_millis(LEASE_MS * 2))).await??;
    bench.restart();
    same!(bench.get(lost.id).await?, lost, "a held job after a restart");
    bench.pass(LEASE_MS);
    same!(ids(&bench.reclaim(9).await?), [lost.id], "which lease runs out first");
    same!(bench.done(&done).await?.state, State::Completed, "the end of the other run");
    bench.pass(DELAY_MS);
    bench.promote(9).await?;
    bench.restart();
    let again = bench.take(lost.id).await?;
    same!(token(&again)?.number, 2, "the number of the next lease");
    let late = bench.settle(held_by_token(&lost)?, RunOutcome::Done(None)).await?;
    same!(late, Err(Refusal::StaleLease), "the lease from before the restarts");
    Ok(())
}

pub(super) async fn restart_keeps_the_history_and_the_failures(bench: &mut Bench<'_>) -> Verified {
    let policy = Arc::new(Policy::new(elaborate()).map_err(|problems| Flaw::new(format!("{problems}")))?);
    let job = bench.added_with(|spec| spec.policy = policy).await?;
    let (mut history, mut failures) = (job.history, Vec::new());
    for attempt in 1..=5 {
        let held = bench.take(job.id).await?;
        // What is expected is ruled on a history that no store has ever held.
        let ruled = decision(&Job { history: history.clone(), ..held.clone() }, bench.now());
        history.record(&ruled.verdict);
        failures.push(failed_run(&held, bench.now(), ruled));
        let failed = bench.fail(&held).await?;
        bench.restart();
        same!(bench.get(job.id).await?, failed, "the job after failure {attempt} and a restart");
        same!(failed.history, history, "what the policy remembers after failure {attempt}");
        same!(failed.failures, failures, "the failures after failure {attempt}");
        bench.pass(1_000_000);
        same!(bench.promote(9).await?.len(), 1, "how many jobs are due");
    }
    Ok(())
}

pub(super) async fn restart_keeps_idempotency_keys(bench: &mut Bench<'_>) -> Verified {
    let first = NewJob { idempotency_key: Some("k".into()), ..bench.job() };
    let job = bench.add(first).await?;
    bench.restart();
    let second = NewJob { idempotency_key: Some("k".into()), ..bench.job() };
    same!(bench.enqueue(vec![second]).await?, Ok(vec![Enqueued::Existing(job.clone())]), "the key of a waiting job");
    let done = bench.done(&bench.take(job.id).await?).await?;
    bench.restart();
    let third = NewJob { idempotency_key: Some("k".into()), ..bench.job() };
    same!(bench.enqueue(vec![third]).await?, Ok(vec![Enqueued::Existing(done)]), "the key of a completed job");
    Ok(())
}

pub(super) async fn restart_keeps_taken_names(bench: &mut Bench<'_>) -> Verified {
    let job = bench.job();
    bench.add(job.clone()).await?;
    bench.restart();
    let id = job.id;
    same!(bench.enqueue(vec![job]).await?, Err(crate::DuplicateId { index: 0, id }), "a taken name");
    Ok(())
}

pub(super) async fn restart_keeps_pauses_and_counts(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL {
        bench.job_in(state).await?;
    }
    bench.pass(5);
    bench.store().pause(State::Available.name().into(), true, Missing::Create, bench.now()).await?;
    bench.store().pause("empty".into(), true, Missing::Create, bench.now()).await?;
    let queues = bench.store().queues().await?;
    bench.pass(5);
    bench.restart();
    same!(bench.store().queues().await?, queues, "the queues");
    let request = bench.request(&[State::Available.name()], 9);
    same!(bench.claim_by(request.clone()).await?, Vec::new(), "what a paused queue gives");
    bench.store().pause(State::Available.name().into(), false, Missing::Create, bench.now()).await?;
    bench.restart();
    same!(bench.claim_by(request).await?.len(), 1, "what the opened queue gives");
    Ok(())
}

pub(super) async fn restart_keeps_the_order_of_the_line(bench: &mut Bench<'_>) -> Verified {
    let first = bench.held().await?;
    let mut line = vec![bench.added().await?.id, bench.added().await?.id];
    bench.pass(5);
    bench.release(&first, 0, 9).await??;
    line.push(first.id);
    line.insert(0, bench.added_with(|spec| spec.priority = 1).await?.id);
    bench.restart();
    same!(ids(&bench.claim(9).await?), line, "the line");
    Ok(())
}

pub(super) async fn restart_keeps_what_is_due_and_what_expires(bench: &mut Bench<'_>) -> Verified {
    let due = bench.later(30);
    let new = bench.job();
    let scheduled = bench.add(NewJob { start: Start::Scheduled(due), ..new }).await?;
    let snoozed = bench.held().await?;
    bench.release(&snoozed, 20, 9).await??;
    let expires = bench.later(10);
    let expiring = bench.added_with(|spec| spec.expires = Some(expires)).await?;
    bench.restart();
    same!(bench.next_wake().await?, Some(expires), "the next moment");
    bench.pass(30);
    same!(ids(&bench.promote(9).await?), [expiring.id, snoozed.id, scheduled.id], "what is promoted");
    Ok(())
}

pub(super) async fn restart_keeps_the_result_and_the_lease_of_a_completed_job(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let result = RunOutcome::Done(Some((0..=255).collect()));
    let done = bench.settle(held_by_token(&held)?, result).await??;
    bench.restart();
    same!(bench.get(held.id).await?, done, "a completed job");
    let again = bench.settle(held_by_token(&held)?, RunOutcome::Done(None)).await?;
    same!(again, Ok(done), "success, reported again after a restart");
    Ok(())
}

pub(super) async fn restart_does_not_bring_back_what_was_forgotten(bench: &mut Bench<'_>) -> Verified {
    let removed = NewJob { idempotency_key: Some("k".into()), ..bench.job() };
    let pruned = bench.job();
    for new in [&removed, &pruned] {
        bench.add(new.clone()).await?;
        bench.cancel(new.id).await??;
    }
    bench.store().remove(removed.id).await??;
    let at_once = Retention { finished: Span::ZERO, dead: Span::ZERO };
    bench.store().prune(at_once, 9, bench.now()).await?;
    bench.restart();
    same!(bench.everything().await?.0.total, Some(0), "how many jobs there are");
    let queues: Vec<_> = bench.store().queues().await?.into_iter().map(|queue| queue.name).collect();
    same!(queues, [Arc::from(QUEUE)], "the queues");
    bench.add(removed).await?;
    bench.add(pruned).await?;
    Ok(())
}

pub(super) async fn restart_keeps_generation(bench: &mut Bench<'_>) -> Verified {
    let job = bench.job_in(State::Discarded).await?;
    let body: Blob = Arc::from(*b"[2]");
    let spec = Spec { queue: "elsewhere".into(), priority: 3, body, ..(*job.spec).clone() };
    let redrive = Redrive { spec: Some(Arc::new(spec)), by: "ada@example.org".into() };
    let redriven = bench.redrive(job.id, redrive).await??;
    same!(redriven.revisions.len(), 1, "how many bodies were replaced");
    let before = bench.everything().await?;
    bench.restart();
    same!(bench.get(job.id).await?, redriven, "a revived job");
    same!(bench.everything().await?, before, "the store");
    same!(bench.take(job.id).await?.attempt, 1, "its first run in the new life");
    Ok(())
}

/// A policy with something in every place that a policy has.
fn elaborate() -> Parts {
    let specific = Rule {
        matcher: Matcher {
            include_types: Some(vec![Pattern::dotted("net.*"), Pattern::exact("Zürich")]),
            exclude_types: vec![Pattern::exact("net.dns")],
            codes: Some(vec![Pattern::Any]),
            retryable: Some(true),
        },
        budget: Some(2),
        backoff: Backoff::fixed(Span::saturating_ms(0.25)),
    };
    let general = Rule {
        matcher: Matcher::default(),
        budget: None,
        backoff: Backoff {
            initial: Span::saturating_ms(100.5),
            offset: Span::from_millis(1),
            curve: Curve::Exponential { rate: 1.7 },
            cap: Some(Cap { at: Span::from_millis(900), place: CapPlace::BeforeAndAfter }),
            jitter: Jitter::Scale { low: 0.5, high: 1.5 },
            rounding: Rounding::FloorMs,
        },
    };
    Parts {
        rules: vec![specific, general],
        attempts: AttemptLimit::AtMost(7),
        max_elapsed: Some(Span::MAX),
        on_stop: Disposition::DeadLetter,
        unmatched: Unmatched::PassesThrough,
        delegated: Some(Delegation { job_limit: Some(9), cap: AttemptLimit::AtMost(8) }),
    }
}
