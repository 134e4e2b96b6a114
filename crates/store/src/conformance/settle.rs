//! Ends of attempts: success, its repetition, and many at once.

use super::harness::{Harness, LEASE_MS, WORKER, failed, ids, lease_of, lease_ref, token};
use super::{CaseResult, same};
use crate::{AttemptOutcome, Blob, Job, LeaseToken, Refusal, Settled, Settlement, State, Token};
use redrive_policy::Span;
use std::sync::Arc;

pub(super) async fn settle_done_completes_the_job_and_keeps_the_result(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.advance(7);
    let done = harness.settle(lease_of(&claimed)?, AttemptOutcome::Done(Some(result()))).await??;
    let (settled, completed_by) = (Some(token(&claimed)?), Some(WORKER.into()));
    let mut expected =
        Job { state: State::Completed, lease: None, result: Some(result()), settled, completed_by, ..claimed };
    expected.times.finished = Some(harness.now());
    same!(done, expected, "a completed job");
    same!(harness.get(done.id).await?, expected, "the same job, read back");
    harness.advance(LEASE_MS);
    same!(harness.reclaim(9).await?, Vec::new(), "what is left to reclaim");
    same!(harness.claim(9).await?, Vec::new(), "what is left to claim");
    Ok(())
}

pub(super) async fn settle_done_may_return_nothing(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    same!(harness.done(&claimed).await?.result, None, "the result of a handler that returns nothing");
    let claimed = harness.claimed().await?;
    let empty: Blob = Arc::from([]);
    let done = harness.settle(lease_of(&claimed)?, AttemptOutcome::Done(Some(Arc::clone(&empty)))).await??;
    same!(harness.get(done.id).await?.result, Some(empty), "an empty result, which is not the same as none");
    Ok(())
}

pub(super) async fn settle_done_again_with_the_same_token_changes_nothing(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let done = harness.settle(lease_of(&claimed)?, AttemptOutcome::Done(Some(result()))).await??;
    let before = harness.store_view().await?;
    harness.advance(60_000);
    for report in [AttemptOutcome::Done(Some(result())), AttemptOutcome::Done(None)] {
        same!(harness.settle(lease_of(&claimed)?, report).await?, Ok(done.clone()), "success, reported again");
    }
    same!(harness.store_view().await?, before, "the store after the repetitions");
    Ok(())
}

pub(super) async fn settle_done_again_in_one_batch_gets_the_same_answer(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let lease_ref = lease_of(&claimed)?;
    let reports = [AttemptOutcome::Done(Some(result())), AttemptOutcome::Done(None), failed(harness.now())];
    let batch = reports.map(|report| Settlement { lease_ref: lease_ref.clone(), report }).into();
    let answers = harness.store().settle(batch, harness.now()).await?;
    let done = harness.get(claimed.id).await?;
    let happened: Vec<_> = answers.iter().flatten().map(|settled| settled.transition().is_some()).collect();
    same!(happened, [true, false], "which report ended the run");
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.map(Settled::into_job)).collect();
    same!(answers, [Ok(done.clone()), Ok(done), Err(Refusal::StaleLease)], "success twice, and a failure");
    Ok(())
}

pub(super) async fn settle_again_in_any_other_way_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let done = harness.done(&claimed).await?;
    let good = token(&claimed)?;
    let completed = Refusal::WrongState(State::Completed);
    let released = || AttemptOutcome::Released { delay: Span::ZERO, most: 9 };
    let attempts = [
        (Token::Lease(good), failed(harness.now()), Refusal::StaleLease),
        (Token::Lease(good), released(), Refusal::StaleLease),
        (Token::Lease(LeaseToken { nonce: !good.nonce, ..good }), AttemptOutcome::Done(None), Refusal::StaleLease),
        (Token::Lease(LeaseToken { number: 2, ..good }), AttemptOutcome::Done(None), completed.clone()),
        (Token::Worker("ada".into()), AttemptOutcome::Done(None), completed.clone()),
        (Token::None, AttemptOutcome::Done(None), completed.clone()),
        (Token::None, failed(harness.now()), completed.clone()),
        (Token::None, released(), completed),
    ];
    for (token, report, refusal) in attempts {
        same!(harness.settle(lease_ref(claimed.id, token.clone()), report).await?, Err(refusal), "with {token:?}");
    }
    same!(harness.get(claimed.id).await?, done, "the completed job");
    Ok(())
}

pub(super) async fn settle_done_again_after_a_redrive_is_stale(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.done(&claimed).await?;
    harness.redrive(claimed.id, crate::Redrive::default()).await??;
    let again = || AttemptOutcome::Done(None);
    same!(harness.settle(lease_of(&claimed)?, again()).await?, Err(Refusal::StaleLease), "while it waits");
    harness.claim_next(claimed.id).await?;
    same!(harness.settle(lease_of(&claimed)?, again()).await?, Err(Refusal::StaleLease), "while it runs again");
    Ok(())
}

pub(super) async fn settle_failed_again_with_the_same_token_is_stale(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let retryable = harness.fail(&claimed).await?;
    let again = harness.settle(lease_of(&claimed)?, failed(harness.now())).await?;
    same!(again, Err(Refusal::StaleLease), "a failure, reported again");
    same!(harness.get(claimed.id).await?, retryable, "the job, which failed once");
    Ok(())
}

pub(super) async fn settle_answers_each_report_separately_and_in_order(harness: &mut Harness<'_>) -> CaseResult {
    let (first, second, third) = (harness.claimed().await?, harness.claimed().await?, harness.claimed().await?);
    let unknown = harness.new_id();
    let batch = vec![
        Settlement { lease_ref: lease_of(&third)?, report: failed(harness.now()) },
        Settlement { lease_ref: lease_ref(unknown, Token::None), report: AttemptOutcome::Done(None) },
        Settlement { lease_ref: lease_of(&first)?, report: AttemptOutcome::Done(None) },
        Settlement { lease_ref: lease_ref(second.id, Token::Worker("bob".into())), report: AttemptOutcome::Done(None) },
        Settlement { lease_ref: lease_ref(third.id, Token::None), report: AttemptOutcome::Done(None) },
    ];
    let answers = harness.store().settle(batch, harness.now()).await?;
    let seen: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().map(|settled| (settled.job().id, settled.job().state)).map_err(Clone::clone))
        .collect();
    let expected = [
        Ok((third.id, State::Retryable)),
        Err(Refusal::NotFound),
        Ok((first.id, State::Completed)),
        Err(Refusal::OtherWorker),
        Err(Refusal::WrongState(State::Retryable)),
    ];
    same!(seen, expected, "five ends of runs");
    same!(harness.get(second.id).await?, second, "the job whose end was refused");
    same!(harness.store().settle(Vec::new(), harness.now()).await?, Vec::new(), "no ends of runs");
    same!(ids(&harness.claim(9).await?), Vec::new(), "what can be claimed");
    Ok(())
}

fn result() -> Blob {
    Arc::from(*b"{\"sent\":true}")
}
