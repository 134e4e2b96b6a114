//! Ends of runs: success, its repetition, and many at once.

use super::bench::{Bench, LEASE_MS, WORKER, failed, held_by_token, ids, lease_ref, token};
use super::{Verified, same};
use crate::{Blob, Job, LeaseToken, Refusal, RunOutcome, Settled, Settlement, State, Token};
use redrive_policy::Span;
use std::sync::Arc;

pub(super) async fn settle_done_completes_the_job_and_keeps_the_result(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    bench.pass(7);
    let done = bench.settle(held_by_token(&held)?, RunOutcome::Done(Some(result()))).await??;
    let (settled, completed_by) = (Some(token(&held)?), Some(WORKER.into()));
    let mut expected =
        Job { state: State::Completed, lease: None, result: Some(result()), settled, completed_by, ..held };
    expected.times.finished = Some(bench.now());
    same!(done, expected, "a completed job");
    same!(bench.get(done.id).await?, expected, "the same job, read back");
    bench.pass(LEASE_MS);
    same!(bench.reclaim(9).await?, Vec::new(), "what is left to reclaim");
    same!(bench.claim(9).await?, Vec::new(), "what is left to claim");
    Ok(())
}

pub(super) async fn settle_done_may_return_nothing(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    same!(bench.done(&held).await?.result, None, "the result of a handler that returns nothing");
    let held = bench.held().await?;
    let empty: Blob = Arc::from([]);
    let done = bench.settle(held_by_token(&held)?, RunOutcome::Done(Some(Arc::clone(&empty)))).await??;
    same!(bench.get(done.id).await?.result, Some(empty), "an empty result, which is not the same as none");
    Ok(())
}

pub(super) async fn settle_done_again_with_the_same_token_changes_nothing(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let done = bench.settle(held_by_token(&held)?, RunOutcome::Done(Some(result()))).await??;
    let before = bench.everything().await?;
    bench.pass(60_000);
    for report in [RunOutcome::Done(Some(result())), RunOutcome::Done(None)] {
        same!(bench.settle(held_by_token(&held)?, report).await?, Ok(done.clone()), "success, reported again");
    }
    same!(bench.everything().await?, before, "the store after the repetitions");
    Ok(())
}

pub(super) async fn settle_done_again_in_one_batch_gets_the_same_answer(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let lease_ref = held_by_token(&held)?;
    let reports = [RunOutcome::Done(Some(result())), RunOutcome::Done(None), failed(bench.now())];
    let batch = reports.map(|report| Settlement { lease_ref: lease_ref.clone(), report }).into();
    let answers = bench.store().settle(batch, bench.now()).await?;
    let done = bench.get(held.id).await?;
    let happened: Vec<_> = answers.iter().flatten().map(|settled| settled.transition().is_some()).collect();
    same!(happened, [true, false], "which report ended the run");
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.map(Settled::into_job)).collect();
    same!(answers, [Ok(done.clone()), Ok(done), Err(Refusal::StaleLease)], "success twice, and a failure");
    Ok(())
}

pub(super) async fn settle_again_in_any_other_way_is_refused(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let done = bench.done(&held).await?;
    let good = token(&held)?;
    let completed = Refusal::WrongState(State::Completed);
    let released = || RunOutcome::Released { delay: Span::ZERO, most: 9 };
    let attempts = [
        (Token::Lease(good), failed(bench.now()), Refusal::StaleLease),
        (Token::Lease(good), released(), Refusal::StaleLease),
        (Token::Lease(LeaseToken { nonce: !good.nonce, ..good }), RunOutcome::Done(None), Refusal::StaleLease),
        (Token::Lease(LeaseToken { number: 2, ..good }), RunOutcome::Done(None), completed.clone()),
        (Token::Worker("ada".into()), RunOutcome::Done(None), completed.clone()),
        (Token::None, RunOutcome::Done(None), completed.clone()),
        (Token::None, failed(bench.now()), completed.clone()),
        (Token::None, released(), completed),
    ];
    for (token, report, refusal) in attempts {
        same!(bench.settle(lease_ref(held.id, token.clone()), report).await?, Err(refusal), "with {token:?}");
    }
    same!(bench.get(held.id).await?, done, "the completed job");
    Ok(())
}

pub(super) async fn settle_done_again_after_a_redrive_is_stale(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    bench.done(&held).await?;
    bench.redrive(held.id, crate::Redrive::default()).await??;
    let again = || RunOutcome::Done(None);
    same!(bench.settle(held_by_token(&held)?, again()).await?, Err(Refusal::StaleLease), "while it waits");
    bench.take(held.id).await?;
    same!(bench.settle(held_by_token(&held)?, again()).await?, Err(Refusal::StaleLease), "while it runs again");
    Ok(())
}

pub(super) async fn settle_failed_again_with_the_same_token_is_stale(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let retryable = bench.fail(&held).await?;
    let again = bench.settle(held_by_token(&held)?, failed(bench.now())).await?;
    same!(again, Err(Refusal::StaleLease), "a failure, reported again");
    same!(bench.get(held.id).await?, retryable, "the job, which failed once");
    Ok(())
}

pub(super) async fn settle_answers_each_for_itself_and_in_order(bench: &mut Bench<'_>) -> Verified {
    let (first, second, third) = (bench.held().await?, bench.held().await?, bench.held().await?);
    let nobody = bench.name();
    let batch = vec![
        Settlement { lease_ref: held_by_token(&third)?, report: failed(bench.now()) },
        Settlement { lease_ref: lease_ref(nobody, Token::None), report: RunOutcome::Done(None) },
        Settlement { lease_ref: held_by_token(&first)?, report: RunOutcome::Done(None) },
        Settlement { lease_ref: lease_ref(second.id, Token::Worker("bob".into())), report: RunOutcome::Done(None) },
        Settlement { lease_ref: lease_ref(third.id, Token::None), report: RunOutcome::Done(None) },
    ];
    let answers = bench.store().settle(batch, bench.now()).await?;
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
    same!(bench.get(second.id).await?, second, "the job whose end was refused");
    same!(bench.store().settle(Vec::new(), bench.now()).await?, Vec::new(), "no ends of runs");
    same!(ids(&bench.claim(9).await?), Vec::new(), "what can be claimed");
    Ok(())
}

fn result() -> Blob {
    Arc::from(*b"{\"sent\":true}")
}
