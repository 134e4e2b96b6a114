//! What a step does to one run: the rules that the durable stores apply.

use crate::run::{MessageBody, NewRun, Parent, Run, RunEnd, RunId, RunRefusal, RunStep};
use redrive_policy::Moment;
use std::sync::Arc;

/// A run that has just been stored.
pub(crate) fn created(new: &NewRun, now: Moment) -> Run {
    Run {
        id: new.id,
        program: Arc::clone(&new.program),
        version: new.version,
        state: Arc::clone(&new.state),
        revision: 0,
        timer: None,
        key: new.key.clone(),
        parent: new.parent,
        depth: new.depth,
        children: 0,
        seed: new.seed,
        created: now,
        advanced: now,
        end: None,
        interest: None,
    }
}

/// A run that a step has just started. It is known by its id, and has no key.
pub(crate) fn child(new: &NewRun, now: Moment) -> Run {
    Run { key: None, ..created(new, now) }
}

/// The run after a step, without what the step does to others.
pub(crate) fn advance(run: &Run, step: &RunStep, now: Moment) -> Result<Run, RunRefusal> {
    if run.revision != step.revision {
        return Err(RunRefusal::Changed(run.revision));
    }
    let before = run.end.as_ref();
    let end = step.end.as_ref().map(|(succeeded, result)| {
        let (succeeded, result) = (*succeeded, Arc::clone(result));
        // A run that had ended already in the same way ended then, not now.
        let unchanged = before.filter(|end| end.succeeded == succeeded && end.result == result);
        RunEnd { at: unchanged.map_or(now, |end| end.at), succeeded, result }
    });
    Ok(Run {
        // Its key is free from its end on, and stays so should it go on: another run may have it by then.
        key: run.key.clone().filter(|_| end.is_none()),
        version: step.version,
        state: Arc::clone(&step.state),
        revision: run.revision + 1,
        timer: step.timer.filter(|_| end.is_none()),
        children: run.children + (step.jobs.len() + step.runs.len()) as u64,
        advanced: now,
        interest: step.interest.clone().filter(|_| end.is_none()),
        end,
        ..run.clone()
    })
}

/// What the parent of a run has to learn of a step: that the run ended, or ended in another way than before.
pub(crate) fn end_message(before: &Run, after: &Run) -> Option<(RunId, MessageBody)> {
    let Parent { run, child } = after.parent?;
    let end = after.end.as_ref().filter(|end| before.end.as_ref() != Some(end))?;
    let (succeeded, result) = (end.succeeded, Arc::clone(&end.result));
    Some((run, MessageBody::RunEnded { child, id: after.id, succeeded, result }))
}

/// Since when a run is pending, or from when on: whichever comes first of its first step, its first message and its
/// timer.
pub(crate) fn pending_since(run: &Run, first_message: Option<Moment>) -> Option<Moment> {
    let start = (run.revision == 0).then_some(run.created);
    [start, first_message, run.timer].into_iter().flatten().min()
}
