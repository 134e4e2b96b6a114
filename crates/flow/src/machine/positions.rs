//! Where a flow is, as it is shown.

use super::State;
use super::outside::Provider;
use super::state::{Control, Record, Task};
use crate::model::{Definition, Target};
use redrive_policy::Moment;

/// Where one thread of a flow is: the root, or a dispatch of a Gather.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// The JSON Pointer of the flow in the definition.
    pub flow: String,
    /// The step, and its action; absent around the steps.
    pub step: Option<(String, &'static str)>,
    /// Since when that step is executed.
    pub since: Option<Moment>,
    /// What it waits for.
    pub waits: Waits,
}

/// What a thread of a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The gap of a Retry is over at this time.
    Retry(Moment),
    /// A Sleep is over at this time.
    Sleep(Moment),
    /// The mock provider answers at this time.
    Mock(Moment),
    /// The Result of this call.
    Call(u64, Provider),
    /// The dispatches of a Gather.
    Dispatches,
    /// It could go on at once.
    Nothing,
}

impl Definition {
    /// Where a flow is. Each thread is listed once, the root first.
    #[must_use]
    pub fn positions(&self, state: &State) -> Vec<Position> {
        state.tasks.values().map(|task| self.position(state, task)).collect()
    }

    /// The provider of a call whose Result the flow waits for.
    #[must_use]
    pub fn awaited(&self, state: &State, call: u64) -> Option<Provider> {
        let task = state.tasks.get(state.outside.get(&call)?)?;
        let Some(Record::Call(record)) = task.stack.last() else { return None };
        match self.calls.get(record.call)?.target {
            Target::Outside(provider) => Some(provider),
            Target::Mock | Target::Flow(_) => None,
        }
    }

    fn position(&self, state: &State, task: &Task) -> Position {
        let waits = match (&task.control, task.stack.last()) {
            (Control::Until(at), Some(Record::Graph(_))) => Waits::Sleep(*at),
            (Control::Until(at), Some(Record::Call(_))) => Waits::Mock(*at),
            (Control::Until(at), _) => Waits::Retry(*at),
            (Control::Children, _) => Waits::Dispatches,
            (Control::Outside, Some(Record::Call(call))) => match call.outside {
                Some(number) => {
                    self.awaited(state, number).map_or(Waits::Nothing, |provider| Waits::Call(number, provider))
                }
                None => Waits::Nothing,
            },
            _ => Waits::Nothing,
        };
        let (mut graph, mut at) = (None, Some(task));
        while let Some(task) = at {
            for record in task.stack.iter().rev() {
                match record {
                    Record::Graph(found) if graph.is_none() => graph = Some(found),
                    Record::Frame(frame) => {
                        let flow = self.flows.get(frame.flow);
                        let step = flow.zip(graph).and_then(|(flow, graph)| flow.steps.get(graph.step));
                        return Position {
                            flow: flow.map_or_else(String::new, |flow| flow.path.clone()),
                            step: step.map(|step| (step.name.clone(), step.action.name())),
                            since: graph.map(|graph| graph.entered_at),
                            waits,
                        };
                    }
                    _ => {}
                }
            }
            at = task.parent.and_then(|(parent, _)| state.tasks.get(&parent));
        }
        Position { flow: String::new(), step: None, since: None, waits }
    }
}
