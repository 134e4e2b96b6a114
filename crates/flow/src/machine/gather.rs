//! Gather: dispatches that run beside each other, and what they must achieve together.

use super::Machine;
use super::frames::call_record;
use super::scope::{Site, brief, invalid};
use super::state::{Control, GatherRecord, Owner, Record, Slot, Task, TaskId};
use crate::model::{Action, CallId, Gather, GatherForm};
use crate::result::{Failure, Outcome};
use serde_json::{Value, json};

/// How many dispatches one Gather makes at most.
const MAX_DISPATCHES: usize = 10_000;
/// How many failures are listed in the details of a Gather that did not achieve what it must.
const MAX_LISTED: usize = 100;

impl Machine<'_> {
    pub(super) fn start_gather(&mut self, id: TaskId, task: &mut Task, spec: &Gather) -> Option<()> {
        let inputs = match self.inputs(task, &spec.form) {
            Ok(inputs) => inputs,
            Err(failure) => {
                task.graph_mut()?.results = Some(Vec::new());
                return self.fail_step(task, failure);
            }
        };
        let count = inputs.len();
        task.graph_mut()?.dispatches = Some(count);
        let needed = match &spec.successes {
            None => Ok(i64::try_from(count).unwrap_or(i64::MAX)),
            Some(template) => self.evaluate(task, Site::Step, template).and_then(|value| whole(&value)),
        };
        let mut gather = GatherRecord {
            slots: inputs.into_iter().map(Slot::Waiting).collect(),
            next: 0,
            running: 0,
            succeeded: 0,
            failed: 0,
            needed: 0,
            closed: false,
            fault: None,
            unwinding: None,
        };
        match needed {
            Ok(needed) => gather.needed = needed,
            Err(fault) => {
                gather.close();
                gather.fault = Some(fault);
            }
        }
        task.stack.push(Record::Gather(gather));
        self.advance_gather(id, task)
    }

    fn inputs(&self, task: &Task, form: &GatherForm) -> Result<Vec<Value>, Failure> {
        let inputs = match form {
            GatherForm::Iterate { over, .. } => match self.evaluate(task, Site::Step, over)? {
                Value::Array(items) => items,
                other => return Err(invalid("/over", format!("an array is expected, not {}", brief(&other)), &other)),
            },
            GatherForm::Scatter(calls) => {
                let input = task.graph().map_or(Value::Null, |graph| graph.input.clone());
                vec![input; calls.len()]
            }
        };
        if inputs.len() > MAX_DISPATCHES {
            let message = format!("{} dispatches are more than the {MAX_DISPATCHES} that are allowed", inputs.len());
            return Err(Failure::error("Redrive.TooManyDispatches", message));
        }
        Ok(inputs)
    }

    /// Starts what may be started, cancels what is not needed any more, and ends when everything has resolved.
    pub(super) fn advance_gather(&mut self, id: TaskId, task: &mut Task) -> Option<()> {
        let Action::Gather(spec) = &self.step_of(task)?.action else { return None };
        let Some(Record::Gather(gather)) = task.stack.last_mut() else { return None };
        if !spec.wait && !gather.closed && gather.is_decided() {
            for running in gather.close() {
                let failure = Failure::new("cancellation", "System.GatherDispatchCancelled");
                self.interrupt(running, failure, Owner::Outside);
            }
        }
        let Some(Record::Gather(gather)) = task.stack.last_mut() else { return None };
        let most = spec.concurrency.unwrap_or(usize::MAX);
        while gather.running < most && gather.next < gather.slots.len() && !gather.closed {
            let index = gather.next;
            gather.next += 1;
            let Slot::Waiting(input) = &mut gather.slots[index] else { continue };
            let record = call_record(call_of(&spec.form, index)?, std::mem::take(input), Some(index), self.now);
            let child = self.state.next_task;
            self.state.next_task += 1;
            let (parent, stack) = (Some((id, index)), vec![Record::Call(record)]);
            self.state.tasks.insert(child, Task { parent, stack, control: Control::Start, pending: None });
            self.ready.insert(child);
            gather.slots[index] = Slot::Running(child);
            gather.running += 1;
        }
        if gather.running > 0 {
            task.control = Control::Children;
            return Some(());
        }
        self.end_gather(task, spec)
    }

    /// A dispatch has resolved.
    pub(super) fn deliver(&mut self, parent: TaskId, index: usize, slot: Slot) {
        let Some(task) = self.state.tasks.get_mut(&parent) else { return };
        let Some(Record::Gather(gather)) = task.stack.last_mut() else { return };
        let success = matches!(&slot, Slot::Settled(_, outcome) | Slot::Ended(outcome) if outcome.is_success());
        if let Some(place) = gather.slots.get_mut(index) {
            *place = slot;
        }
        gather.running = gather.running.saturating_sub(1);
        gather.succeeded += usize::from(success);
        gather.failed += usize::from(!success);
        match &gather.unwinding {
            None => task.control = Control::Start,
            Some(_) if gather.running > 0 => return,
            Some((failure, owner)) => {
                // A cleanup that failed below is not hidden: the first in the order of the dispatches supersedes.
                let failure = gather.superseded(failure).unwrap_or_else(|| failure.clone());
                task.control = Control::Unwind { failure, owner: *owner };
                gather.unwinding = None;
            }
        }
        self.ready.insert(parent);
    }

    /// All dispatches have resolved: the arms run in their order, and then the verdict is made.
    fn end_gather(&mut self, task: &mut Task, spec: &Gather) -> Option<()> {
        let Some(Record::Gather(gather)) = task.stack.pop() else { return None };
        let GatherRecord { slots, needed, fault, .. } = gather;
        let mut results = Vec::with_capacity(slots.len());
        for slot in slots {
            results.push(match slot {
                Slot::Settled(call, outcome) => self.arm(task, &call, outcome),
                Slot::Ended(outcome) => outcome,
                Slot::Waiting(_) | Slot::Running(_) => skipped(),
            });
        }
        let verdict = match fault {
            Some(fault) => Some(fault),
            None => unmet(&results, needed),
        };
        let values = results.iter().filter_map(|result| match result {
            Outcome::Success(value) => Some(value.clone()),
            Outcome::Failure(_) => None,
        });
        let projection = Value::Array(values.collect());
        let graph = task.graph_mut()?;
        graph.exited_at = Some(self.now);
        graph.results = Some(results);
        match verdict {
            None => self.complete_step(task, Site::Step, &spec.tail.success, &projection),
            Some(failure) => self.fail_step(task, failure),
        }
    }
}

impl GatherRecord {
    /// Whether the outcome is certain.
    fn is_decided(&self) -> bool {
        let (needed, succeeded) = (i128::from(self.needed), self.succeeded as i128);
        let possible = (self.slots.len() - self.failed) as i128;
        succeeded >= needed || possible < needed
    }

    /// Skips what has not been started, and returns what is running.
    pub(super) fn close(&mut self) -> Vec<TaskId> {
        self.closed = true;
        let mut running = Vec::new();
        for slot in &mut self.slots {
            match slot {
                Slot::Waiting(_) => *slot = Slot::Ended(skipped()),
                Slot::Running(task) => running.push(*task),
                Slot::Settled(..) | Slot::Ended(_) => {}
            }
        }
        running
    }

    /// The first failure that took the place of the cancellation below.
    fn superseded(&self, imposed: &Failure) -> Option<Failure> {
        self.slots.iter().find_map(|slot| match slot {
            Slot::Ended(Outcome::Failure(failure)) if holds(failure, imposed) => Some(failure.clone()),
            _ => None,
        })
    }
}

/// Whether a failure has another one further down in its chain.
fn holds(failure: &Failure, below: &Failure) -> bool {
    let mut link = failure.previous.as_deref();
    while let Some(failure) = link {
        if failure == below {
            return true;
        }
        link = failure.previous.as_deref();
    }
    false
}

fn call_of(form: &GatherForm, index: usize) -> Option<CallId> {
    match form {
        GatherForm::Iterate { call, .. } => Some(*call),
        GatherForm::Scatter(calls) => calls.get(index).copied(),
    }
}

fn skipped() -> Outcome {
    Failure::new("skipped", "System.GatherDispatchSkipped").into()
}

fn whole(value: &Value) -> Result<i64, Failure> {
    match value.as_i64() {
        Some(number) => Ok(number),
        None => {
            Err(invalid("/completion/successes", format!("a whole number is expected, not {}", brief(value)), value))
        }
    }
}

/// The failure of a Gather that did not achieve what it must.
fn unmet(results: &[Outcome], needed: i64) -> Option<Failure> {
    let succeeded = results.iter().filter(|result| result.is_success()).count();
    if i64::try_from(succeeded).unwrap_or(i64::MAX) >= needed {
        return None;
    }
    let failures = results.iter().enumerate().filter(|(_, result)| !result.is_success());
    let listed: Vec<Value> = failures
        .take(MAX_LISTED)
        .map(|(index, result)| json!({ "index": index, "result": result.to_value() }))
        .collect();
    let message = format!("{succeeded} of {} dispatches succeeded, and {needed} must", results.len());
    let details = json!({ "failures": listed, "failureCount": results.len() - succeeded });
    Some(Failure::error("System.GatherCompletionUnmet", message).with_details(details).bounded())
}
