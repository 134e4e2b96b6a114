//! The programs of registered nodes and of graphs.

use crate::definition::{GRAPH, GraphDefinition, NODE, REPLACE};
use crate::run::RUN;
use crate::template::schedule;
use crate::trigger::TriggerRequest;
use redrive_engine::{
    CLOCK_STEPPED, Child, Context, Effect, Engine, Input, Program, ProgramStep, RunLimits, Submission,
};
use redrive_ojs::cron::Slots;
use redrive_policy::Moment;
use redrive_store::MessageBody;

/// The program of registered nodes, which are there to be read and replaced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nodes;

/// The program of graphs: they are read and replaced, and trigger themselves when their schedules are due.
#[derive(Clone, Copy, Debug, Default)]
pub struct Graphs;

impl Program for Nodes {
    fn kind(&self) -> &'static str {
        NODE
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let state = signal(input, REPLACE).unwrap_or(context.state).to_vec();
        Ok(ProgramStep { state, effects: Vec::new() })
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("a registered node enqueues no jobs".to_owned())
    }
}

impl Program for Graphs {
    fn kind(&self) -> &'static str {
        GRAPH
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let mut graph = GraphDefinition::read(context.state)?;
        let mut effects = Vec::new();
        match input {
            Input::Started => graph.put(context.now),
            Input::TimerDue => effects = graph.trigger_due(context.now),
            Input::Message(_) => {
                if let Some(body) = signal(input, REPLACE) {
                    let before = std::mem::replace(&mut graph, GraphDefinition::read(body)?);
                    (graph.due, graph.started) = (before.due, before.started);
                    graph.put(context.now);
                } else if signal(input, CLOCK_STEPPED).is_some() {
                    graph.due.values_mut().for_each(|slots| slots.clock_stepped(context.now));
                    effects = graph.trigger_due(context.now);
                }
            }
            Input::JobRefused { .. } => {}
        }
        effects.push(Effect::Timer(graph.due.values().filter_map(Slots::next).min()));
        Ok(ProgramStep { state: graph.written()?, effects })
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("a graph enqueues no jobs; its runs do".to_owned())
    }

    fn follows_wall_clock(&self) -> bool {
        true
    }

    /// A graph that triggers itself has no last run.
    fn most_children(&self, _: &RunLimits) -> u64 {
        u64::MAX
    }
}

impl GraphDefinition {
    /// It is put: what its triggers have dealt with is not due again, and a trigger that it no longer has is gone.
    fn put(&mut self, now: Moment) {
        self.put_us = now.micros();
        let mut before = std::mem::take(&mut self.due);
        for expression in self.template.triggers.iter().filter(|_| self.errors.is_empty()) {
            let mut slots = before.remove(expression).or_else(|| self.due.remove(expression)).unwrap_or_default();
            // What could be read when the graph was put can be read again.
            if slots.next().is_none()
                && let Ok(schedule) = schedule(expression)
            {
                slots.plan(&schedule, now);
            }
            self.due.insert(expression.clone(), slots);
        }
    }

    /// Starts a run for each trigger that is due. Of several slots that a trigger has missed, the last one counts.
    fn trigger_due(&mut self, now: Moment) -> Vec<Effect> {
        let mut due = Vec::new();
        for (expression, slots) in &mut self.due {
            let Ok(schedule) = schedule(expression) else { continue };
            match slots.take(&schedule, now) {
                Some(slot) => due.push(slot),
                None => slots.plan(&schedule, now),
            }
        }
        let mut effects = Vec::new();
        for slot in due {
            // A graph that could be put can be triggered.
            if let Ok(run) = self.begin(TriggerRequest::default()) {
                self.started += 1;
                let child = Child { number: self.started, at: slot };
                effects.push(Effect::StartRun { child, program: RUN, state: run.write() });
            }
        }
        effects
    }

    fn written(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| format!("the graph cannot be written: {error}"))
    }
}

/// The body of the signal of this name, if an input is one.
fn signal<'i>(input: &'i Input<'_>, name: &str) -> Option<&'i [u8]> {
    match input {
        Input::Message(MessageBody::Signal(signal)) if &*signal.name == name => Some(&signal.body),
        _ => None,
    }
}
