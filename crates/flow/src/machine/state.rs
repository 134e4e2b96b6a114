//! The state of a flow between two steps: everything that is needed to go on, and nothing else.

use crate::model::{CallId, EntryId, FlowId, StepId};
use crate::result::{Failure, Outcome};
use redrive_policy::{History, Moment};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of states that this machine writes.
pub(crate) const VERSION: u32 = 1;

pub(crate) type Vars = Map<String, Value>;
pub(crate) type TaskId = u64;

/// A flow that runs. It is data: to be stored after every step, and to go on from in another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(crate) version: u32,
    /// Of the definition that it was started with.
    pub(crate) fingerprint: u64,
    /// The id of the execution.
    pub(crate) id: String,
    pub(crate) entered_at: Moment,
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    pub(crate) next_task: TaskId,
    /// Numbers the executions of steps.
    pub(crate) next_step: u64,
    /// Numbers the calls that leave the machine.
    pub(crate) next_call: u64,
    /// Numbers the Retry entries that were entered, from 1.
    pub(crate) next_retry: u64,
    /// The tasks that wait for the Results of such calls.
    pub(crate) outside: BTreeMap<u64, TaskId>,
    pub(crate) result: Option<Outcome>,
}

/// One thread of a flow: the root, or a dispatch of a Gather. Calls of flows stay in their task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The task whose Gather has started it, and its place there.
    pub(crate) parent: Option<(TaskId, usize)>,
    /// From the outside in.
    pub(crate) stack: Vec<Record>,
    pub(crate) control: Control,
    /// An interruption that arrived while another one was unwinding the task.
    pub(crate) pending: Option<Failure>,
}

/// What happens next at the innermost record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Control {
    /// It starts, or goes on inside.
    Start,
    /// A Result rises to it.
    Rise(Outcome),
    /// An interruption tears it down.
    Unwind { failure: Failure, owner: Owner },
    /// It waits for a time.
    Until(Moment),
    /// It waits for the dispatches of its Gather.
    Children,
    /// It waits for the Result of a call that has left the machine.
    Outside,
}

/// Who interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// The Timeout at this place of the stack.
    Entry(usize),
    /// The Gather that started the task, or the outside.
    Outside,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Record {
    Frame(FrameRecord),
    Entry(EntryRecord),
    Graph(GraphRecord),
    Call(CallRecord),
    Gather(GatherRecord),
    Cleanup(CleanupRecord),
}

/// A flow that is executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FrameRecord {
    pub(crate) flow: FlowId,
    pub(crate) input: Value,
    /// Until they are validated.
    pub(crate) arguments: Option<Value>,
    pub(crate) entered_at: Moment,
    pub(crate) vars: Vars,
    /// The failure that is being handled.
    pub(crate) failure: Option<Failure>,
}

/// The steps of a frame, at the one that is executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GraphRecord {
    pub(crate) step: StepId,
    pub(crate) id: u64,
    pub(crate) input: Value,
    pub(crate) entered_at: Moment,
    pub(crate) exited_at: Option<Moment>,
    pub(crate) result: Option<Outcome>,
    pub(crate) results: Option<Vec<Outcome>>,
    pub(crate) dispatches: Option<usize>,
}

/// Which stack of middleware an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    Flow,
    Step,
    /// That of the cleanup of this entry.
    Cleanup(EntryId),
}

/// A middleware entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EntryRecord {
    pub(crate) entry: EntryId,
    pub(crate) place: Place,
    pub(crate) index: usize,
    pub(crate) input: Value,
    /// Whether its onEntry has completed.
    pub(crate) established: bool,
    /// What the scope inside of it gets.
    pub(crate) delivered: Value,
    pub(crate) own: Own,
}

/// What each kind of middleware keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Own {
    Retry(Box<Retry>),
    Timeout { deadline: Option<Moment> },
    Loop { iteration: u64, admitted: bool },
    Finally,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Retry {
    /// Its number among those of the run.
    pub(crate) number: u64,
    /// What was captured at the first entry; absent where the entry is gated off.
    pub(crate) policies: Option<Value>,
    pub(crate) history: History,
    /// Runs of the inner scope so far.
    pub(crate) attempt: u32,
    /// The variables after onEntry.
    pub(crate) snapshot: Vars,
}

/// A call that is executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallRecord {
    pub(crate) call: CallId,
    pub(crate) input: Value,
    /// Its place among the dispatches of a Gather.
    pub(crate) index: Option<usize>,
    pub(crate) entered_at: Moment,
    pub(crate) dispatched_at: Option<Moment>,
    pub(crate) accepted_at: Option<Moment>,
    /// What the target got.
    pub(crate) delivered: Value,
    /// Its number, where it has left the machine.
    pub(crate) outside: Option<u64>,
    /// What the mock provider answers after its delay.
    pub(crate) answer: Option<Outcome>,
    pub(crate) window: Window,
}

/// What the arms of a call see of its target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Window {
    Provider { metadata: Value },
    Flow { vars: Vars, entered_at: Moment, exited_at: Moment },
}

/// The dispatches of a Gather.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GatherRecord {
    pub(crate) slots: Vec<Slot>,
    /// The first slot that may not have been started.
    pub(crate) next: usize,
    pub(crate) running: usize,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    pub(crate) needed: i64,
    /// The outcome is certain, and what was not needed any more is cancelled.
    pub(crate) closed: bool,
    /// A fault of the Gather itself.
    pub(crate) fault: Option<Failure>,
    /// The interruption that waits for the dispatches to end.
    pub(crate) unwinding: Option<(Failure, Owner)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Slot {
    /// With the input of the call.
    Waiting(Value),
    Running(TaskId),
    /// The target has answered; the arm of the call has not run.
    Settled(Box<CallRecord>, Outcome),
    /// Without an arm that could run: cancelled, skipped, or a fault of the call's own fields.
    Ended(Outcome),
}

/// A Finally whose cleanup runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CleanupRecord {
    /// The Result in flight.
    pub(crate) result: Outcome,
    pub(crate) entered_at: Moment,
    /// The interruption that the cleanup is part of.
    pub(crate) unwinding: Option<Owner>,
}

impl Task {
    /// Whether an interruption is under way.
    pub(crate) fn unwinds(&self) -> bool {
        matches!(self.control, Control::Unwind { .. })
            || self.stack.iter().any(|record| match record {
                Record::Cleanup(cleanup) => cleanup.unwinding.is_some(),
                Record::Gather(gather) => gather.unwinding.is_some(),
                _ => false,
            })
    }

    pub(crate) const fn is_ready(&self) -> bool {
        matches!(self.control, Control::Start | Control::Rise(_) | Control::Unwind { .. })
    }

    /// The frame that a record belongs to, where it is in this task.
    pub(crate) fn frame_mut(&mut self) -> Option<&mut FrameRecord> {
        self.stack.iter_mut().rev().find_map(|record| match record {
            Record::Frame(frame) => Some(frame),
            _ => None,
        })
    }

    pub(crate) fn frame(&self) -> Option<&FrameRecord> {
        self.stack.iter().rev().find_map(|record| match record {
            Record::Frame(frame) => Some(frame),
            _ => None,
        })
    }

    pub(crate) fn graph(&self) -> Option<&GraphRecord> {
        self.stack.iter().rev().find_map(|record| match record {
            Record::Graph(graph) => Some(graph),
            _ => None,
        })
    }

    pub(crate) fn graph_mut(&mut self) -> Option<&mut GraphRecord> {
        self.stack.iter_mut().rev().find_map(|record| match record {
            Record::Graph(graph) => Some(graph),
            _ => None,
        })
    }

    /// The innermost record, where it is a middleware entry.
    pub(crate) fn entry_mut(&mut self) -> Option<&mut EntryRecord> {
        match self.stack.last_mut() {
            Some(Record::Entry(entry)) => Some(entry),
            _ => None,
        }
    }

    pub(crate) fn entry(&self) -> Option<&EntryRecord> {
        match self.stack.last() {
            Some(Record::Entry(entry)) => Some(entry),
            _ => None,
        }
    }
}
