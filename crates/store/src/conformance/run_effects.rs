//! What a step of a run does to jobs and to other runs.

use super::harness::{Harness, QUEUE, ids};
use super::run_harness::{blob, no_job, no_run, said, signal};
use super::{CaseResult, same};
use crate::{
    ChildEnd, EventKind, Job, JobId, MessageBody, NewJob, NewRun, Parent, Run, RunRefusal, RunStep, Start, State,
    Transition,
};

fn parent(run: &Run, child: u64) -> Option<Parent> {
    Some(Parent { run: run.id, child })
}

pub(super) async fn run_step_enqueues_jobs_of_the_run(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.new_started().await?;
    harness.advance(10);
    let due = harness.later(500);
    let keyed = NewJob { idempotency_key: Some("k".into()), ..harness.job_with(|spec| spec.queue = "new".into()) };
    let later = NewJob { start: Start::Scheduled(due), ..harness.job() };
    let jobs = vec![(300, keyed.clone()), (2, later.clone())];
    let advanced = harness.stepped(RunStep { jobs, ..RunStep::of(&run) }).await?;
    let stored = [harness.get(keyed.id).await?, harness.get(later.id).await?];
    let enqueued = |job: &Job| Transition::new(job.clone(), EventKind::Enqueued, None, harness.now());
    same!(advanced.transitions, [enqueued(&stored[0]), enqueued(&stored[1])], "what happened to jobs");
    same!([stored[0].parent, stored[1].parent], [parent(&run, 300), parent(&run, 2)], "the parents of the jobs");
    same!((stored[0].state, stored[0].times.created), (State::Available, harness.now()), "the first");
    same!((stored[1].state, stored[1].due), (State::Scheduled, Some(due)), "the second");
    same!(&stored[0].spec, &keyed.spec, "the specification of the first");
    let queues: Vec<_> =
        harness.store().queues().await?.into_iter().map(|queue| (queue.name.clone(), queue.jobs())).collect();
    same!(queues, [(QUEUE.into(), 1), ("new".into(), 1)], "the queues");
    same!(harness.next_wake().await?, Some(due), "the next wake");
    let with_key = NewJob { idempotency_key: Some("k".into()), ..harness.job() };
    same!(harness.enqueue_new(with_key).await?.parent, None, "a job with the key, which the job of the run has not");
    let claimed = harness.claim_with(harness.claim_request(&["new"], 1)).await?;
    same!(ids(&claimed), [keyed.id], "the first, claimed");
    same!(claimed[0].parent, parent(&run, 300), "the parent of the job that was claimed");
    Ok(())
}

pub(super) async fn run_step_with_the_id_of_another_job_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    let (run, mine) = harness.run_with_job().await?;
    let (_, others) = harness.run_with_job().await?;
    let plain = harness.enqueue_one().await?;
    let ended = harness.job_in(State::Cancelled).await?;
    harness.advance(10);
    let (jobs, runs) = (harness.store_view().await?, harness.runs_view().await?);
    // The fourth is a job of this run, and yet another child.
    for (child, id) in [(2, plain.id), (2, ended.id), (1, others.id), (2, mine.id)] {
        let taken = NewJob { id, ..harness.job() };
        let step = RunStep {
            state: blob("lost"),
            jobs: vec![(9, harness.job()), (child, taken)],
            runs: vec![harness.new_run()],
            ..RunStep::of(&run)
        };
        same!(harness.step(step).await?, Err(RunRefusal::JobIdTaken(id)), "a taken id");
    }
    let twice = harness.job();
    let step = RunStep { jobs: vec![(2, twice.clone()), (2, twice.clone())], ..RunStep::of(&run) };
    same!(harness.step(step).await?, Err(RunRefusal::JobIdTaken(twice.id)), "the same id twice in one step");
    same!(harness.store_view().await?, jobs, "the jobs");
    same!(harness.runs_view().await?, runs, "the runs");
    Ok(())
}

pub(super) async fn run_step_with_a_job_that_is_there_leaves_it(harness: &mut Harness<'_>) -> CaseResult {
    let (run, job) = harness.run_with_job().await?;
    let done = harness.done(&harness.claim_next(job.id).await?).await?;
    let (again, new) = (NewJob { id: job.id, ..harness.job() }, harness.job());
    let jobs = vec![(1, again), (2, new.clone())];
    let advanced = harness.stepped(RunStep { jobs, ..RunStep::of(&run) }).await?;
    let enqueued: Vec<JobId> = advanced.transitions.iter().map(|transition| transition.job.id).collect();
    same!(enqueued, [new.id], "what was enqueued");
    same!(harness.get(job.id).await?, done, "the job that was there");
    same!(advanced.run.children, 3, "how many jobs and runs the run has asked for");
    Ok(())
}

pub(super) async fn run_step_cancels_jobs_of_the_run_only(harness: &mut Harness<'_>) -> CaseResult {
    let new = vec![harness.job(), harness.job(), harness.job()];
    let (run, jobs) = harness.run_with_jobs(new).await?;
    let active = harness.claim_next(jobs[0].id).await?;
    let done = harness.done(&harness.claim_next(jobs[1].id).await?).await?;
    let (_, others) = harness.run_with_job().await?;
    let plain = harness.enqueue_one().await?;
    let at_once = harness.job();
    let read = harness.inbox(run.id).await?.iter().map(|message| message.number).collect();
    harness.advance(10);
    let cancelled = vec![others.id, active.id, done.id, no_job(), plain.id, at_once.id, jobs[2].id, active.id];
    let step = RunStep { consumed: read, jobs: vec![(4, at_once.clone())], cancelled, ..RunStep::of(&run) };
    let advanced = harness.stepped(step).await?;
    let seen: Vec<_> = advanced.transitions.iter().map(|one| (one.event, one.from, one.job.id)).collect();
    let expected = [
        (EventKind::Enqueued, None, at_once.id),
        (EventKind::Cancelled, Some(State::Active), active.id),
        (EventKind::Cancelled, Some(State::Available), at_once.id),
        (EventKind::Cancelled, Some(State::Available), jobs[2].id),
    ];
    same!(seen, expected, "what happened to jobs");
    for transition in &advanced.transitions[1..] {
        same!(harness.get(transition.job.id).await?, transition.job, "a job as the step left it");
        same!(transition.job.times.finished, Some(harness.now()), "when it ended");
    }
    same!(harness.get(done.id).await?, done, "a job that had ended");
    same!(harness.get(others.id).await?, others, "a job of another run");
    same!(harness.get(plain.id).await?, plain, "a job without a run");
    let told =
        |child, id| MessageBody::JobEnded { child, id, generation: 0, end: ChildEnd::Cancelled { last_failure: None } };
    let expected = [told(1, active.id), told(4, at_once.id), told(3, jobs[2].id)];
    same!(harness.bodies(run.id).await?, expected, "the messages of the run");
    same!(advanced.pending, [run.id], "what is pending because of the step");
    Ok(())
}

pub(super) async fn run_step_withdraws_jobs_that_no_worker_has(harness: &mut Harness<'_>) -> CaseResult {
    let new = vec![harness.job(), harness.job(), harness.job()];
    let (run, jobs) = harness.run_with_jobs(new).await?;
    let active = harness.claim_next(jobs[0].id).await?;
    let retryable = harness.fail(&harness.claim_next(jobs[1].id).await?).await?;
    let (_, others) = harness.run_with_job().await?;
    harness.advance(10);
    let withdrawn = vec![others.id, active.id, no_job(), retryable.id, jobs[2].id];
    let step = RunStep { cancelled: vec![jobs[2].id], withdrawn, ..RunStep::of(&run) };
    let seen: Vec<_> =
        harness.stepped(step).await?.transitions.into_iter().map(|one| (one.event, one.from, one.job.id)).collect();
    let expected = [
        (EventKind::Cancelled, Some(State::Available), jobs[2].id),
        (EventKind::Cancelled, Some(State::Retryable), retryable.id),
    ];
    same!(seen, expected, "what happened to jobs");
    same!(harness.get(active.id).await?, active, "a job that a worker has");
    same!(harness.get(others.id).await?, others, "a job of another run");
    same!(harness.inbox(run.id).await?.len(), 2, "how many messages the run has");
    Ok(())
}

pub(super) async fn run_step_starts_runs(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.new_started().await?;
    harness.advance(10);
    let child = NewRun { parent: parent(&run, 1), depth: 1, ..harness.new_run() };
    let keyed = NewRun { key: Some("k".into()), program: "other".into(), ..harness.new_run() };
    let runs = vec![keyed.clone(), child.clone()];
    let advanced = harness.stepped(RunStep { runs: runs.clone(), ..RunStep::of(&run) }).await?;
    same!(advanced.pending, [child.id, keyed.id], "what is pending because of the step");
    let stored = harness.run(child.id).await?;
    let seen = (stored.created, stored.advanced, stored.parent, stored.revision, stored.depth, stored.seed);
    same!(seen, (harness.now(), harness.now(), parent(&run, 1), 0, 1, child.seed), "the run that was started");
    same!(harness.run(keyed.id).await?.key, None, "the key of a run that a step has started");
    same!(harness.pending().await?, [child.id], "what is pending of the program");
    let stepped = harness.stepped(RunStep::of(&stored)).await?.run;
    let again = harness.stepped(RunStep { runs, ..RunStep::of(&advanced.run) }).await?;
    same!(harness.run(child.id).await?, stepped, "a run that was there already");
    same!(again.pending, [keyed.id], "what is pending because of the second step");
    Ok(())
}

pub(super) async fn run_step_with_the_id_of_another_run_is_refused(harness: &mut Harness<'_>) -> CaseResult {
    let (run, child) = harness.parent_and_child().await?;
    let other = harness.waiting_run().await?;
    harness.advance(10);
    let (jobs, runs) = (harness.store_view().await?, harness.runs_view().await?);
    for (number, id) in [(8, child.id), (8, other.id), (8, run.id)] {
        let new = NewRun { id, parent: parent(&run, number), ..harness.new_run() };
        let step = RunStep {
            state: blob("lost"),
            jobs: vec![(9, harness.job())],
            runs: vec![harness.new_run(), new],
            signals: vec![(other.id, signal("lost"))],
            ..RunStep::of(&run)
        };
        same!(harness.step(step).await?, Err(RunRefusal::RunIdTaken(id)), "a taken id");
    }
    let twice = NewRun { parent: parent(&run, 8), ..harness.new_run() };
    let step = RunStep { runs: vec![twice.clone(), twice.clone()], ..RunStep::of(&run) };
    same!(harness.step(step).await?, Err(RunRefusal::RunIdTaken(twice.id)), "the same id twice in one step");
    same!(harness.store_view().await?, jobs, "the jobs");
    let job = harness.enqueue_one().await?;
    let both = RunStep {
        jobs: vec![(1, NewJob { id: job.id, ..harness.job() })],
        runs: vec![NewRun { id: other.id, ..twice }],
        ..RunStep::of(&run)
    };
    same!(harness.step(both).await?, Err(RunRefusal::JobIdTaken(job.id)), "both a job and a run: the job is named");
    same!(harness.runs_view().await?, runs, "the runs");
    Ok(())
}

pub(super) async fn run_step_sends_signals(harness: &mut Harness<'_>) -> CaseResult {
    let (run, other) = (harness.new_started().await?, harness.waiting_run().await?);
    let new = NewRun { parent: parent(&run, 1), ..harness.new_run() };
    harness.advance(10);
    let signals = vec![
        (other.id, signal("a")),
        (no_run(), signal("lost")),
        (new.id, signal("b")),
        (run.id, signal("c")),
        (other.id, signal("d")),
    ];
    let advanced = harness.stepped(RunStep { runs: vec![new.clone()], signals, ..RunStep::of(&run) }).await?;
    let mut pending = vec![run.id, other.id, new.id];
    pending.sort_unstable();
    same!(advanced.pending, pending, "what is pending because of the step");
    same!(harness.bodies(other.id).await?, [said("a"), said("d")], "the messages of another run");
    same!(harness.bodies(new.id).await?, [said("b")], "the messages of a run that the step has started");
    same!(harness.bodies(run.id).await?, [said("c")], "the messages of the run itself");
    same!(harness.inbox(run.id).await?[0].at, harness.now(), "when they were written");
    same!(harness.store().run(no_run()).await?, None, "a run that is not stored");
    Ok(())
}
