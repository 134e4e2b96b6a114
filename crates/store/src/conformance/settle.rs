//! Ends of runs: success, its repetition, and many at once.

use super::bench::{Bench, LEASE_MS, WORKER, failed, held_by_token, hold, ids, token};
use super::{Verified, same};
use crate::{Blob, Job, LeaseToken, Proof, Refusal, Report, Settlement, State};
use redrive_policy::Span;
use std::sync::Arc;

pub(super) async fn settle_done_completes_the_job_and_keeps_the_result(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    bench.pass(7);
    let done = bench.settle(held_by_token(&held)?, Report::Done(Some(result()))).await??;
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
    let done = bench.settle(held_by_token(&held)?, Report::Done(Some(Arc::clone(&empty)))).await??;
    same!(bench.get(done.id).await?.result, Some(empty), "an empty result, which is not the same as none");
    Ok(())
}

pub(super) async fn settle_done_again_with_the_same_token_changes_nothing(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let done = bench.settle(held_by_token(&held)?, Report::Done(Some(result()))).await??;
    let before = bench.everything().await?;
    bench.pass(60_000);
    for report in [Report::Done(Some(result())), Report::Done(None)] {
        same!(bench.settle(held_by_token(&held)?, report).await?, Ok(done.clone()), "success, reported again");
    }
    same!(bench.everything().await?, before, "the store after the repetitions");
    Ok(())
}

pub(super) async fn settle_done_again_in_one_batch_gets_the_same_answer(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let hold = held_by_token(&held)?;
    let reports = [Report::Done(Some(result())), Report::Done(None), failed(bench.now())];
    let batch = reports.map(|report| Settlement { hold: hold.clone(), report }).into();
    let answers = bench.store().settle(batch, bench.now()).await?;
    let done = bench.get(held.id).await?;
    same!(answers, [Ok(done.clone()), Ok(done), Err(Refusal::StaleLease)], "success twice, and a failure");
    Ok(())
}

pub(super) async fn settle_again_in_any_other_way_is_refused(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    let done = bench.done(&held).await?;
    let good = token(&held)?;
    let completed = Refusal::WrongState(State::Completed);
    let released = || Report::Released { delay: Span::ZERO, most: 9 };
    let attempts = [
        (Proof::Token(good), failed(bench.now()), Refusal::StaleLease),
        (Proof::Token(good), released(), Refusal::StaleLease),
        (Proof::Token(LeaseToken { nonce: !good.nonce, ..good }), Report::Done(None), Refusal::StaleLease),
        (Proof::Token(LeaseToken { number: 2, ..good }), Report::Done(None), completed.clone()),
        (Proof::Worker("ada".into()), Report::Done(None), completed.clone()),
        (Proof::None, Report::Done(None), completed.clone()),
        (Proof::None, failed(bench.now()), completed.clone()),
        (Proof::None, released(), completed),
    ];
    for (proof, report, refusal) in attempts {
        same!(bench.settle(hold(held.id, proof.clone()), report).await?, Err(refusal), "with {proof:?}");
    }
    same!(bench.get(held.id).await?, done, "the completed job");
    Ok(())
}

pub(super) async fn settle_done_again_after_a_redrive_is_stale(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    bench.done(&held).await?;
    bench.store().redrive(held.id, crate::Redrive::default(), bench.now()).await??;
    let again = || Report::Done(None);
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
        Settlement { hold: held_by_token(&third)?, report: failed(bench.now()) },
        Settlement { hold: hold(nobody, Proof::None), report: Report::Done(None) },
        Settlement { hold: held_by_token(&first)?, report: Report::Done(None) },
        Settlement { hold: hold(second.id, Proof::Worker("bob".into())), report: Report::Done(None) },
        Settlement { hold: hold(third.id, Proof::None), report: Report::Done(None) },
    ];
    let answers = bench.store().settle(batch, bench.now()).await?;
    let seen: Vec<_> = answers.into_iter().map(|answer| answer.map(|job| (job.id, job.state))).collect();
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
