//! How a run of a graph goes on: states end, and take those after them along.

use super::document::Document;
use super::state::{Row, RunState, Status};
use redrive_engine::{Context, Effect};
use redrive_policy::Span;
use serde_json::{Map, Value};

/// How many states one step creates. The rest is left to the next step.
const MOST_OF_STEP: usize = 2_000;

/// A run in the middle of a step.
pub(super) struct Machine<'c> {
    pub(super) state: RunState,
    pub(super) effects: Vec<Effect>,
    pub(super) context: &'c Context<'c>,
    /// Whether a state has ended in this step.
    changed: bool,
    /// Whether the run has ended, by the inputs so far.
    ended: bool,
    /// How many states this step may still create.
    room: usize,
}

/// How the job of a state ended.
pub(super) enum Ended {
    /// With these outputs, after so many retries.
    Executed(Vec<Map<String, Value>>, u32),
    Errored(String, u32),
    Pruned(u32),
}

impl<'c> Machine<'c> {
    pub(super) const fn new(state: RunState, context: &'c Context<'c>) -> Self {
        Self { state, effects: Vec::new(), context, changed: false, ended: context.ended, room: MOST_OF_STEP }
    }

    /// The run begins.
    pub(super) fn begin(&mut self) {
        self.changed = true;
        let Some(root) = self.state.template.root() else { return };
        let (inputs, delay) = (self.state.inputs.clone(), self.state.start_delay);
        let from = (delay > 0).then(|| self.context.now.after(Span::saturating_ms(delay as f64)).micros());
        let row = Row::new(root as u32, None, Status::Started, self.context.now);
        let index = self.add(row);
        self.enqueue(index, inputs, from);
    }

    /// The job of a state ended. A job whose end the run knows already, or does not wait for, changes nothing.
    pub(super) fn job_ended(&mut self, index: u32, ended: Ended) {
        if !self.state.rows.get(index as usize).is_some_and(|row| row.status == Status::Started) {
            return;
        }
        match ended {
            Ended::Executed(outputs, retries) => self.executed(index, outputs, retries),
            Ended::Errored(error, retries) => {
                let row = self.state.row_mut(index);
                (row.error, row.retries) = (Some(error), retries);
                self.end(index, Status::Errored);
            }
            Ended::Pruned(retries) => {
                self.state.row_mut(index).retries = retries;
                self.end(index, Status::Pruned);
            }
        }
    }

    /// A job that had ended runs again.
    pub(super) fn job_redriven(&mut self, index: u32) {
        let known = self.state.rows.get(index as usize);
        if !known.is_some_and(|row| matches!(row.status, Status::Errored | Status::Pruned)) {
            return;
        }
        self.uncount(index);
        let row = self.state.row_mut(index);
        (row.status, row.error, row.retries) = (Status::Started, None, 0);
        self.count_pending(index, 1);
        self.go_on();
    }

    /// Creates the states after those that have executed, as many as this step may create.
    pub(super) fn expand(&mut self) {
        let backlog = std::mem::take(&mut self.state.backlog);
        let mut left = backlog.into_iter();
        while self.room > 0 {
            let Some(index) = left.next() else { break };
            self.create_next(index);
        }
        self.state.backlog = left.chain(std::mem::take(&mut self.state.backlog)).collect();
    }

    /// Has the next step create the states that this one could not.
    pub(super) fn go_on_later(&mut self) {
        if !self.state.backlog.is_empty() {
            self.effects.push(Effect::Timer(Some(self.context.now)));
        }
    }

    /// A state has outputs: the first is its own, and each further one is a state of its own.
    fn executed(&mut self, index: u32, outputs: Vec<Map<String, Value>>, retries: u32) {
        let (node, up) = (self.state.row(index).node, self.state.row(index).up);
        let mut outputs = outputs.iter().map(|outputs| self.state.read_outputs(node, outputs));
        let first = outputs.next().unwrap_or_default();
        let further: Vec<Map<String, Value>> = outputs.collect();
        let row = self.state.row_mut(index);
        (row.status, row.outputs, row.retries, row.error) = (Status::Executed, first, retries, None);
        self.state.backlog.push(index);
        for (number, outputs) in (1..).zip(further) {
            let row = Row::new(node, up, Status::Executed, self.context.now);
            let copy = self.add(Row { outputs, copy_of: Some((index, number)), ..row });
            self.state.backlog.push(copy);
        }
    }

    fn create_next(&mut self, index: u32) {
        if self.state.row(index).status != Status::Executed {
            return;
        }
        let node = &self.state.template.nodes[self.state.row(index).node as usize];
        let next = node.next_nodes.iter().filter_map(|next| self.state.template.position(next));
        let next = next.filter(|next| self.state.template.nodes[*next].unites.is_none());
        let resolved: Result<Vec<_>, String> = next.map(|next| Ok((next, self.state.resolve(next, index)?))).collect();
        match resolved {
            Ok(states) => {
                for (node, inputs) in states {
                    let row = Row::new(node as u32, Some(index), Status::Started, self.context.now);
                    let created = self.add(row);
                    self.enqueue(created, inputs, None);
                }
                self.end(index, Status::Success);
            }
            Err(why) => {
                self.state.row_mut(index).error = Some(why);
                self.end(index, Status::NextCreatedError);
            }
        }
    }

    /// Adds a state that has not ended.
    pub(super) fn add(&mut self, row: Row) -> u32 {
        let index = self.state.rows.len() as u32;
        self.state.rows.push(row);
        self.count_pending(index, 1);
        index
    }

    pub(super) fn enqueue(&mut self, index: u32, inputs: Map<String, Value>, from_us: Option<i64>) {
        let node = &self.state.template.nodes[self.state.row(index).node as usize];
        let document = Document {
            owner: self.state.namespace.clone(),
            namespace: node.namespace.clone(),
            node: node.node_name.clone(),
            identifier: node.identifier.clone(),
            graph: self.state.graph.clone(),
            run: self.context.id.to_string(),
            inputs,
            retry: self.state.template.retry_policy.clone(),
            from_us,
        };
        self.room = self.room.saturating_sub(1);
        self.effects.push(Effect::Enqueue { child: self.state.child(index), document: document.write() });
    }

    /// A state has ended: what waited for it goes on.
    pub(super) fn end(&mut self, index: u32, status: Status) {
        self.state.row_mut(index).status = status;
        self.count_pending(index, -1);
        if status.has_failed() {
            self.count_failed(index, 1);
        }
        self.changed = true;
        self.unite_around(index);
    }

    /// An operator wants a state to run again, with all of its retries: another state takes its place.
    pub(super) fn retry(&mut self, index: u32, manual: (String, String)) {
        let Some(row) = self.state.rows.get(index as usize) else { return };
        let (node, up, status) = (row.node, row.up, row.status);
        let same = |row: &Row| row.node == node && row.manual.as_ref().is_some_and(|(name, _)| *name == manual.0);
        if self.state.rows.iter().any(same) {
            return;
        }
        // What could be resolved for the first state can be resolved again.
        let inputs = match up {
            Some(up) => self.state.resolve(node as usize, up),
            None => Ok(self.state.inputs.clone()),
        };
        let Ok(inputs) = inputs else { return };
        if status == Status::Started {
            self.effects.push(Effect::CancelJob(self.state.child(index)));
        }
        self.uncount(index);
        self.state.row_mut(index).status = Status::Retried;
        self.go_on();
        let row = Row::new(node, up, Status::Started, self.context.now);
        let created = self.add(Row { manual: Some(manual), ..row });
        self.enqueue(created, inputs, None);
    }

    /// A run that had ended goes on.
    fn go_on(&mut self) {
        if self.ended {
            self.ended = false;
            self.effects.push(Effect::Resume);
        }
    }

    /// The run ends when none of its states goes on.
    pub(super) fn finish(&mut self) {
        if !self.changed || self.state.rows.iter().any(|row| row.status.is_pending()) {
            return;
        }
        let errored = |row: &Row| matches!(row.status, Status::Errored | Status::NextCreatedError);
        let succeeded = !self.state.rows.is_empty() && !self.state.rows.iter().any(errored);
        let status = if succeeded { "SUCCESS" } else { "FAILED" };
        let result = format!("{{\"status\":\"{status}\"}}").into_bytes();
        self.effects.push(Effect::Finish { succeeded, result });
    }
}
