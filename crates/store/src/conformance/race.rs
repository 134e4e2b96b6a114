//! Several callers at the same time: one of them wins, and the others learn that they lost.

use super::harness::{Harness, QUEUE, START, failed, ids, lease_of, token};
use super::{CaseResult, ensure, same};
use crate::{AttemptOutcome, Claim, Enqueued, Job, NewJob, Refusal, Settled, Settlement, State, Token};
use std::collections::BTreeSet;

pub(super) async fn race_of_two_workers_for_one_job(harness: &mut Harness<'_>) -> CaseResult {
    for _ in 0..50 {
        let job = harness.enqueue_one().await?;
        let claimed = harness.together(2, |index, store| {
            let worker = format!("worker-{index}").into();
            store.claim(Claim { worker, seed: index as u64, ..harness.claim_request(&[QUEUE], 1) }, START)
        })?;
        let winners: Vec<Job> = claimed.into_iter().flat_map(|claimed| claimed.jobs).collect();
        same!(ids(&winners), [job.id], "the job, claimed once");
        same!(harness.get(job.id).await?, winners[0], "the job as the winner got it");
    }
    Ok(())
}

pub(super) async fn race_of_many_workers_claims_every_job_once(harness: &mut Harness<'_>) -> CaseResult {
    let jobs: Vec<NewJob> = (0..60).map(|_| harness.job()).collect();
    let names: BTreeSet<_> = jobs.iter().map(|job| job.id).collect();
    harness.enqueue(jobs).await??;
    let claimed = harness.together(6, |index, store| {
        store.claim(Claim { seed: index as u64, ..harness.claim_request(&[QUEUE], 13) }, START)
    })?;
    let claimed: Vec<Job> = claimed.into_iter().flat_map(|claimed| claimed.jobs).collect();
    same!(claimed.len(), 60, "how many jobs were claimed");
    same!(ids(&claimed).into_iter().collect::<BTreeSet<_>>(), names, "which");
    Ok(())
}

pub(super) async fn race_of_success_and_failure_has_one_winner(harness: &mut Harness<'_>) -> CaseResult {
    for _ in 0..50 {
        let claimed = harness.claimed().await?;
        let good = token(&claimed)?;
        let answers = harness.together(2, |index, store| {
            let report = if index == 0 { AttemptOutcome::Done(None) } else { failed(START) };
            let lease_ref = crate::LeaseRef { id: claimed.id, token: Token::Lease(good) };
            store.settle(vec![Settlement { lease_ref, report }], START)
        })?;
        let answers: Vec<_> = answers.into_iter().flatten().collect();
        let lost = answers.iter().filter(|answer| **answer == Err(Refusal::StaleLease)).count();
        let won: Vec<_> = answers.into_iter().flatten().collect();
        same!((won.len(), lost), (1, 1), "how many ends of one run won and lost");
        same!(&harness.get(claimed.id).await?, won[0].job(), "the job as the winner left it");
    }
    Ok(())
}

pub(super) async fn race_of_repeated_success_gets_one_answer(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    let lease_ref = lease_of(&claimed)?;
    let answers = harness.together(4, |_, store| {
        store.settle(vec![Settlement { lease_ref: lease_ref.clone(), report: AttemptOutcome::Done(None) }], START)
    })?;
    let done = harness.get(claimed.id).await?;
    same!(done.state, State::Completed, "the job");
    let answers: Vec<Settled> = answers.into_iter().flatten().collect::<Result<_, _>>()?;
    let first = answers.iter().filter(|answer| answer.transition().is_some()).count();
    same!((answers.len(), first), (4, 1), "how many answers, and how many of them say that the run ended");
    for answer in answers {
        same!(answer.into_job(), done, "success, reported four times at once");
    }
    Ok(())
}

pub(super) async fn race_of_one_key_stores_one_job(harness: &mut Harness<'_>) -> CaseResult {
    let jobs: Vec<NewJob> = (0..4).map(|_| NewJob { idempotency_key: Some("k".into()), ..harness.job() }).collect();
    let answers = harness.together(4, |index, store| store.enqueue(vec![jobs[index].clone()], START))?;
    let answers: Vec<Enqueued> = answers.into_iter().flatten().flatten().collect();
    let created: Vec<&Job> = answers.iter().filter_map(|answer| created(answer)).collect();
    same!((answers.len(), created.len()), (4, 1), "how many answers, and how many of them new");
    let all_the_same = answers.iter().all(|answer| answer.job() == created[0]);
    ensure!(all_the_same, "the four callers got different jobs: {answers:?}");
    same!(harness.store_view().await?.0.total, Some(1), "how many jobs are stored");
    Ok(())
}

fn created(answer: &Enqueued) -> Option<&Job> {
    if let Enqueued::Created(job) = answer { Some(job) } else { None }
}
