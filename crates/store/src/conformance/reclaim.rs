//! Runs that the store ends.

use super::harness::{Harness, LEASE_MS, QUEUE, decision, ids, jobs, lease_of};
use super::{CaseResult, Violation, same};
use crate::{AttemptOutcome, Claim, Job, JobId, Overdue, Refusal, Spec, Standstill, State};
use redrive_policy::{Moment, Span};
use std::sync::Mutex;

pub(super) async fn reclaim_ends_a_run_at_the_end_of_its_lease_and_not_before(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let until = harness.later(LEASE_MS);
    harness.advance_to_just_before(until);
    same!(harness.reclaim(9).await?, Vec::new(), "what is reclaimed a microsecond early");
    same!(harness.get(claimed.id).await?, claimed, "the job until then");
    harness.advance_to(until);
    let ended = harness.reclaim(9).await?;
    same!(ids(&ended), [claimed.id], "what is reclaimed at the end of the lease");
    same!(ended, [harness.get(claimed.id).await?], "the answer, and the job read back");
    same!(harness.reclaim(9).await?, Vec::new(), "what is reclaimed a second time");
    let late = harness.settle(lease_of(&claimed)?, AttemptOutcome::Done(None)).await?;
    same!(late, Err(Refusal::StaleLease), "success, reported too late");
    Ok(())
}

pub(super) async fn reclaim_says_why_a_run_is_overdue(harness: &mut Harness<'_>) -> CaseResult {
    let (both, stalled, timed) =
        (harness.enqueue_one().await?, harness.enqueue_one().await?, harness.enqueue_one().await?);
    let request = |timeout_ms: Option<u32>, lease_ms| {
        let lease = Span::from_millis(lease_ms);
        Claim { timeout: timeout_ms.map(Span::from_millis), lease, ..harness.claim_request(&[QUEUE], 1) }
    };
    // The lease of the first runs out before anything else, and yet its deadline is what counts.
    for request in [request(Some(50), 10), request(Some(5_000), 30), request(Some(40), 5_000)] {
        harness.claim_with(request).await?;
    }
    harness.advance(60);
    let seen = Mutex::new(Vec::new());
    let decide = |job: &Job, why: Overdue| {
        if let Ok(mut seen) = seen.lock() {
            seen.push((job.id, job.state, why));
        }
        decision(job, harness.now())
    };
    let ended = harness.store().reclaim(&decide, 9, harness.now()).await?;
    same!(ids(&jobs(ended)), [both.id, stalled.id, timed.id], "the runs, in the order in which they became overdue");
    let mut seen = seen.lock().map(|seen| seen.clone()).unwrap_or_default();
    seen.dedup();
    let expected = [(both.id, Overdue::TimedOut), (stalled.id, Overdue::Stalled), (timed.id, Overdue::TimedOut)];
    same!(seen, expected.map(|(id, why)| (id, State::Active, why)), "what the decider was asked");
    Ok(())
}

pub(super) async fn reclaim_counts_a_run_as_stalled_before_its_deadline(harness: &mut Harness<'_>) -> CaseResult {
    harness.claimed_with(|spec| spec.timeout = Some(Span::from_millis(LEASE_MS + 1))).await?;
    harness.advance(LEASE_MS);
    let seen = Mutex::new(None);
    let decide = |job: &Job, why: Overdue| {
        if let Ok(mut seen) = seen.lock() {
            *seen = Some(why);
        }
        decision(job, harness.now())
    };
    harness.store().reclaim(&decide, 9, harness.now()).await?;
    same!(seen.lock().map(|why| *why).unwrap_or_default(), Some(Overdue::Stalled), "why the run was ended");
    Ok(())
}

pub(super) async fn reclaim_takes_the_longest_overdue_first_and_at_most_the_limit(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let mut claimed = Vec::new();
    for lease_ms in [30, 10, 20, 10] {
        claimed.push(harness.claimed_with(|spec| spec.lease = Some(Span::from_millis(lease_ms))).await?.id);
    }
    harness.advance(30);
    same!(harness.reclaim(0).await?, Vec::new(), "a limit of none");
    same!(ids(&harness.reclaim(1).await?), [claimed[1]], "the first, by id among equals");
    same!(ids(&harness.reclaim(2).await?), [claimed[3], claimed[2]], "the next two");
    same!(ids(&harness.reclaim(9).await?), [claimed[0]], "the rest");
    Ok(())
}

pub(super) async fn reclaim_goes_by_the_deadline_whatever_the_heartbeats(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed_with(|spec| spec.timeout = Some(Span::from_millis(100))).await?;
    for _ in 0..10 {
        same!(harness.reclaim(9).await?, Vec::new(), "what is reclaimed before the deadline");
        harness.advance(10);
        harness.extend(lease_of(&claimed)?, None).await??;
    }
    same!(ids(&harness.reclaim(9).await?), [claimed.id], "what is reclaimed at the deadline");
    Ok(())
}

/// The server stands still for this long, until now.
async fn stand_still(harness: &mut Harness<'_>, ms: u32) -> Result<Moment, Violation> {
    harness.advance(ms);
    let standstill = Standstill { ended: harness.now(), length: Span::from_millis(ms) };
    harness.store().stood_still(standstill).await?;
    Ok(standstill.ended)
}

/// Ends the case unless these runs are reclaimed at a moment, and not before.
async fn reclaimed_at(harness: &mut Harness<'_>, moment: Moment, runs: &[JobId]) -> CaseResult {
    harness.advance_to_just_before(moment);
    same!(harness.reclaim(9).await?, Vec::new(), "what is reclaimed a microsecond early");
    harness.advance_to(moment);
    same!(ids(&harness.reclaim(9).await?), runs, "what is reclaimed then");
    Ok(())
}

fn lease(ms: u32) -> impl FnOnce(&mut Spec) {
    move |spec| spec.lease = Some(Span::from_millis(ms))
}

pub(super) async fn reclaim_after_a_standstill_grants_every_run_one_lease_period(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let (short, long) = (harness.claimed_with(lease(20)).await?, harness.claimed_with(lease(40)).await?);
    let timed = harness.claimed_with(|spec| spec.timeout = Some(Span::from_millis(30))).await?;
    let awake = stand_still(harness, 60_000).await?;
    same!(harness.reclaim(9).await?, Vec::new(), "what is reclaimed at once");
    same!(harness.get(short.id).await?, short, "a run that is spared");
    for (run, span_ms) in [(short, 20), (long, 40), (timed, LEASE_MS)] {
        reclaimed_at(harness, awake.after(Span::from_millis(span_ms)), &[run.id]).await?;
    }
    Ok(())
}

pub(super) async fn reclaim_after_a_standstill_goes_by_heartbeats_received_since(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let timed = harness.claimed_with(|spec| spec.timeout = Some(Span::from_millis(30))).await?;
    let awake = stand_still(harness, 20).await?;
    let new = harness.claimed_with(lease(5)).await?;
    reclaimed_at(harness, awake.after(Span::from_millis(5)), &[new.id]).await?;
    harness.extend(lease_of(&timed)?, None).await??;
    reclaimed_at(harness, awake.after(Span::from_millis(10)), &[timed.id]).await?;
    Ok(())
}

pub(super) async fn reclaim_after_a_short_standstill_grants_no_more_than_it_took(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.advance(LEASE_MS - 10);
    let awake = stand_still(harness, 50).await?;
    reclaimed_at(harness, awake.after(Span::from_millis(50)), &[claimed.id]).await?;
    Ok(())
}

pub(super) async fn reclaim_after_a_standstill_starts_when_next_wake_says(harness: &mut Harness<'_>) -> CaseResult {
    let (short, long) = (harness.claimed_with(lease(20)).await?, harness.claimed_with(lease(40)).await?);
    let awake = stand_still(harness, 30).await?;
    let new = harness.claimed_with(lease(25)).await?;
    for (run, overdue_ms) in [(short, 20), (new, 25), (long, 30)] {
        same!(harness.next_wake().await?, Some(awake.after(Span::from_millis(overdue_ms))), "the next moment");
        harness.done(&run).await?;
    }
    Ok(())
}

pub(super) async fn reclaim_after_a_standstill_takes_first_what_was_overdue_first(
    harness: &mut Harness<'_>,
) -> CaseResult {
    // The lease of the first runs out before that of the others, and is granted the most time.
    let long = harness.claimed_with(lease(1_000)).await?;
    harness.advance(990);
    let (short, shorter) = (harness.claimed_with(lease(90)).await?, harness.claimed_with(lease(80)).await?);
    stand_still(harness, 60_000).await?;
    harness.advance(1_000);
    let lost = harness.claimed_with(lease(0)).await?;
    same!(ids(&harness.reclaim(2).await?), [shorter.id, short.id], "the first two");
    same!(ids(&harness.reclaim(9).await?), [long.id, lost.id], "the others, by id among equals");
    Ok(())
}
