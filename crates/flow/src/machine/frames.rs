//! Frames: arguments and variables at the start, and the way down through a stack of middleware.

use super::Machine;
use super::state::{
    CallRecord, Control, EntryRecord, FrameRecord, GraphRecord, Own, Place, Record, Retry, Task, Vars, Window,
};
use crate::model::{Action, CallId, EntryId, Middleware};
use crate::result::{Failure, Outcome};
use redrive_policy::{History, Moment};
use serde_json::{Value, json};

impl Machine<'_> {
    pub(super) fn start_frame(&mut self, task: &mut Task) -> Option<()> {
        let Some(Record::Frame(frame)) = task.stack.last_mut() else { return None };
        let schema = &self.definition.flows.get(frame.flow)?.parameters;
        let arguments = frame.arguments.take().unwrap_or_else(|| json!({}));
        let problems = schema.problems(&arguments);
        if !problems.is_empty() {
            let first = problems.first().map_or_else(String::new, |first| format!("{}: {}", first.path, first.message));
            let details =
                json!({ "problems": problems.iter().map(super::super::schema::Invalid::to_value).collect::<Vec<_>>() });
            let failure = Failure::error("System.ParameterValidationFailed", first).with_details(details).bounded();
            task.control = Control::Rise(failure.into());
            return Some(());
        }
        frame.vars = schema.defaults.iter().cloned().collect();
        if let Value::Object(arguments) = arguments {
            frame.vars.extend(arguments);
        }
        let input = frame.input.clone();
        self.descend(task, Place::Flow, 0, input)
    }

    /// The frame is complete. Its caller sees what has become of it.
    pub(super) fn end_frame(&mut self, task: &mut Task, outcome: Outcome) -> Option<()> {
        let Some(Record::Frame(frame)) = task.stack.pop() else { return None };
        if let Some(Record::Call(call)) = task.stack.last_mut() {
            let FrameRecord { vars, entered_at, .. } = frame;
            call.window = Window::Flow { vars, entered_at, exited_at: self.now };
        }
        task.control = Control::Rise(outcome);
        Some(())
    }

    /// The entries of a stack, and the call inside of it; none for the steps of a flow.
    fn stack_of(&self, task: &Task, place: Place) -> Option<(&[EntryId], Option<CallId>)> {
        match place {
            Place::Flow => Some((&self.definition.flows.get(task.frame()?.flow)?.stack, None)),
            Place::Step => {
                let flow = self.definition.flows.get(task.frame()?.flow)?;
                match &flow.steps.get(task.graph()?.step)?.action {
                    Action::Call { stack, call, .. } => Some((stack, Some(*call))),
                    _ => None,
                }
            }
            Place::Cleanup(entry) => match &self.definition.entries.get(entry)?.kind {
                Middleware::Finally { call, stack } => Some((stack, Some(*call))),
                _ => None,
            },
        }
    }

    /// Goes one entry further in, or into what the stack is around.
    pub(super) fn descend(&mut self, task: &mut Task, place: Place, index: usize, input: Value) -> Option<()> {
        let (entries, call) = self.stack_of(task, place)?;
        let record = match (entries.get(index), call) {
            (Some(entry), _) => Record::Entry(EntryRecord {
                entry: *entry,
                place,
                index,
                input,
                established: false,
                delivered: Value::Null,
                own: own(&self.definition.entries.get(*entry)?.kind, &mut self.state.next_retry, self.now),
            }),
            (None, Some(call)) => Record::Call(call_record(call, input, None, self.now)),
            (None, None) => {
                let entrypoint = self.definition.flows.get(task.frame()?.flow)?.entrypoint;
                Record::Graph(self.graph_record(task, entrypoint, input))
            }
        };
        task.stack.push(record);
        task.control = Control::Start;
        Some(())
    }

    /// A new execution of a step.
    pub(super) fn graph_record(&mut self, task: &Task, step: usize, input: Value) -> GraphRecord {
        let id = self.state.next_step;
        self.state.next_step += 1;
        self.note_step_started(task, step, id);
        let entered_at = self.now;
        GraphRecord { step, id, input, entered_at, exited_at: None, result: None, results: None, dispatches: None }
    }
}

fn own(kind: &Middleware, next_retry: &mut u64, now: Moment) -> Own {
    match kind {
        Middleware::Retry => Own::Retry(Box::new(Retry {
            number: std::mem::replace(next_retry, *next_retry + 1),
            policies: None,
            history: History::new(now),
            attempt: 1,
            snapshot: Vars::new(),
        })),
        Middleware::Timeout => Own::Timeout { deadline: None },
        Middleware::Loop => Own::Loop { iteration: 1, admitted: false },
        Middleware::Finally { .. } => Own::Finally,
    }
}

pub(super) fn call_record(call: CallId, input: Value, index: Option<usize>, now: Moment) -> CallRecord {
    CallRecord {
        call,
        input,
        index,
        entered_at: now,
        dispatched_at: None,
        accepted_at: None,
        delivered: Value::Null,
        outside: None,
        answer: None,
        window: Window::Provider { metadata: json!({}) },
    }
}
