//! Which runs have something to do.

use super::harness::{Harness, START};
use super::run_harness::{PROGRAM, VERSION, all_pending, no_run, programs, run_ids, said};
use super::{CaseResult, Violation, same};
use crate::{NewRun, PendingRuns, Run, RunId, RunStep};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

pub(super) async fn run_is_pending_until_its_first_step(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.new_started().await?;
    for _ in 0..2 {
        let pending = harness.pending_with(all_pending()).await?;
        same!(run_ids(&pending), [run.id], "a new run");
        same!((&pending[0].run, pending[0].messages.len()), (&run, 0), "the run and its messages");
    }
    let advanced = harness.stepped(RunStep::of(&run)).await?;
    same!(advanced.pending, [], "what is pending because of the step");
    same!(harness.pending().await?, [], "what is pending after the first step");
    same!(harness.store().next_run(programs()).await?, None, "when the next run is pending");
    Ok(())
}

pub(super) async fn run_is_pending_while_it_has_messages(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.waiting_run().await?;
    harness.advance(5);
    same!(harness.signal(run.id, "a").await?, run, "the run that got a signal");
    harness.advance(5);
    harness.signal(run.id, "b").await?;
    let pending = harness.pending_with(all_pending()).await?;
    same!(run_ids(&pending), [run.id], "what is pending");
    let messages = &pending[0].messages;
    let at: Vec<(Moment, _)> = messages.iter().map(|message| (message.at, message.body.clone())).collect();
    let later = |ms| START.after(Span::from_millis(ms));
    same!(at, [(later(5), said("a")), (later(10), said("b"))], "its messages");
    same!(harness.store().next_run(programs()).await?, Some(later(5)), "when the next run is pending");
    let consumed = vec![messages[0].number];
    let advanced = harness.stepped(RunStep { consumed, ..RunStep::of(&run) }).await?;
    same!(advanced.pending, [run.id], "what is pending after one of two messages was read");
    let rest = harness.inbox(run.id).await?;
    same!(rest, messages[1..], "the messages that are left");
    let consumed = vec![rest[0].number];
    let advanced = harness.stepped(RunStep { consumed, ..RunStep::of(&advanced.run) }).await?;
    same!(advanced.pending, [], "what is pending after both were read");
    same!(harness.pending().await?, [], "what is pending in the end");
    Ok(())
}

pub(super) async fn run_that_is_named_is_pending_with_messages_that_another_clock_has_from_later(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let run = harness.waiting_run().await?;
    let before = harness.now();
    harness.advance(5);
    harness.signal(run.id, "a").await?;
    let named = |only| PendingRuns { only: Some(only), ..all_pending() };
    let pending = harness.store().pending_runs(named(vec![run.id]), before).await?;
    same!(run_ids(&pending), [run.id], "the run, when its message is asked for by a clock that is behind");
    same!(harness.store().pending_runs(all_pending(), before).await?, [], "what is pending then by itself");
    let consumed = pending[0].messages.iter().map(|message| message.number).collect();
    let timer = Some(harness.later(5));
    harness.stepped(RunStep { consumed, timer, ..RunStep::of(&run) }).await?;
    same!(harness.store().pending_runs(named(vec![run.id]), before).await?, [], "a timer that is not due");
    Ok(())
}

pub(super) async fn run_is_pending_from_the_time_of_its_timer_on(harness: &mut Harness<'_>) -> CaseResult {
    let run = harness.new_started().await?;
    let timer = harness.later(1_000);
    let advanced = harness.stepped(RunStep { timer: Some(timer), ..RunStep::of(&run) }).await?;
    same!((advanced.run.timer, advanced.pending), (Some(timer), Vec::new()), "the timer, and what is pending");
    same!(harness.store().next_run(programs()).await?, Some(timer), "when the next run is pending");
    harness.advance_to_just_before(timer);
    same!(harness.pending().await?, [], "a microsecond early");
    harness.advance_to(timer);
    let pending = harness.pending_with(all_pending()).await?;
    same!(run_ids(&pending), [run.id], "in time");
    same!(pending[0].messages, [], "its messages");
    let again = harness.stepped(RunStep::of(&advanced.run)).await?;
    same!(again.pending, [run.id], "what is pending while the timer is past and set");
    let off = harness.stepped(RunStep { timer: None, ..RunStep::of(&again.run) }).await?;
    same!((off.run.timer, off.pending), (None, Vec::new()), "the timer that was cleared, and what is pending");
    same!(harness.store().next_run(programs()).await?, None, "when the next run is pending");
    Ok(())
}

/// A run that is pending from this moment on, by its timer.
async fn due(harness: &mut Harness<'_>, ms: u32) -> Result<RunId, Violation> {
    let run = harness.new_started().await?;
    let timer = Some(harness.later(ms));
    Ok(harness.stepped(RunStep { timer, ..RunStep::of(&run) }).await?.run.id)
}

pub(super) async fn run_that_is_pending_longest_comes_first(harness: &mut Harness<'_>) -> CaseResult {
    let by_timer = [due(harness, 30).await?, due(harness, 10).await?, due(harness, 10).await?];
    harness.advance(20);
    let new = harness.new_started().await?.id;
    let told = harness.waiting_run().await?.id;
    harness.advance(20);
    harness.signal(told, "a").await?;
    // A message before the timer, and a timer before the message, each count by what came first.
    let both = [due(harness, 5).await?, due(harness, 0).await?];
    harness.signal(both[0], "a").await?;
    harness.advance(5);
    harness.signal(both[1], "a").await?;
    let order = [by_timer[1], by_timer[2], new, by_timer[0], told, both[0], both[1]];
    same!(harness.pending().await?, order, "all that is pending");
    for limit in [0, 1, 3] {
        let some = harness.pending_with(PendingRuns { limit, ..all_pending() }).await?;
        same!(run_ids(&some), order[..limit], "at most {limit}");
    }
    Ok(())
}

pub(super) async fn run_messages_are_read_in_order_and_up_to_a_limit(harness: &mut Harness<'_>) -> CaseResult {
    let runs = [harness.waiting_run().await?.id, harness.waiting_run().await?.id];
    for name in ["a", "b", "c"] {
        for run in runs {
            harness.signal(run, name).await?;
        }
    }
    for most in [0, 1, 2] {
        let pending = harness.pending_with(PendingRuns { messages: most, ..all_pending() }).await?;
        same!(run_ids(&pending), runs, "the runs");
        for pending in pending {
            let bodies: Vec<_> = pending.messages.into_iter().map(|message| message.body).collect();
            same!(bodies, [said("a"), said("b")][..most], "at most {most} messages of each");
        }
    }
    Ok(())
}

/// A run of a program, pending because it is new.
async fn of_program(harness: &mut Harness<'_>, program: &str, version: u32) -> Result<Run, Violation> {
    let new = NewRun { program: program.into(), version, ..harness.new_run() };
    harness.start_new(new).await
}

pub(super) async fn run_of_another_program_or_a_newer_version_is_left_alone(harness: &mut Harness<'_>) -> CaseResult {
    let foreign = of_program(harness, "other", 1).await?;
    harness.advance(1);
    let newer = of_program(harness, PROGRAM, VERSION + 1).await?;
    harness.advance(1);
    let known = of_program(harness, PROGRAM, VERSION).await?;
    let older = of_program(harness, PROGRAM, 0).await?;
    same!(harness.pending().await?, [known.id, older.id], "what the caller knows");
    same!(harness.store().next_run(programs()).await?, Some(known.created), "when the next of those is pending");
    let first = harness.pending_with(PendingRuns { limit: 1, ..all_pending() }).await?;
    same!(run_ids(&first), [known.id], "the first, whatever is pending longer");
    let only = Some(vec![newer.id, foreign.id, older.id]);
    same!(
        run_ids(&harness.pending_with(PendingRuns { only, ..all_pending() }).await?),
        [older.id],
        "what the caller knows of those that it names"
    );
    let none = PendingRuns { programs: Vec::new(), ..all_pending() };
    same!(run_ids(&harness.pending_with(none).await?), [], "without programs");
    same!(harness.store().next_run(Vec::new()).await?, None, "when the next run is pending, without programs");
    let both: Vec<(Arc<str>, u32)> = vec![(PROGRAM.into(), VERSION + 1), ("other".into(), 7)];
    same!(harness.store().next_run(both.clone()).await?, Some(foreign.created), "the same, with all programs");
    let all = harness.pending_with(PendingRuns { programs: both, ..all_pending() }).await?;
    same!(run_ids(&all), [foreign.id, newer.id, known.id, older.id], "with all programs");
    Ok(())
}

pub(super) async fn run_is_pending_by_name(harness: &mut Harness<'_>) -> CaseResult {
    let waiting = harness.waiting_run().await?.id;
    let (first, second) = (harness.new_started().await?.id, harness.new_started().await?.id);
    harness.new_started().await?;
    let only = Some(vec![second, no_run(), waiting, first, second]);
    let pending = PendingRuns { only, ..all_pending() };
    same!(run_ids(&harness.pending_with(pending.clone()).await?), [first, second], "those that are named, each once");
    let one = harness.pending_with(PendingRuns { limit: 1, ..pending }).await?;
    same!(run_ids(&one), [first], "at most one of them");
    let none = PendingRuns { only: Some(Vec::new()), ..all_pending() };
    same!(run_ids(&harness.pending_with(none).await?), [], "none of them");
    Ok(())
}
