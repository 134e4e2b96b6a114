//! Settings at their edges.

use super::harness::{Harness, START, job, secs};
use redrive_engine::Submission;
use redrive_store::{Start, State};

#[tokio::test]
async fn without_a_time_limit_a_run_lasts_as_long_as_it_is_alive() {
    let harness = Harness::with(|settings| settings.timeout = None);
    harness.submit(Submission { lease: Some(secs(30)), ..job() }).await;
    let claimed = harness.claim().await;
    assert_eq!(claimed.lease.as_ref().expect("a lease").deadline, None);
    harness.extend(&claimed, Some(secs(4_000_000_000))).await.expect("accepted");
    harness.advance(secs(3_999_999_999)).await;
    assert_eq!(harness.done(&claimed).await.state, State::Completed);
}

#[tokio::test]
async fn a_sweep_takes_as_many_steps_as_it_needs() {
    let harness = Harness::with(|settings| settings.sweep_step = 2);
    let at = START.after(secs(60));
    harness.engine.submit(vec![Submission { start: Start::Scheduled(at), ..job() }; 7]).await.expect("stored");
    harness.engine.submit(vec![Submission { lease: Some(secs(30)), ..job() }; 5]).await.expect("stored");
    assert_eq!(harness.claim_some(5).await.len(), 5);
    harness.clock.set(at);
    let swept = harness.engine.sweep().await.expect("swept");
    assert_eq!((swept.reclaimed, swept.promoted), (5, 12));
    assert_eq!(harness.claim_some(20).await.len(), 12);
}

#[tokio::test]
async fn steps_of_zero_are_taken_as_steps_of_one() {
    let harness = Harness::with(|settings| settings.sweep_step = 0);
    let at = START.after(secs(1));
    harness.engine.submit(vec![Submission { start: Start::Scheduled(at), ..job() }; 3]).await.expect("stored");
    harness.at(at).await;
    for claimed in harness.claim_some(3).await {
        harness.done(&claimed).await;
    }
    harness.clock.advance(secs(86_400));
    assert_eq!(harness.engine.prune().await, Ok(3));
}

#[tokio::test]
async fn times_at_the_end_of_time_do_not_overflow() {
    let harness = Harness::new();
    let longest = redrive_policy::Span::MAX;
    harness.submit(Submission { lease: Some(longest), timeout: Some(longest), ..job() }).await;
    let claimed = harness.claim().await;
    harness.extend(&claimed, Some(longest)).await.expect("accepted");
    let snoozed = harness.release(&claimed, longest).await.expect("accepted");
    assert_eq!(harness.engine.next_sweep().await, Ok(snoozed.due));
    harness.at(redrive_policy::Moment::from_micros(i64::MAX)).await;
    assert_eq!(harness.claim().await.attempt, 1);
}
