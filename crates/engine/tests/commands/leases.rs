//! Claims and leases: the order of claims, how long a lease lasts, RET-13 (a heartbeat extends it),
//! and what each token is good for.

use super::harness::{Harness, QUEUE, START, WORKER, failure, job, lease_ref, refused, request, secs};
use redrive_engine::{ClaimRequest, Ending, Submission};
use redrive_policy::Span;
use redrive_store::{Job, LeaseRef, LeaseToken, Refusal, Settled, State, Token};

fn lease(job: &Job) -> &redrive_store::Lease {
    job.lease.as_ref().expect("a lease")
}

#[tokio::test]
async fn queues_come_in_the_order_given_then_priority_then_age() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for (queue, priority) in [("b", 0), ("a", 0), ("a", 5), ("a", 0), ("a", -1), ("b", 9)] {
        harness.clock.advance(Span::from_millis(1));
        ids.push(harness.submit(Submission { queue: queue.into(), priority, ..job() }).await.id);
    }
    let request = ClaimRequest { queues: vec!["a".into(), "b".into()], ..request(10) };
    let claimed: Vec<_> = harness.engine.claim(&request).await.expect("an answer").iter().map(|job| job.id).collect();
    assert_eq!(claimed, [2, 1, 3, 4, 5, 0].map(|index: usize| ids[index]));
}

#[tokio::test]
async fn one_claim_returns_no_more_than_asked_for_and_allowed() {
    let harness = Harness::with(|settings| settings.most_claimed = 3);
    for _ in 0..9 {
        harness.submit(job()).await;
    }
    assert_eq!(harness.claim_some(0).await.len(), 0);
    assert_eq!(harness.claim_some(2).await.len(), 2);
    assert_eq!(harness.claim_some(100).await.len(), 3);
}

#[tokio::test]
async fn the_job_says_how_long_a_lease_lasts_then_the_claim_then_the_settings() {
    let (by_job, by_claim) = (secs(7), secs(11));
    for (own, asked, lasts) in [
        (Some(by_job), Some(by_claim), by_job),
        (Some(by_job), None, by_job),
        (None, Some(by_claim), by_claim),
        (None, None, secs(1_800)),
    ] {
        let harness = Harness::new();
        harness.submit(Submission { lease: own, timeout: own, ..job() }).await;
        let claimed =
            harness.engine.claim(&ClaimRequest { lease: asked, ..request(1) }).await.expect("an answer").remove(0);
        let lease = lease(&claimed);
        assert_eq!((lease.span, lease.until, lease.alive), (lasts, START.after(lasts), START));
        assert_eq!(lease.deadline, Some(START.after(own.unwrap_or(secs(1_800)))));
        assert_eq!((&*lease.worker, claimed.times.started), (WORKER, Some(START)));
    }
}

#[tokio::test]
async fn ret_13_a_heartbeat_keeps_a_run_for_as_long_as_it_comes() {
    let harness = Harness::new();
    harness.submit(Submission { lease: Some(secs(30)), ..job() }).await;
    let claimed = harness.claim().await;
    for number in 1..=20 {
        harness.at(START.after(secs(number * 29))).await;
        let extended = harness.extend(&claimed, None).await.expect("the run is this worker's");
        assert_eq!(lease(&extended).until, START.after(secs(number * 29 + 30)));
        assert_eq!((lease(&extended).token, extended.attempt), (lease(&claimed).token, 1));
    }
    harness.at(START.after(secs(20 * 29 + 29))).await;
    assert_eq!(harness.try_claim().await, None, "no other worker got it");
    let done = harness.done(&claimed).await;
    assert_eq!((done.state, done.attempt, done.failures.len()), (State::Completed, 1, 0));
}

#[tokio::test]
async fn ret_13_a_span_that_comes_with_a_heartbeat_holds_for_that_one() {
    let harness = Harness::new();
    harness.submit(Submission { lease: Some(secs(30)), ..job() }).await;
    let claimed = harness.claim().await;
    let extended = harness.extend(&claimed, Some(secs(300))).await.expect("accepted");
    assert_eq!(lease(&extended).until, START.after(secs(300)));
    let extended = harness.extend(&claimed, None).await.expect("accepted");
    assert_eq!(lease(&extended).until, START.after(secs(30)));
}

#[tokio::test]
async fn heartbeats_are_answered_separately() {
    let harness = Harness::new();
    for _ in 0..3 {
        harness.submit(job()).await;
    }
    let claimed = harness.claim_some(3).await;
    harness.done(&claimed[1]).await;
    let answers = harness.engine.extend(claimed.iter().map(lease_ref).collect(), None).await.expect("an answer");
    let accepted: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, false, true]);
}

#[tokio::test]
async fn endings_of_a_batch_are_answered_separately() {
    let harness = Harness::new();
    for _ in 0..3 {
        harness.submit(job()).await;
    }
    let claimed = harness.claim_some(3).await;
    let endings = vec![
        (lease_ref(&claimed[0]), Ending::Done(None)),
        (lease_ref(&claimed[0]), Ending::Failed(failure())),
        (lease_ref(&claimed[1]), Ending::Failed(failure())),
        (lease_ref(&claimed[2]), Ending::Released(Span::ZERO)),
    ];
    let answers = harness.engine.settle(endings).await.expect("an answer");
    let state = |settled: &Settled| settled.job().state;
    let states: Vec<Option<State>> = answers.iter().map(|answer| answer.as_ref().ok().map(state)).collect();
    assert_eq!(states, [Some(State::Completed), None, Some(State::Retryable), Some(State::Available)]);
}

#[tokio::test]
async fn a_token_is_valid_for_its_own_lease_only() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let first = harness.claim().await;
    harness.release(&first, Span::ZERO).await.expect("accepted");
    let second = harness.claim().await;
    let token = lease(&second).token;
    let with_token = |token| LeaseRef { id: second.id, token: Token::Lease(token) };
    for (bad, refusal) in [
        (lease(&first).token, Refusal::StaleLease),
        (LeaseToken { number: token.number + 1, ..token }, Refusal::WrongLease),
        (LeaseToken { nonce: token.nonce ^ 1, ..token }, Refusal::WrongLease),
        (LeaseToken { number: 0, ..token }, Refusal::WrongLease),
    ] {
        let answer =
            harness.engine.settle(vec![(with_token(bad), Ending::Done(None))]).await.expect("an answer").remove(0);
        assert_eq!(super::harness::refused(answer), refusal, "{bad}");
        let answer = harness.engine.extend(vec![with_token(bad)], None).await.expect("an answer").remove(0);
        assert_eq!(super::harness::refused(answer), refusal, "{bad}");
        assert_eq!(harness.job(second.id).await, second, "a refusal changes nothing");
    }
    harness.done(&second).await;
}

#[tokio::test]
async fn a_worker_can_settle_by_its_name_and_no_other_can() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let claimed = harness.claim().await;
    let by = |name: &str| LeaseRef { id: claimed.id, token: Token::Worker(name.into()) };
    let answer = harness.engine.settle(vec![(by("worker-2"), Ending::Done(None))]).await.expect("an answer").remove(0);
    assert_eq!(refused(answer), Refusal::OtherWorker);
    let answer = harness.engine.settle(vec![(by(WORKER), Ending::Done(None))]).await.expect("an answer").remove(0);
    assert_eq!(answer.expect("accepted").job().state, State::Completed);
    let answer = harness.engine.settle(vec![(by(WORKER), Ending::Done(None))]).await.expect("an answer").remove(0);
    assert_eq!(refused(answer), Refusal::WrongState(State::Completed));
}

#[tokio::test]
async fn success_that_is_reported_again_gets_the_same_answer_and_failure_does_not_count_twice() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let claimed = harness.claim().await;
    let waiting = harness.fail(&claimed, failure()).await;
    assert_eq!(refused(harness.settle(&claimed, Ending::Failed(failure())).await), Refusal::StaleLease);
    assert_eq!(harness.job(claimed.id).await, waiting);

    let claimed = harness.claim_when_due(&waiting).await;
    let result = || Ending::Done(Some(super::harness::blob("42")));
    let done = harness.settle(&claimed, result()).await.expect("accepted");
    harness.clock.advance(secs(5));
    assert_eq!(harness.settle(&claimed, result()).await, Ok(done.clone()));
    assert_eq!(refused(harness.settle(&claimed, Ending::Failed(failure())).await), Refusal::StaleLease);
    assert_eq!(harness.job(claimed.id).await, done);
    assert_eq!((&*done.spec.queue, done.result), (QUEUE, Some(super::harness::blob("42"))));
}
