//! Steps of runs: what they write, and when they are refused.

use super::harness::Harness;
use super::run_harness::{VERSION, all_pending, blob, no_run, run_ids, said, signal};
use super::{CaseResult, Violation, same};
use crate::{MessageBody, NewRun, Parent, Run, RunEnd, RunFilter, RunRefusal, RunStep};
use redrive_policy::Span;

pub(super) async fn run_step_writes_the_run(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.new_started().await?;
    harness.advance(10);
    let timer = Some(harness.later(100));
    let (jobs, runs) = (vec![(1, harness.job()), (2, harness.job())], vec![harness.new_run()]);
    let step = RunStep { version: VERSION - 1, state: blob("next"), timer, jobs, runs, ..RunStep::of(&run) };
    let advanced = harness.stepped(step).await?;
    let expected = Run {
        version: VERSION - 1,
        state: blob("next"),
        revision: 1,
        timer,
        children: 3,
        advanced: harness.now(),
        ..run.clone()
    };
    same!(advanced.run, expected, "the run after the step");
    same!(harness.run(run.id).await?, expected, "the run, read back");
    let again = harness.stepped(RunStep::of(&expected)).await?.run;
    same!(again, Run { revision: 2, ..expected }, "the run after a step that changes nothing");
    Ok(())
}

pub(super) async fn run_step_with_an_old_revision_changes_nothing(harness: &mut Harness<'_>) -> CaseResult {
    let (run, job) = harness.run_with_job().await?;
    let other = harness.waiting_run().await?;
    harness.signal(run.id, "a").await?;
    let newer = harness.stepped(RunStep::of(&run)).await?.run;
    let (jobs, runs) = (harness.store_view().await?, harness.runs_view().await?);
    let consumed = harness.inbox(run.id).await?.iter().map(|message| message.number).collect();
    harness.advance(10);
    let whole = RunStep {
        state: blob("lost"),
        timer: Some(harness.now()),
        end: Some((true, blob("lost"))),
        consumed,
        jobs: vec![(2, harness.job())],
        cancelled: vec![job.id],
        runs: vec![harness.new_run()],
        signals: vec![(other.id, signal("b"))],
        ..RunStep::of(&run)
    };
    for revision in [run.revision, newer.revision + 1] {
        let refused = harness.step(RunStep { revision, ..whole.clone() }).await?;
        same!(refused, Err(RunRefusal::Changed(newer.revision)), "a step of revision {revision}");
    }
    let unknown = harness.step(RunStep { id: no_run(), ..whole }).await?;
    same!(unknown, Err(RunRefusal::NotFound), "a step of a run that is not stored");
    same!(harness.store_view().await?, jobs, "the jobs");
    same!(harness.runs_view().await?, runs, "the runs");
    Ok(())
}

pub(super) async fn run_steps_are_answered_separately_and_in_order(harness: &mut Harness<'_>) -> CaseResult {
    let runs = [harness.new_started().await?, harness.new_started().await?, harness.new_started().await?];
    let state = |run: &Run, state: &str| RunStep { state: blob(state), ..RunStep::of(run) };
    let second = RunStep { revision: 1, ..state(&runs[2], "second") };
    let steps = vec![
        state(&runs[2], "first"),
        RunStep { revision: 9, ..state(&runs[0], "lost") },
        second,
        RunStep { id: no_run(), ..state(&runs[0], "lost") },
        state(&runs[1], "other"),
        state(&runs[2], "late"),
    ];
    let answers = harness.store().advance(steps, harness.now()).await?;
    let seen: Vec<_> = answers.into_iter().map(|answer| answer.map(|done| (done.run.id, done.run.state))).collect();
    let expected = [
        Ok((runs[2].id, blob("first"))),
        Err(RunRefusal::Changed(0)),
        Ok((runs[2].id, blob("second"))),
        Err(RunRefusal::NotFound),
        Ok((runs[1].id, blob("other"))),
        Err(RunRefusal::Changed(2)),
    ];
    same!(seen, expected, "the answers");
    same!(harness.run(runs[0].id).await?, runs[0], "the run whose step was refused");
    let stored = harness.run(runs[2].id).await?;
    same!((stored.state, stored.revision), (blob("second"), 2), "the run with two steps");
    same!(harness.store().advance(Vec::new(), harness.now()).await?, [], "no steps");
    Ok(())
}

pub(super) async fn run_step_after_another_in_one_batch_sees_what_that_did(harness: &mut Harness<'_>) -> CaseResult {
    let (first, second) = (harness.new_started().await?, harness.new_started().await?);
    let (new, foreign) = (harness.job(), harness.job());
    let child = NewRun { parent: Some(Parent { run: first.id, child: 3 }), depth: 1, ..harness.new_run() };
    let steps = vec![
        RunStep {
            jobs: vec![(1, new.clone()), (2, foreign.clone())],
            runs: vec![child.clone()],
            signals: vec![(second.id, signal("a"))],
            ..RunStep::of(&first)
        },
        RunStep { jobs: vec![(1, foreign.clone())], ..RunStep::of(&second) },
        RunStep { jobs: vec![(1, new.clone())], revision: 1, cancelled: vec![foreign.id], ..RunStep::of(&first) },
        RunStep { id: child.id, end: Some((true, blob("ok"))), revision: 0, ..RunStep::of(&first) },
    ];
    let mut answers = harness.store().advance(steps, harness.now()).await?.into_iter();
    let mut next = || answers.next().ok_or_else(|| Violation::new("too few answers"));
    let done = next()??;
    same!(done.transitions.len(), 2, "the jobs of the first step");
    let mut pending = vec![second.id, child.id];
    pending.sort_unstable();
    same!(done.pending, pending, "what is pending because of the first step");
    same!(next()?, Err(RunRefusal::JobIdTaken(foreign.id)), "a job that an earlier step has enqueued for another run");
    let done = next()??;
    same!(done.transitions.len(), 1, "only the cancellation: the job is there already");
    same!(done.pending, [first.id], "what is pending because of the cancellation");
    let done = next()??;
    same!(done.pending, [first.id], "what is pending because a run that was started just now has ended");
    same!(harness.inbox(first.id).await?.len(), 2, "how many messages the first run has");
    same!(harness.bodies(second.id).await?, [said("a")], "the messages of the second run");
    Ok(())
}

pub(super) async fn run_step_consumes_its_own_messages_only(harness: &mut Harness<'_>) -> CaseResult {
    let (run, other) = (harness.waiting_run().await?, harness.waiting_run().await?);
    for name in ["a", "b", "c"] {
        harness.signal(run.id, name).await?;
        harness.signal(other.id, name).await?;
    }
    let (mine, others) = (harness.inbox(run.id).await?, harness.inbox(other.id).await?);
    let unknown = u64::MAX >> 1;
    let consumed = vec![mine[1].number, others[0].number, unknown, mine[1].number];
    harness.stepped(RunStep { consumed, ..RunStep::of(&run) }).await?;
    same!(harness.inbox(run.id).await?, [mine[0].clone(), mine[2].clone()], "the messages that were not read");
    same!(harness.inbox(other.id).await?, others, "the messages of another run");
    Ok(())
}

pub(super) async fn run_end_is_stored_and_clears_the_timer(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.new_started().await?;
    harness.advance(10);
    let (timer, end) = (Some(harness.now()), Some((false, blob("no"))));
    let advanced = harness.stepped(RunStep { timer, end, ..RunStep::of(&run) }).await?;
    let at = harness.now();
    let expected =
        Run { revision: 1, advanced: at, end: Some(RunEnd { at, succeeded: false, result: blob("no") }), ..run };
    same!(advanced.run, expected, "the run that has ended");
    same!(advanced.pending, [], "what is pending");
    harness.advance(10);
    let same_end = harness.stepped(RunStep::of(&expected)).await?.run;
    let expected = Run { revision: 2, advanced: harness.now(), ..expected };
    same!(same_end, expected, "a run that had ended in the same way ended then");
    let end = Some((true, blob("no")));
    let other_end = harness.stepped(RunStep { end, ..RunStep::of(&expected) }).await?.run;
    let end = RunEnd { at: harness.now(), succeeded: true, result: blob("no") };
    same!(other_end.end, Some(end), "a run that had ended in another way ends now");
    same!(harness.run(other_end.id).await?, other_end, "the run, read back");
    Ok(())
}

pub(super) async fn run_that_has_ended_goes_on(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.new_started().await?;
    let ended = harness.stepped(RunStep { end: Some((true, blob("1"))), ..RunStep::of(&run) }).await?.run;
    same!(harness.pending().await?, [], "a run that has ended");
    harness.advance(10);
    same!(harness.signal(run.id, "resume").await?, ended, "the run that got a signal after its end");
    let pending = harness.pending_with(all_pending()).await?;
    same!(run_ids(&pending), [run.id], "a run with a message after its end");
    let consumed = pending[0].messages.iter().map(|message| message.number).collect();
    let jobs = vec![(1, harness.job())];
    let step = RunStep { consumed, jobs, end: None, timer: Some(harness.later(5)), ..RunStep::of(&ended) };
    let goes_on = harness.stepped(step).await?;
    same!((&goes_on.run.end, goes_on.run.timer), (&None, Some(harness.later(5))), "the end and the timer");
    same!(goes_on.transitions.len(), 1, "how many jobs it has enqueued");
    let going_on = RunFilter { ended: Some(false), ..RunFilter::default() };
    same!(harness.listed_runs(going_on).await?, [run.id], "the runs that go on");
    let pruned = harness.store().prune_runs(Span::ZERO, 9, harness.now()).await?;
    same!(pruned, 0, "how many runs are pruned");
    Ok(())
}

pub(super) async fn run_end_is_told_to_the_run_that_started_it(harness: &mut Harness<'_>) -> CaseResult {
    let (parent, child) = harness.parent_and_child().await?;
    let told =
        |succeeded, result: &str| MessageBody::RunEnded { child: 7, id: child.id, succeeded, result: blob(result) };
    let end = |run: &Run, succeeded, result: &str| RunStep { end: Some((succeeded, blob(result))), ..RunStep::of(run) };
    let goes_on = harness.stepped(RunStep::of(&child)).await?;
    same!(goes_on.pending, [], "what is pending because of a step that ends nothing");
    let ended = harness.stepped(end(&goes_on.run, true, "1")).await?;
    same!(ended.pending, [parent.id], "what is pending because of the end");
    let ended = harness.stepped(RunStep::of(&ended.run)).await?;
    same!(harness.bodies(parent.id).await?, [told(true, "1")], "the end, told once");
    let ended = harness.stepped(end(&ended.run, false, "2")).await?.run;
    let resumed = harness.stepped(RunStep { end: None, ..RunStep::of(&ended) }).await?.run;
    let ended = harness.stepped(end(&resumed, false, "2")).await?.run;
    let all = [told(true, "1"), told(false, "2"), told(false, "2")];
    same!(harness.bodies(parent.id).await?, all, "another end, and the end after it went on");
    let consumed = harness.inbox(parent.id).await?.iter().map(|message| message.number).collect();
    let over = RunStep { consumed, end: Some((true, blob(""))), ..RunStep::of(&harness.run(parent.id).await?) };
    harness.stepped(over).await?;
    same!(harness.store().prune_runs(Span::ZERO, 1, harness.now()).await?, 1, "the parent, pruned");
    same!(harness.store().run(parent.id).await?, None, "the parent, which is older");
    let ended = harness.stepped(end(&ended, true, "3")).await?;
    same!(ended.pending, [], "what is pending because of an end that there is no run to tell");
    Ok(())
}
