//! Reading, pruning and reopening runs; and several callers at the same time.

use super::harness::{Harness, QUEUE, START, lease_of, stopped};
use super::run_harness::{PROGRAM, blob, no_run, programs, said};
use super::{CaseResult, Violation, same};
use crate::{
    AttemptOutcome, MessageBody, NewRun, Parent, Run, RunFilter, RunKeys, RunRefusal, RunStep, Settlement, StartRefusal,
};
use redrive_policy::{Disposition, Span};

/// A run of a program that has ended.
async fn ended(harness: &mut Harness<'_>, program: &str) -> Result<Run, Violation> {
    let new = NewRun { program: program.into(), ..harness.new_run() };
    let run = harness.start_new(new).await?;
    Ok(harness.stepped(RunStep { end: Some((true, blob("1"))), ..RunStep::of(&run) }).await?.run)
}

pub(super) async fn runs_are_listed_newest_first_by_what_fits(harness: &mut Harness<'_>) -> CaseResult {
    let a = harness.new_started().await?.id;
    let b = ended(harness, "other").await?.id;
    let c = ended(harness, PROGRAM).await?.id;
    let d = harness.waiting_run().await?.id;
    same!(harness.listed_runs(RunFilter::default()).await?, [d, c, b, a], "all runs");
    let program = |program: &str| Some(program.into());
    for (filter, expected) in [
        (RunFilter { program: program(PROGRAM), ..RunFilter::default() }, vec![d, c, a]),
        (RunFilter { program: program("none"), ..RunFilter::default() }, vec![]),
        (RunFilter { ended: Some(true), ..RunFilter::default() }, vec![c, b]),
        (RunFilter { ended: Some(false), ..RunFilter::default() }, vec![d, a]),
        (RunFilter { after: Some(d), ..RunFilter::default() }, vec![c, b, a]),
        (RunFilter { after: Some(no_run()), ..RunFilter::default() }, vec![d, c, b, a]),
        (RunFilter { program: program(PROGRAM), ended: Some(true), after: Some(d), keys: None }, vec![c]),
        (RunFilter { program: program(PROGRAM), after: Some(c), ..RunFilter::default() }, vec![a]),
    ] {
        same!(harness.listed_runs(filter.clone()).await?, expected, "{filter:?}");
    }
    let some = harness.store().runs(RunFilter { after: Some(d), ..RunFilter::default() }, 2).await?;
    same!(some, [harness.run(c).await?, harness.run(b).await?], "the first two after the newest");
    same!(harness.store().runs(RunFilter::default(), 0).await?, [], "none");
    Ok(())
}

pub(super) async fn runs_are_listed_by_their_keys(harness: &mut Harness<'_>) -> CaseResult {
    let long = format!("a:{}", "z".repeat(700));
    // In the order of their bytes: longer than what an index takes, and beyond ASCII too.
    let keys = ["a", "a:", "a:b", "a:bb", "a:c", &long, &format!("{long}y"), "a:ü", "b:a"];
    let mut ids = Vec::new();
    for key in keys.iter().rev() {
        let new = NewRun { key: Some((*key).into()), ..harness.new_run() };
        ids.insert(0, harness.start_new(new).await?.id);
    }
    harness.new_started().await?;
    let other = NewRun { program: "other".into(), key: Some("a:other".into()), ..harness.new_run() };
    let other = harness.start_new(other).await?;
    let gone = NewRun { key: Some("a:gone".into()), ..harness.new_run() };
    let gone = harness.start_new(gone).await?;
    harness.stepped(RunStep { end: Some((true, blob("1"))), ..RunStep::of(&gone) }).await?;
    let keyed = |prefix: &str, after: Option<&str>| RunFilter {
        program: Some(PROGRAM.into()),
        keys: Some(RunKeys { prefix: prefix.into(), after: after.map(Into::into) }),
        ..RunFilter::default()
    };
    same!(harness.listed_runs(keyed("a:", None)).await?, ids[1..8], "all keys that begin alike");
    same!(harness.listed_runs(keyed("a:", Some("a:b"))).await?, ids[3..8], "those behind one of them");
    same!(harness.listed_runs(keyed("a:", Some("a:d"))).await?, ids[5..8], "those behind a key that none has");
    same!(harness.listed_runs(keyed("a:", Some(&long))).await?, ids[6..8], "those behind a long key");
    same!(harness.listed_runs(keyed("a:", Some("0"))).await?, ids[1..8], "those behind what comes before all");
    same!(harness.listed_runs(keyed("a:", Some("b"))).await?, [], "those behind all");
    same!(harness.listed_runs(keyed("c", None)).await?, [], "keys that none has");
    same!(harness.listed_runs(keyed("", None)).await?, ids, "all keys");
    let all = RunFilter { program: None, ..keyed("a:o", None) };
    same!(harness.listed_runs(all).await?, [other.id], "of any program");
    let ended = RunFilter { ended: Some(true), ..keyed("", None) };
    same!(harness.listed_runs(ended).await?, [], "a run that has ended has no key");
    let some = harness.store().runs(keyed("a:", Some("a:")), 2).await?;
    same!(some.iter().map(|run| run.id).collect::<Vec<_>>(), ids[2..4], "at most two");
    Ok(())
}

pub(super) async fn runs_that_have_ended_are_pruned(harness: &mut Harness<'_>) -> CaseResult {
    let day = Span::from_millis(1_000);
    let late = harness.new_started().await?;
    let (told, first) = (ended(harness, PROGRAM).await?, ended(harness, PROGRAM).await?);
    let second = ended(harness, "other").await?;
    harness.signal(told.id, "a").await?;
    harness.waiting_run().await?;
    harness.advance(1);
    let late = harness.stepped(RunStep { end: Some((false, blob("1"))), ..RunStep::of(&late) }).await?.run;
    harness.advance_to_just_before(second.created.after(day));
    same!(harness.store().prune_runs(day, 9, harness.now()).await?, 0, "a microsecond early");
    harness.advance_to(second.created.after(day));
    same!(harness.store().prune_runs(day, 0, harness.now()).await?, 0, "at most none");
    same!(harness.store().prune_runs(day, 1, harness.now()).await?, 1, "at most one");
    same!(harness.store().run(first.id).await?, None, "the first by id of those that ended first");
    same!(harness.store().prune_runs(day, 9, harness.now()).await?, 1, "the other one in time");
    same!(harness.store().run(second.id).await?, None, "the second");
    harness.advance(1);
    same!(harness.store().prune_runs(day, 9, harness.now()).await?, 1, "one that ended later");
    same!(harness.store().run(late.id).await?, None, "the one that ended later");
    same!(harness.run(told.id).await?, told, "a run that has ended, and has a message");
    same!(harness.listed_runs(RunFilter::default()).await?.len(), 2, "how many runs are left");
    let again = NewRun { id: first.id, ..harness.new_run() };
    let again = harness.start_new(again).await?;
    same!(harness.run(first.id).await?, again, "a run with an id that is free again");
    same!(harness.step(RunStep::of(&second)).await?, Err(RunRefusal::NotFound), "a step of a run that is gone");
    Ok(())
}

pub(super) async fn restart_keeps_runs_and_their_messages(harness: &mut Harness<'_>) -> CaseResult {
    let (parent, child) = harness.parent_and_child().await?;
    let end = Some((false, blob("{\"message\":\"no\"}")));
    let child = harness.stepped(RunStep { end, ..RunStep::of(&child) }).await?.run;
    let keyed = NewRun { key: Some("k".into()), ..harness.new_run() };
    let keyed = harness.start_new(keyed).await?;
    let timer = Some(harness.later(500));
    let keyed = harness.stepped(RunStep { timer, ..RunStep::of(&keyed) }).await?.run;
    let (run, job) = harness.run_with_job().await?;
    let claimed = harness.claim_next(job.id).await?;
    harness.settle(lease_of(&claimed)?, stopped(Disposition::Discard)).await??;
    harness.signal(run.id, "a").await?;
    harness.signal(run.id, "b").await?;
    let read = vec![harness.inbox(run.id).await?[1].number];
    let run = harness.stepped(RunStep { consumed: read, ..RunStep::of(&run) }).await?.run;
    harness.advance(1);
    let kept = ended(harness, PROGRAM).await?;
    same!(harness.store().prune_runs(Span::ZERO, 1, harness.now()).await?, 1, "one run, pruned");
    let (jobs, runs) = (harness.store_view().await?, harness.runs_view().await?);
    harness.restart();
    same!(harness.store_view().await?, jobs, "the jobs");
    same!(harness.runs_view().await?, runs, "the runs");
    same!(harness.store().run(child.id).await?, None, "the run that was pruned");
    same!(harness.run(kept.id).await?, kept, "the run that has ended and was not pruned");
    same!(harness.store().run_of_key("k".into()).await?, Some(keyed.clone()), "the run of the key");
    let again = NewRun { key: Some("k".into()), ..harness.new_run() };
    let refused = harness.start(vec![again]).await?;
    same!(refused, Err(StartRefusal::KeyTaken(0, keyed.id)), "the key, which is taken");
    same!(harness.get(job.id).await?.parent, Some(Parent { run: run.id, child: 1 }), "the parent of the job");
    harness.signal(run.id, "c").await?;
    same!(harness.bodies(run.id).await?[1..], [said("b"), said("c")], "the messages, with one more");
    same!(harness.bodies(parent.id).await?.len(), 1, "how many messages the parent has");
    let refused = harness.step(RunStep { revision: 0, ..RunStep::of(&run) }).await?;
    same!(refused, Err(RunRefusal::Changed(2)), "the revision");
    Ok(())
}

pub(super) async fn restart_keeps_when_runs_are_pending(harness: &mut Harness<'_>) -> CaseResult {
    let timed = harness.new_started().await?;
    let timer = harness.later(100);
    harness.stepped(RunStep { timer: Some(timer), ..RunStep::of(&timed) }).await?;
    harness.restart();
    same!(harness.store().next_run(programs()).await?, Some(timer), "when the next run is pending");
    harness.advance_to(timer);
    same!(harness.pending().await?, [timed.id], "what is pending by then");
    let new = harness.new_started().await?;
    harness.restart();
    same!(harness.pending().await?, [timed.id, new.id], "what is pending with a new run");
    Ok(())
}

pub(super) async fn race_of_two_steps_of_one_run_has_one_winner(harness: &mut Harness<'_>) -> CaseResult {
    for _ in 0..20 {
        let run = harness.new_started().await?;
        let jobs = [harness.job(), harness.job()];
        let answers = harness.together(2, |index, store| {
            let jobs = vec![(1, jobs[index].clone())];
            store.advance(vec![RunStep { jobs, ..RunStep::of(&run) }], START)
        })?;
        let answers: Vec<_> = answers.into_iter().flatten().collect();
        let lost = answers.iter().filter(|answer| **answer == Err(RunRefusal::Changed(1))).count();
        let won: Vec<_> = answers.into_iter().flatten().collect();
        same!((won.len(), lost), (1, 1), "how many steps won and lost");
        same!(harness.run(run.id).await?, won[0].run, "the run as the winner left it");
        let stored = [harness.store().get(jobs[0].id).await?, harness.store().get(jobs[1].id).await?];
        let stored: Vec<_> = stored.into_iter().flatten().collect();
        same!(stored, [won[0].transitions[0].job.clone()], "the jobs that are stored");
    }
    Ok(())
}

pub(super) async fn race_of_steps_in_opposite_order_ends(harness: &mut Harness<'_>) -> CaseResult {
    for _ in 0..10 {
        let runs = [harness.new_started().await?, harness.new_started().await?, harness.new_started().await?];
        let answers = harness.together(4, |index, store| {
            let mut steps: Vec<RunStep> = runs.iter().map(RunStep::of).collect();
            if index % 2 == 1 {
                steps.reverse();
            }
            store.advance(steps, START)
        })?;
        let won = answers.into_iter().flatten().filter(Result::is_ok).count();
        same!(won, 3, "how many steps won");
    }
    Ok(())
}

pub(super) async fn race_of_ends_of_many_jobs_of_one_run_loses_no_message(harness: &mut Harness<'_>) -> CaseResult {
    let new: Vec<_> = (0..24).map(|_| harness.job()).collect();
    let (run, _) = harness.run_with_jobs(new).await?;
    let claimed = harness.claim_with(harness.claim_request(&[QUEUE], 24)).await?;
    let mut leases = Vec::new();
    for job in &claimed {
        leases.push(lease_of(job)?);
    }
    // One more caller advances the run meanwhile.
    harness.together(5, |index, store| {
        let leases: Vec<_> = leases.iter().skip(index).step_by(4).cloned().collect();
        let step = RunStep::of(&run);
        Box::pin(async move {
            if index == 4 {
                return store.advance(vec![step], START).await.map(drop);
            }
            for lease_ref in leases {
                store.settle(vec![Settlement { lease_ref, report: AttemptOutcome::Done(None) }], START).await?;
            }
            Ok(())
        })
    })?;
    let child = |message: MessageBody| if let MessageBody::JobEnded { child, .. } = message { child } else { 0 };
    let mut children: Vec<u64> = harness.bodies(run.id).await?.into_iter().map(child).collect();
    children.sort_unstable();
    same!(children, (1..=24).collect::<Vec<u64>>(), "which jobs have ended");
    Ok(())
}

pub(super) async fn race_of_one_key_starts_one_run(harness: &mut Harness<'_>) -> CaseResult {
    let new: Vec<NewRun> = (0..4).map(|_| NewRun { key: Some("k".into()), ..harness.new_run() }).collect();
    let answers = harness.together(4, |index, store| store.start_runs(vec![new[index].clone()], START))?;
    let stored = harness.store().run_of_key("k".into()).await?.ok_or_else(|| Violation::new("no run has the key"))?;
    let won = answers.iter().filter(|answer| **answer == Ok(vec![stored.clone()])).count();
    let lost = answers.iter().filter(|answer| **answer == Err(StartRefusal::KeyTaken(0, stored.id))).count();
    same!((won, lost), (1, 3), "how many callers won and lost");
    Ok(())
}
