//! Runs that the store ends.

use super::bench::{Bench, LEASE_MS, QUEUE, decision, held_by_token, ids, jobs};
use super::{Flaw, Verified, same};
use crate::{Claim, Job, JobId, Overdue, Refusal, RunOutcome, Spec, Standstill, State};
use redrive_policy::{Moment, Span};
use std::sync::Mutex;

pub(super) async fn reclaim_ends_a_run_at_the_end_of_its_lease_and_not_before(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let until = bench.later(LEASE_MS);
    bench.pass_to_just_before(until);
    same!(bench.reclaim(9).await?, Vec::new(), "what is reclaimed a microsecond early");
    same!(bench.get(held.id).await?, held, "the job until then");
    bench.pass_to(until);
    let ended = bench.reclaim(9).await?;
    same!(ids(&ended), [held.id], "what is reclaimed at the end of the lease");
    same!(ended, [bench.get(held.id).await?], "the answer, and the job read back");
    same!(bench.reclaim(9).await?, Vec::new(), "what is reclaimed a second time");
    let late = bench.settle(held_by_token(&held)?, RunOutcome::Done(None)).await?;
    same!(late, Err(Refusal::StaleLease), "success, reported too late");
    Ok(())
}

pub(super) async fn reclaim_says_why_a_run_is_overdue(bench: &mut Bench<'_>) -> Verified {
    let (both, stalled, timed) = (bench.added().await?, bench.added().await?, bench.added().await?);
    let request = |timeout_ms: Option<u32>, lease_ms| {
        let lease = Span::from_millis(lease_ms);
        Claim { timeout: timeout_ms.map(Span::from_millis), lease, ..bench.request(&[QUEUE], 1) }
    };
    // The lease of the first runs out before anything else, and yet its deadline is what counts.
    for request in [request(Some(50), 10), request(Some(5_000), 30), request(Some(40), 5_000)] {
        bench.claim_by(request).await?;
    }
    bench.pass(60);
    let seen = Mutex::new(Vec::new());
    let decide = |job: &Job, why: Overdue| {
        if let Ok(mut seen) = seen.lock() {
            seen.push((job.id, job.state, why));
        }
        decision(job, bench.now())
    };
    let ended = bench.store().reclaim(&decide, 9, bench.now()).await?;
    same!(ids(&jobs(ended)), [both.id, stalled.id, timed.id], "the runs, in the order in which they became overdue");
    let mut seen = seen.lock().map(|seen| seen.clone()).unwrap_or_default();
    seen.dedup();
    let expected = [(both.id, Overdue::TimedOut), (stalled.id, Overdue::Stalled), (timed.id, Overdue::TimedOut)];
    same!(seen, expected.map(|(id, why)| (id, State::Active, why)), "what the judge was asked");
    Ok(())
}

pub(super) async fn reclaim_counts_a_run_as_stalled_before_its_deadline(bench: &mut Bench<'_>) -> Verified {
    bench.held_with(|spec| spec.timeout = Some(Span::from_millis(LEASE_MS + 1))).await?;
    bench.pass(LEASE_MS);
    let seen = Mutex::new(None);
    let decide = |job: &Job, why: Overdue| {
        if let Ok(mut seen) = seen.lock() {
            *seen = Some(why);
        }
        decision(job, bench.now())
    };
    bench.store().reclaim(&decide, 9, bench.now()).await?;
    same!(seen.lock().map(|why| *why).unwrap_or_default(), Some(Overdue::Stalled), "why the run was ended");
    Ok(())
}

pub(super) async fn reclaim_takes_the_longest_overdue_first_and_at_most_the_limit(bench: &mut Bench<'_>) -> Verified {
    let mut held = Vec::new();
    for lease_ms in [30, 10, 20, 10] {
        held.push(bench.held_with(|spec| spec.lease = Some(Span::from_millis(lease_ms))).await?.id);
    }
    bench.pass(30);
    same!(bench.reclaim(0).await?, Vec::new(), "a limit of none");
    same!(ids(&bench.reclaim(1).await?), [held[1]], "the first, by name among equals");
    same!(ids(&bench.reclaim(2).await?), [held[3], held[2]], "the next two");
    same!(ids(&bench.reclaim(9).await?), [held[0]], "the rest");
    Ok(())
}

pub(super) async fn reclaim_goes_by_the_deadline_whatever_the_heartbeats(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held_with(|spec| spec.timeout = Some(Span::from_millis(100))).await?;
    for _ in 0..10 {
        same!(bench.reclaim(9).await?, Vec::new(), "what is reclaimed before the deadline");
        bench.pass(10);
        bench.extend(held_by_token(&held)?, None).await??;
    }
    same!(ids(&bench.reclaim(9).await?), [held.id], "what is reclaimed at the deadline");
    Ok(())
}

/// The server stands still for so long, until now.
async fn stand_still(bench: &mut Bench<'_>, ms: u32) -> Result<Moment, Flaw> {
    bench.pass(ms);
    let standstill = Standstill { ended: bench.now(), length: Span::from_millis(ms) };
    bench.store().stood_still(standstill).await?;
    Ok(standstill.ended)
}

/// Ends the case unless these runs are reclaimed at a moment, and not before.
async fn reclaimed_at(bench: &mut Bench<'_>, moment: Moment, runs: &[JobId]) -> Verified {
    bench.pass_to_just_before(moment);
    same!(bench.reclaim(9).await?, Vec::new(), "what is reclaimed a microsecond early");
    bench.pass_to(moment);
    same!(ids(&bench.reclaim(9).await?), runs, "what is reclaimed then");
    Ok(())
}

fn lease(ms: u32) -> impl FnOnce(&mut Spec) {
    move |spec| spec.lease = Some(Span::from_millis(ms))
}

pub(super) async fn reclaim_after_a_standstill_leaves_every_run_one_span_of_its_lease(
    bench: &mut Bench<'_>,
) -> Verified {
    let (short, long) = (bench.held_with(lease(20)).await?, bench.held_with(lease(40)).await?);
    let timed = bench.held_with(|spec| spec.timeout = Some(Span::from_millis(30))).await?;
    let awake = stand_still(bench, 60_000).await?;
    same!(bench.reclaim(9).await?, Vec::new(), "what is reclaimed at once");
    same!(bench.get(short.id).await?, short, "a run that is spared");
    for (run, span_ms) in [(short, 20), (long, 40), (timed, LEASE_MS)] {
        reclaimed_at(bench, awake.after(Span::from_millis(span_ms)), &[run.id]).await?;
    }
    Ok(())
}

pub(super) async fn reclaim_after_a_standstill_goes_by_the_times_of_runs_that_were_heard_since(
    bench: &mut Bench<'_>,
) -> Verified {
    let timed = bench.held_with(|spec| spec.timeout = Some(Span::from_millis(30))).await?;
    let awake = stand_still(bench, 20).await?;
    let new = bench.held_with(lease(5)).await?;
    reclaimed_at(bench, awake.after(Span::from_millis(5)), &[new.id]).await?;
    bench.extend(held_by_token(&timed)?, None).await??;
    reclaimed_at(bench, awake.after(Span::from_millis(10)), &[timed.id]).await?;
    Ok(())
}

pub(super) async fn reclaim_after_a_short_standstill_grants_no_more_than_it_took(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    bench.pass(LEASE_MS - 10);
    let awake = stand_still(bench, 50).await?;
    reclaimed_at(bench, awake.after(Span::from_millis(50)), &[held.id]).await?;
    Ok(())
}

pub(super) async fn reclaim_after_a_standstill_begins_when_next_wake_says(bench: &mut Bench<'_>) -> Verified {
    let (short, long) = (bench.held_with(lease(20)).await?, bench.held_with(lease(40)).await?);
    let awake = stand_still(bench, 30).await?;
    let new = bench.held_with(lease(25)).await?;
    for (run, overdue_ms) in [(short, 20), (new, 25), (long, 30)] {
        same!(bench.next_wake().await?, Some(awake.after(Span::from_millis(overdue_ms))), "the next moment");
        bench.done(&run).await?;
    }
    Ok(())
}

pub(super) async fn reclaim_after_a_standstill_takes_first_what_was_overdue_first(bench: &mut Bench<'_>) -> Verified {
    // The lease of the first runs out before that of the others, and is granted the most time.
    let long = bench.held_with(lease(1_000)).await?;
    bench.pass(990);
    let (short, shorter) = (bench.held_with(lease(90)).await?, bench.held_with(lease(80)).await?);
    stand_still(bench, 60_000).await?;
    bench.pass(1_000);
    let lost = bench.held_with(lease(0)).await?;
    same!(ids(&bench.reclaim(2).await?), [shorter.id, short.id], "the first two");
    same!(ids(&bench.reclaim(9).await?), [long.id, lost.id], "the others, by name among equals");
    Ok(())
}
