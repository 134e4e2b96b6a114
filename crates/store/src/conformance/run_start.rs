//! New runs.

use super::harness::Harness;
use super::run_harness::{PROGRAM, VERSION, blob, no_run, programs};
use super::{CaseResult, same};
use crate::{NewRun, Parent, Run, RunStep, StartRefusal};

pub(super) async fn run_is_returned_as_it_is_stored(harness: &mut Harness<'_>) -> CaseResult {
    let parent = Some(Parent { run: no_run(), child: u64::MAX >> 1 });
    let new = NewRun { key: Some("k".into()), parent, depth: 4, ..harness.new_run() };
    let expected = Run {
        id: new.id,
        program: PROGRAM.into(),
        version: VERSION,
        state: blob("input"),
        revision: 0,
        timer: None,
        key: Some("k".into()),
        parent,
        depth: 4,
        children: 0,
        seed: new.seed,
        created: harness.now(),
        advanced: harness.now(),
        end: None,
        interest: None,
    };
    same!(harness.start_new(new).await?, expected, "a new run");
    same!(harness.run(expected.id).await?, expected, "the same run, read back");
    same!(harness.store().run_of_key("k".into()).await?, Some(expected), "the run of the key");
    same!(harness.store().run_of_key("other".into()).await?, None, "the run of a key that none has");
    same!(harness.store().run(no_run()).await?, None, "a run that is not stored");
    Ok(())
}

pub(super) async fn run_start_of_nothing_starts_nothing(harness: &mut Harness<'_>) -> CaseResult {
    same!(harness.start(Vec::new()).await?, Ok(Vec::new()), "no runs");
    same!(harness.store().next_run(programs()).await?, None, "when the next run is pending");
    Ok(())
}

pub(super) async fn run_start_with_a_taken_id_starts_none_of_the_batch(harness: &mut Harness<'_>) -> CaseResult {
    let kept = harness.new_started().await?;
    let (first, again) = (harness.new_run(), NewRun { id: kept.id, ..harness.new_run() });
    let refused = harness.start(vec![first.clone(), again]).await?;
    same!(refused, Err(StartRefusal::IdTaken(1)), "the id of a stored run");
    same!(harness.store().run(first.id).await?, None, "the first of the batch");
    same!(harness.run(kept.id).await?, kept, "the run that has the id");
    let batch = vec![first.clone(), harness.new_run(), first.clone()];
    let refused = harness.start(batch).await?;
    same!(refused, Err(StartRefusal::IdTaken(2)), "the id of a run of the same batch");
    same!(harness.pending().await?, [kept.id], "what is pending");
    let batch = vec![first.clone(), harness.new_run()];
    let both = harness.start(batch).await??;
    same!(both.len(), 2, "how many runs have started");
    same!(both[0], harness.run(first.id).await?, "the first of them");
    Ok(())
}

pub(super) async fn run_start_with_a_taken_key_names_the_run_that_has_it(harness: &mut Harness<'_>) -> CaseResult {
    let keyed = |new: NewRun, key: &str| NewRun { key: Some(key.into()), ..new };
    let new = keyed(harness.new_run(), "k");
    let kept = harness.start_new(new).await?;
    let first = keyed(harness.new_run(), "j");
    let batch = vec![first.clone(), keyed(harness.new_run(), "k")];
    let refused = harness.start(batch).await?;
    same!(refused, Err(StartRefusal::KeyTaken(1, kept.id)), "the key of a stored run");
    same!(harness.store().run_of_key("j".into()).await?, None, "the run of the other key");
    let batch = vec![first.clone(), keyed(harness.new_run(), "j")];
    let refused = harness.start(batch).await?;
    same!(refused, Err(StartRefusal::KeyTaken(1, first.id)), "the key of a run of the same batch");
    let again = keyed(NewRun { id: kept.id, ..harness.new_run() }, "k");
    same!(harness.start(vec![again]).await?, Err(StartRefusal::IdTaken(0)), "both the id and the key");
    same!(harness.store().run_of_key("k".into()).await?, Some(kept), "the run of the key");
    Ok(())
}

pub(super) async fn run_key_is_free_once_the_run_has_ended(harness: &mut Harness<'_>) -> CaseResult {
    let keyed = |harness: &mut Harness<'_>| NewRun { key: Some("k".into()), ..harness.new_run() };
    let new = keyed(harness);
    let first = harness.start_new(new).await?;
    let advanced = harness.stepped(RunStep::of(&first)).await?.run;
    same!(advanced.key, Some("k".into()), "the key of a run that goes on");
    let next = keyed(harness);
    same!(
        harness.start(vec![next.clone()]).await?,
        Err(StartRefusal::KeyTaken(0, first.id)),
        "the key of a run that goes on"
    );
    let ended = harness.stepped(RunStep { end: Some((true, blob("{}"))), ..RunStep::of(&advanced) }).await?.run;
    same!(ended.key, None, "the key of a run that has ended");
    same!(harness.store().run_of_key("k".into()).await?, None, "the run of the key");
    let second = harness.start_new(next).await?;
    let goes_on = harness.stepped(RunStep { end: None, ..RunStep::of(&ended) }).await?.run;
    same!(goes_on.key, None, "the key of a run that goes on after its end");
    same!(harness.store().run_of_key("k".into()).await?, Some(second), "the run of the key");
    Ok(())
}
