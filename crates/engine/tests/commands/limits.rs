//! Settings at their edges.

use super::rig::{Rig, START, job, secs};
use redrive_engine::Submission;
use redrive_store::{Start, State};

#[tokio::test]
async fn without_a_time_limit_a_run_lasts_as_long_as_it_is_alive() {
    let rig = Rig::with(|settings| settings.timeout = None);
    rig.submit(Submission { lease: Some(secs(30)), ..job() }).await;
    let claimed = rig.claim().await;
    assert_eq!(claimed.lease.as_ref().expect("a lease").deadline, None);
    rig.extend(&claimed, Some(secs(4_000_000_000))).await.expect("accepted");
    rig.later(secs(3_999_999_999)).await;
    assert_eq!(rig.done(&claimed).await.state, State::Completed);
}

#[tokio::test]
async fn a_sweep_takes_as_many_steps_as_it_needs() {
    let rig = Rig::with(|settings| settings.sweep_step = 2);
    let at = START.after(secs(60));
    rig.engine.submit(vec![Submission { start: Start::Scheduled(at), ..job() }; 7]).await.expect("kept");
    rig.engine.submit(vec![Submission { lease: Some(secs(30)), ..job() }; 5]).await.expect("kept");
    assert_eq!(rig.claim_some(5).await.len(), 5);
    rig.clock.set(at);
    let swept = rig.engine.sweep().await.expect("swept");
    assert_eq!((swept.reclaimed, swept.promoted), (5, 12));
    assert_eq!(rig.claim_some(20).await.len(), 12);
}

#[tokio::test]
async fn steps_of_nothing_are_taken_as_steps_of_one() {
    let rig = Rig::with(|settings| settings.sweep_step = 0);
    let at = START.after(secs(1));
    rig.engine.submit(vec![Submission { start: Start::Scheduled(at), ..job() }; 3]).await.expect("kept");
    rig.at(at).await;
    for claimed in rig.claim_some(3).await {
        rig.done(&claimed).await;
    }
    rig.clock.advance(secs(86_400));
    assert_eq!(rig.engine.prune().await, Ok(3));
}

#[tokio::test]
async fn times_at_the_end_of_time_do_not_overflow() {
    let rig = Rig::new();
    let longest = redrive_policy::Span::MAX;
    rig.submit(Submission { lease: Some(longest), timeout: Some(longest), ..job() }).await;
    let claimed = rig.claim().await;
    rig.extend(&claimed, Some(longest)).await.expect("accepted");
    let snoozed = rig.release(&claimed, longest).await.expect("accepted");
    assert_eq!(rig.engine.next_sweep().await, Ok(snoozed.due));
    rig.at(redrive_policy::Moment::from_micros(i64::MAX)).await;
    assert_eq!(rig.claim().await.attempt, 1);
}
