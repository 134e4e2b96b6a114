//! How a workflow goes on: nodes start, end, and take the nodes around them along.

use super::links::Links;
use super::state::{Callback, Kind, NodeError, Status, WorkflowState};
use redrive_engine::{Child, Context, Effect};
use serde_json::value::RawValue;

/// A workflow in the middle of a step.
pub(super) struct Machine<'c> {
    pub(super) state: WorkflowState,
    pub(super) effects: Vec<Effect>,
    pub(super) context: &'c Context<'c>,
    /// Whether the run has ended, by the inputs so far.
    ended: bool,
    /// Worked out when it is needed first.
    links: Option<Links>,
}

/// How a job ended, for its workflow.
pub(super) enum Ended {
    Completed(Option<Box<RawValue>>),
    Failed(NodeError),
    Cancelled,
}

impl<'c> Machine<'c> {
    pub(super) const fn new(state: WorkflowState, context: &'c Context<'c>) -> Self {
        Self { state, effects: Vec::new(), context, ended: context.ended, links: None }
    }

    /// The workflow begins.
    pub(super) fn begin(&mut self) {
        self.tell_started();
        self.start(0);
    }

    /// The job of a node ended. A job whose end the workflow knows already, or does not wait for, changes nothing.
    pub(super) fn job_ended(&mut self, index: u32, ended: Ended) {
        if !self.is_started_job(index) {
            return;
        }
        let needed = self.needs_result(index);
        let node = self.state.node_mut(index);
        let status = match ended {
            Ended::Completed(result) => {
                node.result = result.filter(|_| needed);
                node.error = None;
                Status::Completed
            }
            Ended::Failed(error) => {
                node.error = Some(Box::new(error));
                Status::Failed
            }
            Ended::Cancelled => Status::Cancelled,
        };
        node.status = status;
        if status == Status::Completed {
            self.tell_step_completed(index);
        }
        self.end(index, status);
    }

    /// A job that had ended runs again: what failed because of it waits for it again.
    pub(super) fn job_redriven(&mut self, index: u32) {
        let known = self.state.nodes.get(index as usize);
        let failed = known.is_some_and(|node| {
            node.kind == Kind::Job && matches!(node.status, Status::Failed | Status::Cancelled) && node.job.is_none()
        });
        if !failed || self.state.cancelled_us.is_some() {
            return;
        }
        let node = self.state.node_mut(index);
        (node.status, node.error) = (Status::Started, None);
        let (mut index, mut parent) = (index, node.parent);
        self.links = None;
        while index != 0 {
            self.revive(parent);
            (index, parent) = (parent, self.state.node(parent).parent);
        }
        self.ended = false;
        self.effects.push(Effect::Resume);
    }

    /// Cancels what has not started. Jobs that a worker has may complete.
    pub(super) fn cancel(&mut self) {
        if self.ended {
            return;
        }
        self.state.cancelled_us = Some(self.context.now.micros());
        for index in 0..self.state.nodes.len() as u32 {
            let node = self.state.node_mut(index);
            match (node.kind, node.status) {
                (_, Status::Waiting) => node.status = Status::Cancelled,
                (Kind::Job, Status::Started) => self.effects.push(Effect::WithdrawJob(self.child(index))),
                (_, Status::Started) => node.status = Status::Cancelled,
                _ => {}
            }
        }
        self.finish("cancelled");
    }

    fn start(&mut self, index: u32) {
        let node = self.state.node_mut(index);
        if node.status != Status::Waiting {
            return;
        }
        node.status = Status::Started;
        let (kind, parts) = (node.kind, node.parts.clone());
        match kind {
            Kind::Job => self.enqueue(index),
            Kind::Chain => parts.first().into_iter().for_each(|first| self.start(*first)),
            Kind::Group => parts.into_iter().for_each(|part| self.start(part)),
            Kind::Batch => {
                let jobs = parts.into_iter().filter(|part| self.state.node(*part).callback.is_none());
                jobs.collect::<Vec<_>>().into_iter().for_each(|job| self.start(job));
            }
            Kind::Graph => {
                let ready: Vec<u32> =
                    parts.into_iter().filter(|part| self.state.node(*part).after.is_empty()).collect();
                ready.into_iter().for_each(|part| self.start(part));
            }
        }
    }

    pub(super) fn links(&mut self) -> &mut Links {
        let state = &self.state;
        self.links.get_or_insert_with(|| Links::of(state))
    }

    /// Starts the parts of a graph of which a predecessor has just completed, and no other is missing.
    fn start_after(&mut self, part: u32) {
        let known = self.links.is_some();
        let links = self.links();
        let after = links.after[part as usize].clone();
        if known {
            for next in &after {
                let missing = &mut links.missing[*next as usize];
                *missing = missing.saturating_sub(1);
            }
        }
        let ready: Vec<u32> = after.into_iter().filter(|next| links.missing[*next as usize] == 0).collect();
        ready.into_iter().for_each(|next| self.start(next));
    }

    fn enqueue(&mut self, index: u32) {
        let document = self.document(index);
        let now = self.context.now.micros();
        let node = self.state.node_mut(index);
        (node.job, node.enqueued_us) = (None, Some(now));
        match document {
            Ok(document) => self.effects.push(Effect::Enqueue { child: self.child(index), document }),
            Err(error) => self.job_ended(index, Ended::Failed(error)),
        }
    }

    fn child(&self, index: u32) -> Child {
        Child::of(self.context, index.into())
    }

    fn is_started_job(&self, index: u32) -> bool {
        let node = self.state.nodes.get(index as usize);
        node.is_some_and(|node| node.kind == Kind::Job && node.status == Status::Started)
    }

    /// A node is over. The node that it is a part of goes on, or is over too.
    fn end(&mut self, index: u32, status: Status) {
        self.state.node_mut(index).status = status;
        if index == 0 {
            return self.finish(if status == Status::Completed { "completed" } else { "failed" });
        }
        let parent = self.state.node(index).parent;
        if self.state.node(parent).status != Status::Started {
            return;
        }
        match self.state.node(parent).kind {
            Kind::Job => {}
            Kind::Chain => self.chain_part_ended(parent, index, status),
            Kind::Group => self.end_if_all_over(parent),
            Kind::Batch => self.batch_part_ended(parent),
            Kind::Graph => self.graph_part_ended(parent, index, status),
        }
    }

    fn chain_part_ended(&mut self, chain: u32, part: u32, status: Status) {
        let parts = self.state.node(chain).parts.clone();
        let rest = parts.iter().skip_while(|other| **other != part).skip(1).copied();
        if status != Status::Completed {
            rest.for_each(|later| self.skip(later));
            return self.end(chain, Status::Failed);
        }
        let mut rest = rest;
        match rest.next() {
            Some(next) => self.start(next),
            None => self.end(chain, Status::Completed),
        }
    }

    fn graph_part_ended(&mut self, graph: u32, part: u32, status: Status) {
        if status == Status::Completed {
            self.start_after(part);
        } else {
            self.skip_after(part);
        }
        self.end_if_all_over(graph);
    }

    /// Skips everything in a graph that depends on a node.
    fn skip_after(&mut self, part: u32) {
        let mut skipped = vec![part];
        while let Some(part) = skipped.pop() {
            for other in self.links().after[part as usize].clone() {
                if self.state.node(other).status == Status::Waiting {
                    self.skip(other);
                    skipped.push(other);
                }
            }
        }
    }

    /// A node that will never start.
    fn skip(&mut self, index: u32) {
        let node = self.state.node_mut(index);
        if node.status == Status::Waiting {
            node.status = Status::Cancelled;
            node.parts.clone().into_iter().for_each(|part| self.skip(part));
        }
    }

    fn end_if_all_over(&mut self, index: u32) {
        // A part that could not be enqueued may have ended it already.
        if self.state.node(index).status != Status::Started {
            return;
        }
        let parts = self.state.node(index).parts.clone();
        if parts.iter().all(|part| self.state.node(*part).status.is_over()) {
            let completed = parts.iter().all(|part| self.state.node(*part).status == Status::Completed);
            self.end(index, if completed { Status::Completed } else { Status::Failed });
        }
    }

    /// The callbacks of a batch start when all of its jobs are over; when these are, so is the batch.
    fn batch_part_ended(&mut self, batch: u32) {
        let (callbacks, jobs): (Vec<u32>, Vec<u32>) =
            self.state.node(batch).parts.iter().partition(|part| self.state.node(**part).callback.is_some());
        let status = |state: &WorkflowState, part: u32| state.node(part).status;
        if !jobs.iter().all(|job| status(&self.state, *job).is_over()) {
            return;
        }
        let succeeded = jobs.iter().all(|job| status(&self.state, *job) == Status::Completed);
        for callback in &callbacks {
            let starts = match self.state.node(*callback).callback {
                Some(Callback::Success) => succeeded,
                Some(Callback::Failure) => !succeeded,
                Some(Callback::Complete) | None => true,
            };
            if starts {
                self.start(*callback);
            }
        }
        // A callback that could not be enqueued may have ended it already.
        if self.state.node(batch).status != Status::Started {
            return;
        }
        let started: Vec<Status> =
            callbacks.iter().map(|callback| status(&self.state, *callback)).filter(|s| *s != Status::Waiting).collect();
        if started.iter().all(|status| status.is_over()) {
            // Without a callback that has dealt with it, a failure is the failure of the batch.
            let dealt_with = succeeded || !started.is_empty();
            let completed = started.iter().all(|status| *status == Status::Completed) && dealt_with;
            self.end(batch, if completed { Status::Completed } else { Status::Failed });
        }
    }

    /// A node that failed because of one of its parts waits for it again, and so does what comes after that part.
    fn revive(&mut self, index: u32) {
        let node = self.state.node_mut(index);
        node.status = Status::Started;
        let parts = node.parts.clone();
        parts.iter().for_each(|part| self.wait_again(*part));
        if self.state.node(index).kind == Kind::Graph {
            // What depends on others that have failed, and do not run again, is skipped as before.
            for part in parts {
                if matches!(self.state.node(part).status, Status::Failed | Status::Cancelled) {
                    self.skip_after(part);
                }
            }
        }
    }

    /// What was skipped, and never enqueued, waits again.
    fn wait_again(&mut self, index: u32) {
        let node = self.state.node_mut(index);
        let never_started = node.kind != Kind::Job || node.job.is_some();
        if node.status == Status::Cancelled && never_started {
            node.status = Status::Waiting;
            node.parts.clone().into_iter().for_each(|part| self.wait_again(part));
        }
    }

    fn finish(&mut self, state: &str) {
        self.ended = true;
        self.tell_over(state);
        let result = format!("{{\"state\":\"{state}\"}}").into_bytes();
        self.effects.push(Effect::Finish { succeeded: state == "completed", result });
    }
}
