//! What must be true of runs when everything has come to its end.

use super::program::{Errand, FIRST_RUN};
use super::world::{Known, RunWorld};
use crate::common::wrapped::in_place;
use redrive_store::{Filter, Job, Page, Run, RunFilter, RunId, Store};
use std::collections::BTreeMap;

/// The jobs and the runs that each run has started, by number.
type Children<T> = BTreeMap<(RunId, u64), Vec<T>>;

fn children<T>(all: impl Iterator<Item = (Option<redrive_store::Parent>, T)>) -> Children<T> {
    let mut children = Children::new();
    for (parent, child) in all {
        if let Some(parent) = parent {
            children.entry((parent.run, parent.child)).or_default().push(child);
        }
    }
    children
}

/// Everything that is wrong.
pub(crate) fn violations(world: &RunWorld, store: &dyn Store) -> Vec<String> {
    let runs = in_place(store.runs(RunFilter::default(), usize::MAX)).expect("the store works");
    let listed = in_place(store.list(Filter::default(), Page::new(0, usize::MAX))).expect("the store works");
    let jobs = children(listed.jobs.into_iter().map(|job| (job.parent, job)));
    let child_runs = children(runs.iter().map(|run| (run.parent, run.id)));
    let mut wrong = Vec::new();
    for (id, known) in world.known.borrow().iter() {
        match runs.iter().find(|run| run.id == *id) {
            Some(run) => wrong.extend(of_client(run, known)),
            None if known.started => wrong.push(format!("kept: the run {id} was acknowledged and is lost")),
            None => {}
        }
    }
    for run in &runs {
        if run.parent.is_none() && !world.known.borrow().contains_key(&run.id) {
            wrong.push(format!("kept: the run {} was never started", run.id));
        }
        let told = || format!("{} {:?} {}", run.id, run.parent, String::from_utf8_lossy(&run.state));
        wrong.extend(of_run(run, &jobs, &child_runs).into_iter().map(|problem| format!("{problem}: {}", told())));
    }
    wrong
}

/// What a client knows of its run.
fn of_client(run: &Run, known: &Known) -> Vec<String> {
    let mut wrong = Vec::new();
    let errand = Errand::read(&run.state).unwrap_or_default();
    if errand.plan != known.plan {
        wrong.push(format!("kept: another plan than {:?}", known.plan));
    }
    if errand.notes < known.notes || errand.notes > known.notes_sent {
        let Known { notes, notes_sent, .. } = known;
        wrong.push(format!("message: {} notes of {notes} that were acknowledged and {notes_sent} sent", errand.notes));
    }
    if errand.cancelled && !known.cancel_sent || !errand.cancelled && known.cancelled {
        wrong.push(format!("message: whether it was cancelled, {known:?}"));
    }
    wrong
}

fn of_run(run: &Run, jobs: &Children<Job>, runs: &Children<RunId>) -> Vec<String> {
    let Ok(errand) = Errand::read(&run.state) else { return vec!["kept: the state cannot be read".to_owned()] };
    let mut wrong = Vec::new();
    if run.end.is_none() {
        wrong.push("stuck: it has not ended".to_owned());
    }
    if errand.starts != 1 {
        wrong.push(format!("step: it began {} times", errand.starts));
    }
    let due = u64::from(errand.plan.timer_ms.is_some() && !errand.cancelled);
    if errand.timers < due || errand.timers > 1 {
        wrong.push(format!("timer: it was due {} times", errand.timers));
    }
    let of_run = |number: &&(RunId, u64)| number.0 == run.id;
    let enqueued: Vec<u64> = jobs.keys().filter(of_run).map(|(_, number)| *number).collect();
    if enqueued != errand.enqueued().into_iter().collect::<Vec<_>>() {
        wrong.push(format!("child: it has the jobs {enqueued:?}"));
    }
    for ((_, number), jobs) in jobs.iter().filter(|(number, _)| number.0 == run.id) {
        let [job] = &jobs[..] else {
            wrong.push(format!("child: {number} was enqueued {} times", jobs.len()));
            continue;
        };
        let count = |counts: &BTreeMap<u64, u64>| counts.get(number).copied().unwrap_or(0);
        let generation = u64::from(job.generation);
        if (count(&errand.ends), count(&errand.redrives)) != (generation + 1, generation) {
            wrong.push(format!("message: of {number}, which was redriven {generation} times"));
        }
    }
    for number in FIRST_RUN..FIRST_RUN + errand.plan.runs {
        let started = runs.get(&(run.id, number)).map_or(0, Vec::len);
        if started != 1 {
            wrong.push(format!("child: the run {number} was started {started} times"));
        }
        if !errand.ends.contains_key(&number) {
            wrong.push(format!("message: the end of the run {number} was not told"));
        }
    }
    wrong
}
