//! Limits: how many jobs of a group are active at once, and how many start in a time.

use super::harness::{Harness, LEASE_MS, QUEUE, ids};
use super::{CaseResult, ensure, same};
use crate::{Bounds, Claimed, Full, Group, Job, Limits, Rate, Spec};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

/// A limit with the key `api`.
fn limited(bounds: Bounds) -> impl Fn(&mut Spec) {
    move |spec| spec.limits = Some(Arc::new(Limits::own("api", bounds)))
}

fn concurrency(most: u32) -> Bounds {
    Bounds { concurrency: Some(most), ..Bounds::default() }
}

fn rate(limit: u32, ms: u32) -> Bounds {
    Bounds { rate: Some(Rate { limit, period: Span::from_millis(ms) }), ..Bounds::default() }
}

fn throttle(limit: u32, ms: u32) -> Bounds {
    Bounds { throttle: Some(Rate { limit, period: Span::from_millis(ms) }), ..Bounds::default() }
}

async fn several(
    harness: &mut Harness<'_>,
    count: usize,
    change: impl Fn(&mut Spec),
) -> Result<Vec<Job>, super::Violation> {
    let mut jobs = Vec::new();
    for _ in 0..count {
        jobs.push(harness.enqueue_with(&change).await?);
    }
    Ok(jobs)
}

fn full(key: &str, opens: Option<Moment>) -> Vec<Full> {
    vec![Full { group: Group::Key(key.into()), opens }]
}

pub(super) async fn limit_of_concurrency_holds_until_a_run_ends(harness: &mut Harness<'_>) -> CaseResult {
    let jobs = several(harness, 4, limited(concurrency(2))).await?;
    let claimed = harness.claim(9).await?;
    same!(ids(&claimed), [jobs[0].id, jobs[1].id], "as many as may be active");
    same!(harness.claim_whole(9).await?, Claimed { jobs: Vec::new(), full: full("api", None) }, "a claim of the rest");
    same!(harness.get(jobs[2].id).await?, jobs[2], "a job that was passed over");
    harness.done(&claimed[0]).await?;
    let next = harness.claim(9).await?;
    same!(ids(&next), [jobs[2].id], "the next, after a success");
    harness.fail(&next[0]).await?;
    same!(ids(&harness.claim(9).await?), [jobs[3].id], "the next, after a failure");
    Ok(())
}

pub(super) async fn limit_of_concurrency_makes_room_however_a_run_ends(harness: &mut Harness<'_>) -> CaseResult {
    let jobs = several(harness, 3, limited(concurrency(1))).await?;
    let first = harness.claim(9).await?;
    harness.advance(LEASE_MS);
    same!(ids(&harness.reclaim(9).await?), [jobs[0].id], "whose lease ran out");
    let second = harness.claim(9).await?;
    same!(ids(&second), [jobs[1].id], "the next, after a lost run");
    harness.store.cancel(second[0].id, harness.now).await??;
    same!(ids(&harness.claim(9).await?), [jobs[2].id], "the next, after a cancelled run");
    ensure!(first.len() == 1, "one job at a time");
    Ok(())
}

pub(super) async fn limit_of_zero_holds_the_group(harness: &mut Harness<'_>) -> CaseResult {
    several(harness, 1, limited(concurrency(0))).await?;
    same!(harness.claim(9).await?, [], "a group that may not run");
    Ok(())
}

pub(super) async fn limit_of_a_rate_counts_starts_of_any_period(harness: &mut Harness<'_>) -> CaseResult {
    let jobs = several(harness, 5, limited(rate(2, 1_000))).await?;
    let begin = harness.now;
    same!(ids(&harness.claim(1).await?), [jobs[0].id], "the first");
    harness.advance(600);
    let second = harness.claim(9).await?;
    same!(ids(&second), [jobs[1].id], "the second, and no third");
    same!(
        harness.claim_whole(9).await?.full,
        full("api", Some(begin.after(Span::from_secs(1)))),
        "when the next may start"
    );
    // That a run ends makes no room.
    harness.done(&second[0]).await?;
    harness.advance_to_just_before(begin.after(Span::from_secs(1)));
    same!(harness.claim(9).await?, [], "just before the first start is a period ago");
    harness.advance_to(begin.after(Span::from_secs(1)));
    same!(ids(&harness.claim(9).await?), [jobs[2].id], "when it is");
    harness.advance(599);
    same!(harness.claim(9).await?, [], "within a period of two other starts");
    harness.advance(1);
    same!(ids(&harness.claim(9).await?), [jobs[3].id], "the next");
    Ok(())
}

pub(super) async fn limit_of_a_throttle_spaces_starts_evenly(harness: &mut Harness<'_>) -> CaseResult {
    let jobs = several(harness, 3, limited(throttle(4, 1_000))).await?;
    let begin = harness.now;
    same!(ids(&harness.claim(9).await?), [jobs[0].id], "one at a time");
    harness.advance_to_just_before(begin.after(Span::from_millis(250)));
    same!(harness.claim(9).await?, [], "within the interval");
    harness.advance_to(begin.after(Span::from_millis(250)));
    same!(ids(&harness.claim(9).await?), [jobs[1].id], "after the interval");
    harness.advance(1_000);
    same!(ids(&harness.claim(9).await?), [jobs[2].id], "a time without starts saves up none");
    Ok(())
}

pub(super) async fn limit_requires_all_bounds_together(harness: &mut Harness<'_>) -> CaseResult {
    let bounds = Bounds { concurrency: Some(1), rate: rate(2, 1_000).rate, throttle: throttle(10, 1_000).throttle };
    let jobs = several(harness, 4, limited(bounds)).await?;
    let first = harness.claim(9).await?;
    same!(ids(&first), [jobs[0].id], "the first");
    harness.advance(500);
    same!(harness.claim(9).await?, [], "while another is active");
    harness.done(&first[0]).await?;
    let second = harness.claim(9).await?;
    same!(ids(&second), [jobs[1].id], "the second");
    harness.done(&second[0]).await?;
    harness.advance(400);
    same!(harness.claim(9).await?, [], "after two starts within the period");
    harness.advance(100);
    same!(ids(&harness.claim(9).await?), [jobs[2].id], "when all allow it");
    Ok(())
}

pub(super) async fn limit_delays_no_job_of_other_groups(harness: &mut Harness<'_>) -> CaseResult {
    let held = several(harness, 3, limited(concurrency(1))).await?;
    let urgent = harness.enqueue_with(|spec| {
        limited(concurrency(1))(spec);
        spec.priority = 9;
    });
    let urgent = urgent.await?;
    let other = |spec: &mut Spec| spec.limits = Some(Arc::new(Limits::own("other", concurrency(1))));
    let (plain, other) = (harness.enqueue_one().await?, harness.enqueue_with(other).await?);
    same!(ids(&harness.claim(9).await?), [urgent.id, plain.id, other.id], "what is not held, in order");
    same!(harness.claim(9).await?, [], "what is left");
    same!(harness.get(held[0].id).await?, held[0], "a job that is held");
    Ok(())
}

pub(super) async fn limit_keeps_the_order_among_all_lanes(harness: &mut Harness<'_>) -> CaseResult {
    let mut expected = Vec::new();
    for turn in 0..6 {
        let job = harness.enqueue_with(|spec| {
            let key = ["a", "b"][turn % 2];
            if turn % 3 > 0 {
                spec.limits = Some(Arc::new(Limits::own(key, concurrency(9))));
            }
            spec.priority = if turn == 4 { 5 } else { 0 };
        });
        expected.push((if turn == 4 { 0 } else { 1 }, job.await?.id));
    }
    expected.sort_unstable();
    let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
    same!(ids(&harness.claim(4).await?), expected[..4], "the first four of all lanes");
    same!(ids(&harness.claim(9).await?), expected[4..], "the others");
    Ok(())
}

pub(super) async fn limit_of_a_key_spans_queues(harness: &mut Harness<'_>) -> CaseResult {
    let mut jobs = Vec::new();
    for queue in ["a", "b", QUEUE] {
        let job = harness.enqueue_with(|spec| {
            limited(concurrency(2))(spec);
            spec.queue = queue.into();
        });
        jobs.push(job.await?);
    }
    let claimed = harness.claim_with(harness.claim_request(&["a"], 9)).await?;
    same!(ids(&claimed), [jobs[0].id], "the job of one queue");
    let rest = harness.claim_with(harness.claim_request(&["b", QUEUE], 9)).await?;
    same!(ids(&rest), [jobs[1].id], "the first of two other queues");
    Ok(())
}

pub(super) async fn limit_is_the_one_that_each_job_brings(harness: &mut Harness<'_>) -> CaseResult {
    let first = harness.enqueue_with(limited(concurrency(1))).await?;
    let loose = several(harness, 3, limited(concurrency(3))).await?;
    same!(ids(&harness.claim(9).await?), [first.id, loose[0].id, loose[1].id], "three of one key");
    let strict = harness.enqueue_with(limited(concurrency(2))).await?;
    same!(harness.claim(9).await?, [], "a fourth");
    harness.store.cancel(loose[2].id, harness.now).await??;
    harness.store.cancel(first.id, harness.now).await??;
    same!(harness.claim(9).await?, [], "one that asks for less than are active");
    harness.store.cancel(loose[0].id, harness.now).await??;
    same!(ids(&harness.claim(9).await?), [strict.id], "one that asks for no less");
    Ok(())
}

pub(super) async fn limit_counts_again_what_is_retried_and_redriven(harness: &mut Harness<'_>) -> CaseResult {
    let jobs = several(harness, 2, limited(rate(2, 100_000))).await?;
    let claimed = harness.claim(1).await?;
    let failed = harness.fail(&claimed[0]).await?;
    harness.advance_to(failed.due.unwrap_or_default());
    harness.promote(9).await?;
    same!(ids(&harness.claim(9).await?), [jobs[1].id], "two starts, one of them of the job that failed");
    same!(harness.claim(9).await?, [], "its retry");
    Ok(())
}

pub(super) async fn limit_leaves_no_room_for_what_has_expired(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(10);
    several(harness, 2, |spec| {
        limited(concurrency(1))(spec);
        spec.expires = Some(expires);
    })
    .await?;
    let lasting = harness.enqueue_with(limited(concurrency(1))).await?;
    harness.advance(10);
    same!(ids(&harness.claim(9).await?), [lasting.id], "the first that has not expired");
    Ok(())
}

pub(super) async fn limit_survives_a_restart(harness: &mut Harness<'_>) -> CaseResult {
    let both = Bounds { concurrency: Some(3), ..rate(2, 60_000) };
    let jobs = several(harness, 4, limited(both)).await?;
    let begin = harness.now;
    let first = harness.claim(1).await?;
    harness.advance(30_000);
    same!(ids(&harness.claim(9).await?), [jobs[1].id], "the second");
    harness.restart();
    same!(*harness.get(jobs[0].id).await?.spec, *jobs[0].spec, "the limit of a job");
    same!(harness.claim_whole(9).await?.full, full("api", Some(begin.after(Span::from_secs(60)))), "the starts");
    harness.advance_to(begin.after(Span::from_secs(60)));
    same!(ids(&harness.claim(9).await?), [jobs[2].id], "the third");
    harness.advance(60_000);
    harness.restart();
    same!(harness.claim(9).await?, [], "while three are active");
    harness.done(&first[0]).await?;
    same!(ids(&harness.claim(9).await?), [jobs[3].id], "the fourth");
    Ok(())
}

pub(super) async fn limit_ends_with_the_bytes_of_a_claim(harness: &mut Harness<'_>) -> CaseResult {
    let jobs = several(harness, 3, |spec| {
        limited(rate(3, 60_000))(spec);
        spec.body = vec![b' '; 5_000].into();
    })
    .await?;
    let claim = crate::Claim { bytes: jobs[0].bytes() + 1, ..harness.claim_request(&[QUEUE], 9) };
    same!(ids(&harness.claim_with(claim.clone()).await?), [jobs[0].id], "what fits");
    same!(ids(&harness.claim_with(claim).await?), [jobs[1].id], "the next that fits");
    same!(ids(&harness.claim(9).await?), [jobs[2].id], "one that did not fit has not started before");
    Ok(())
}
