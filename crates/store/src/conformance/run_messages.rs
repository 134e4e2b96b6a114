//! What a run learns of its jobs: every end, whatever verb ends them, and every redrive.

use super::harness::{Harness, LEASE_MS, QUEUE, decision, failed, failed_run, lease_of, policy, stopped};
use super::run_harness::{all_pending, blob, no_run, said, signal};
use super::{CaseResult, Violation, same};
use crate::{
    AttemptOutcome, ChildEnd, FailedAttempt, Job, MessageBody, NewJob, Parent, Redrive, Refusal, Retention, Run,
    RunRefusal, RunStep, Settlement, Signal, Start,
};
use redrive_policy::{AttemptLimit, Disposition, Span};

fn ended(child: u64, job: &Job, generation: u32, end: ChildEnd) -> MessageBody {
    MessageBody::JobEnded { child, id: job.id, generation, end }
}

/// The message of the only job of a run, of its first generation.
fn first_end(job: &Job, end: ChildEnd) -> [MessageBody; 1] {
    [ended(1, job, 0, end)]
}

/// A run with a job that a worker has.
async fn claimed(harness: &mut Harness<'_>) -> Result<(Run, Job), Violation> {
    let (run, job) = harness.run_with_job().await?;
    let claimed = harness.claim_next(job.id).await?;
    Ok((run, claimed))
}

/// The last failure of a job.
fn last_failure(job: &Job) -> Result<FailedAttempt, Violation> {
    job.failures.last().cloned().ok_or_else(|| Violation::new("the job has no failure"))
}

pub(super) async fn run_learns_of_success_and_its_result(harness: &mut Harness<'_>) -> CaseResult {
    let ((run, job), (other, bare)) = (claimed(harness).await?, claimed(harness).await?);
    harness.advance(10);
    let result = Some(blob("\"ok\""));
    harness.settle(lease_of(&job)?, AttemptOutcome::Done(result.clone())).await??;
    harness.done(&bare).await?;
    same!(harness.bodies(run.id).await?, first_end(&job, ChildEnd::Completed { result }), "with a result");
    same!(harness.bodies(other.id).await?, first_end(&bare, ChildEnd::Completed { result: None }), "without one");
    same!(harness.inbox(run.id).await?[0].at, harness.now(), "when the message was written");
    harness.done(&job).await?;
    same!(harness.inbox(run.id).await?.len(), 1, "how many messages there are after success was reported again");
    let late = harness.settle(lease_of(&job)?, failed(harness.now())).await?;
    same!(late, Err(Refusal::StaleLease), "a failure that is reported later");
    same!(harness.inbox(run.id).await?.len(), 1, "how many messages there are after that");
    Ok(())
}

pub(super) async fn run_learns_of_a_failure_that_stops_the_job(harness: &mut Harness<'_>) -> CaseResult {
    for (disposition, dead) in [(Disposition::Discard, false), (Disposition::DeadLetter, true)] {
        let (run, job) = claimed(harness).await?;
        let job = harness.settle(lease_of(&job)?, stopped(disposition)).await??;
        let end = ChildEnd::Failed { failure: last_failure(&job)?, dead };
        same!(harness.bodies(run.id).await?, first_end(&job, end), "the end by {disposition:?}");
    }
    Ok(())
}

pub(super) async fn run_learns_nothing_of_what_does_not_end_the_job(harness: &mut Harness<'_>) -> CaseResult {
    let new = NewJob { start: Start::Pending, ..harness.job() };
    let (run, job) = harness.run_with_this_job(new).await?;
    harness.activate(job.id).await??;
    let job = harness.claim_next(job.id).await?;
    harness.extend(lease_of(&job)?, None).await??;
    harness.release(&job, 0, 9).await??;
    let job = harness.claim_next(job.id).await?;
    harness.release(&job, 10, 9).await??;
    harness.advance(10);
    harness.promote(9).await?;
    let job = harness.claim_next(job.id).await?;
    let retryable = harness.fail(&job).await?;
    harness.advance(LEASE_MS);
    harness.promote(9).await?;
    let job = harness.claim_next(retryable.id).await?;
    harness.advance(LEASE_MS);
    same!(harness.reclaim(9).await?.len(), 1, "how many runs are overdue");
    same!(harness.pending().await?, [], "what is pending after two failures that are retried");
    harness.advance(LEASE_MS);
    harness.promote(9).await?;
    let job = harness.claim_next(job.id).await?;
    let expected = failed_run(&job, harness.now(), decision(&job, harness.now()));
    harness.fail(&job).await?;
    let end = ChildEnd::Failed { failure: expected, dead: false };
    same!(harness.bodies(run.id).await?, first_end(&job, end), "the end by the third failure");
    Ok(())
}

pub(super) async fn run_learns_of_an_overdue_job_that_is_stopped(harness: &mut Harness<'_>) -> CaseResult {
    let once = policy(AttemptLimit::AtMost(1), 10, Disposition::DeadLetter)?;
    let new = harness.job_with(|spec| spec.policy = once);
    let (run, job) = harness.run_with_this_job(new).await?;
    harness.claim_next(job.id).await?;
    harness.advance(LEASE_MS);
    let reclaimed = harness.reclaim(9).await?;
    same!(reclaimed.len(), 1, "how many runs are overdue");
    let end = ChildEnd::Failed { failure: last_failure(&reclaimed[0])?, dead: true };
    same!(harness.bodies(run.id).await?, first_end(&job, end), "the end");
    same!(harness.inbox(run.id).await?[0].at, harness.now(), "when the message was written");
    Ok(())
}

pub(super) async fn run_learns_of_a_job_that_expires(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(60_000);
    let new = harness.job_with(|spec| spec.expires = Some(expires));
    let (run, job) = harness.run_with_this_job(new).await?;
    let letters = policy(AttemptLimit::AtMost(3), 120_000, Disposition::DeadLetter)?;
    let new = harness.job_with(|spec| {
        (spec.expires, spec.policy, spec.queue) = (Some(expires), letters, "other".into());
    });
    let (other, failing) = harness.run_with_this_job(new).await?;
    let failing = harness.fail(&harness.claim_next(failing.id).await?).await?;
    harness.advance_to(expires);
    same!(harness.promote(9).await?.len(), 2, "how many jobs expire");
    let end = ChildEnd::Expired { last_failure: None, dead: false };
    same!(harness.bodies(run.id).await?, first_end(&job, end), "the end of a job that never failed");
    let end = ChildEnd::Expired { last_failure: Some(last_failure(&failing)?), dead: true };
    same!(harness.bodies(other.id).await?, first_end(&failing, end), "the end of a job that failed before");
    Ok(())
}

pub(super) async fn run_learns_of_a_cancellation(harness: &mut Harness<'_>) -> CaseResult {
    let (run, job) = harness.run_with_job().await?;
    harness.cancel(job.id).await??;
    same!(harness.cancel(job.id).await?.is_err(), true, "whether a second cancellation is refused");
    let end = ChildEnd::Cancelled { last_failure: None };
    same!(harness.bodies(run.id).await?, first_end(&job, end), "the end of a job that never ran");
    let (other, job) = claimed(harness).await?;
    let failing = harness.fail(&job).await?;
    harness.cancel(job.id).await??;
    let end = ChildEnd::Cancelled { last_failure: Some(last_failure(&failing)?) };
    same!(harness.bodies(other.id).await?, first_end(&job, end), "the end of a job that failed before");
    Ok(())
}

pub(super) async fn run_learns_of_a_redrive_and_of_the_next_end(harness: &mut Harness<'_>) -> CaseResult {
    let (run, job) = claimed(harness).await?;
    let failed = harness.settle(lease_of(&job)?, stopped(Disposition::DeadLetter)).await??;
    let redrive = || Redrive { spec: None, unique: None, by: "ada".into() };
    let redriven = harness.redrive(job.id, redrive()).await??;
    same!((redriven.parent, redriven.generation), (job.parent, 1), "the parent and the generation of the job");
    same!(harness.redrive(job.id, redrive()).await?.is_err(), true, "whether a second redrive is refused");
    harness.cancel(job.id).await??;
    harness.redrive(job.id, redrive()).await??;
    harness.done(&harness.claim_next(job.id).await?).await?;
    let again = |generation| MessageBody::JobRedriven { child: 1, id: job.id, generation };
    let expected = [
        ended(1, &job, 0, ChildEnd::Failed { failure: last_failure(&failed)?, dead: true }),
        again(1),
        // Of this generation, no run has failed.
        ended(1, &job, 1, ChildEnd::Cancelled { last_failure: None }),
        again(2),
        ended(1, &job, 2, ChildEnd::Completed { result: None }),
    ];
    same!(harness.bodies(run.id).await?, expected, "the messages");
    Ok(())
}

pub(super) async fn run_learns_of_many_ends_in_one_batch(harness: &mut Harness<'_>) -> CaseResult {
    let new = vec![harness.job(), harness.job(), harness.job()];
    let (run, _) = harness.run_with_jobs(new).await?;
    let plain = harness.enqueue_one().await?;
    let (other, _) = harness.run_with_job().await?;
    let claimed = harness.claim(9).await?;
    let mut settlements = Vec::new();
    for (index, job) in claimed.iter().enumerate() {
        // The second is reported twice, and so refused once.
        for _ in 0..=usize::from(index == 1) {
            let report = if index == 1 { stopped(Disposition::Discard) } else { AttemptOutcome::Done(None) };
            settlements.push(Settlement { lease_ref: lease_of(job)?, report });
        }
    }
    let answers = harness.store().settle(settlements, harness.now()).await?;
    same!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, true, true, true], "the answers");
    let children = |messages: Vec<MessageBody>| -> Vec<u64> {
        let child = |message| if let MessageBody::JobEnded { child, .. } = message { child } else { 0 };
        messages.into_iter().map(child).collect()
    };
    same!(children(harness.bodies(run.id).await?), [1, 2, 3], "which jobs of the first run have ended");
    same!(children(harness.bodies(other.id).await?), [1], "which jobs of the other run have ended");
    same!(harness.get(plain.id).await?.parent, None, "the parent of a job without a run");
    Ok(())
}

pub(super) async fn run_learns_of_jobs_enqueued_for_it(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.waiting_run().await?;
    let parent = Some(Parent { run: run.id, child: 5 });
    let new = NewJob { parent, ..harness.job() };
    let job = harness.enqueue_new(new).await?;
    same!(job.parent, parent, "the parent of the job");
    let orphan = NewJob { parent: Some(Parent { run: no_run(), child: 1 }), ..harness.job() };
    let orphan = harness.enqueue_new(orphan).await?;
    let plain = harness.enqueue_one().await?;
    for id in [job.id, orphan.id, plain.id] {
        harness.cancel(id).await??;
    }
    let end = ended(5, &job, 0, ChildEnd::Cancelled { last_failure: None });
    same!(harness.bodies(run.id).await?, [end], "the messages of the run");
    same!(harness.pending().await?, [run.id], "what is pending");
    same!(harness.get(orphan.id).await?.parent, orphan.parent, "the parent of a job whose run is not stored");
    harness.redrive(orphan.id, Redrive { spec: None, unique: None, by: "ada".into() }).await??;
    harness.done(&harness.claim_next(orphan.id).await?).await?;
    same!(harness.store().run(no_run()).await?, None, "the run that is not stored");
    Ok(())
}

pub(super) async fn run_learns_nothing_when_jobs_are_removed(harness: &mut Harness<'_>) -> CaseResult {
    let new = vec![harness.job(), harness.job()];
    let (run, jobs) = harness.run_with_jobs(new).await?;
    harness.cancel(jobs[0].id).await??;
    harness.cancel(jobs[1].id).await??;
    let inbox = harness.inbox(run.id).await?;
    harness.store().remove(jobs[0].id).await??;
    let all = Retention { finished: Span::ZERO, dead: Span::ZERO };
    same!(harness.store().prune(all, 9, harness.now()).await?, 1, "how many jobs are pruned");
    same!(harness.inbox(run.id).await?, inbox, "the messages, which stay");
    same!(harness.run(run.id).await?, run, "the run");
    let gone = RunStep { cancelled: vec![jobs[0].id], ..RunStep::of(&run) };
    same!(harness.stepped(gone).await?.transitions, [], "a cancellation of a job that is gone");
    Ok(())
}

pub(super) async fn run_with_a_full_inbox_takes_no_signals_from_outside(harness: &mut Harness<'_>) -> CaseResult {
    let (run, job) = harness.run_with_job().await?;
    let sender = harness.new_started().await?;
    let small = || Signal { name: "s".into(), body: blob("") };
    let signals = vec![(run.id, small()); crate::run::INBOX_MESSAGES - 1];
    let sender = harness.stepped(RunStep { signals, ..RunStep::of(&sender) }).await?.run;
    same!(harness.signal(run.id, "last").await?, run, "the last signal that fits");
    let full = harness.store().signal(run.id, signal("more"), harness.now()).await?;
    same!(full, Err(RunRefusal::InboxFull(crate::run::INBOX_MESSAGES)), "one more");
    let none = harness.store().signal(no_run(), signal("a"), harness.now()).await?;
    same!(none, Err(RunRefusal::NotFound), "a signal to a run that is not stored");
    harness.cancel(job.id).await??;
    harness.stepped(RunStep { signals: vec![(run.id, small())], ..RunStep::of(&sender) }).await?;
    let inbox = harness.inbox(run.id).await?;
    same!(inbox.len(), crate::run::INBOX_MESSAGES + 2, "how many messages there are, with those of jobs and runs");
    let consumed: Vec<u64> = inbox[..3].iter().map(|message| message.number).collect();
    harness.stepped(RunStep { consumed, ..RunStep::of(&run) }).await?;
    harness.signal(run.id, "again").await?;
    let last = harness.inbox(run.id).await?.pop().map(|message| message.body);
    same!(last, Some(said("again")), "the last message, once there is room");
    let some = crate::PendingRuns { messages: 2, ..all_pending() };
    same!(harness.pending_with(some).await?[0].messages, inbox[3..5], "the first messages that are left");
    same!(harness.claim_with(harness.claim_request(&[QUEUE], 1)).await?, [], "the job that was cancelled");
    Ok(())
}
