//! Steps: their actions, where they go on, and what catches their failures.

use super::Machine;
use super::scope::{Site, brief, invalid};
use super::state::{Control, Place, Record, Task, TaskId};
use crate::cel::time::{parse_iso, parse_timestamp};
use crate::model::{Action, Clause, Envelope, Step};
use crate::result::{Failure, Outcome};
use crate::template::Template;
use redrive_policy::Moment;
use serde_json::Value;

impl<'d> Machine<'d> {
    /// The step that is executed.
    pub(super) fn step_of(&self, task: &Task) -> Option<&'d Step> {
        self.definition.flows.get(task.frame()?.flow)?.steps.get(task.graph()?.step)
    }

    pub(super) fn start_step(&mut self, id: TaskId, task: &mut Task) -> Option<()> {
        let input = task.graph()?.input.clone();
        match &self.step_of(task)?.action {
            Action::Call { input: shape, .. } => match self.shaped(task, Site::Step, shape.as_ref(), &input) {
                Ok(shaped) => self.descend(task, Place::Step, 0, shaped),
                Err(failure) => self.fail_step(task, failure),
            },
            Action::Gather(gather) => self.start_gather(id, task, gather),
            Action::Match { input: shape, cases, default } => {
                let shaped = match self.shaped(task, Site::Step, shape.as_ref(), &input) {
                    Ok(shaped) => shaped,
                    Err(failure) => return self.fail_step(task, failure),
                };
                let mut selected = default;
                for (when, clause) in cases {
                    match self.holds(task, Site::Match(&shaped), when) {
                        Ok(false) => {}
                        Ok(true) => {
                            selected = clause;
                            break;
                        }
                        Err(failure) => return self.fail_step(task, failure),
                    }
                }
                task.graph_mut()?.exited_at = Some(self.now);
                self.complete_step(task, Site::Match(&shaped), selected, &shaped)
            }
            Action::Pass(clause) => {
                task.graph_mut()?.exited_at = Some(self.now);
                self.complete_step(task, Site::Step, clause, &input)
            }
            Action::Sleep { until, value, next } => self.sleep(task, *until, value, *next),
            Action::Return { value } => match self.shaped(task, Site::Step, value.as_ref(), &input) {
                Ok(value) => {
                    task.frame_mut()?.failure = None;
                    self.note_step_ended(task, None);
                    task.stack.pop();
                    task.control = Control::Rise(Outcome::Success(value));
                    Some(())
                }
                Err(failure) => self.fail_step(task, failure),
            },
            Action::Raise(envelope) => self.raise(task, envelope.as_ref()),
        }
    }

    fn sleep(&mut self, task: &mut Task, until: bool, value: &Template, next: usize) -> Option<()> {
        let entered_at = task.graph()?.entered_at;
        let wake = self.evaluate(task, Site::Step, value).and_then(|value| wake(until, &value, entered_at));
        match wake {
            Ok(wake) if wake > self.now => {
                task.control = Control::Until(wake);
                Some(())
            }
            Ok(_) => self.go_on(task, next),
            Err(failure) => self.fail_step(task, failure),
        }
    }

    /// The time of a Sleep has come.
    pub(super) fn end_sleep(&mut self, task: &mut Task) -> Option<()> {
        match &self.step_of(task)?.action {
            Action::Sleep { next, .. } => self.go_on(task, *next),
            _ => None,
        }
    }

    fn go_on(&mut self, task: &mut Task, next: usize) -> Option<()> {
        task.frame_mut()?.failure = None;
        let input = std::mem::take(&mut task.graph_mut()?.input);
        self.note_step_ended(task, None);
        self.transition_to(task, next, input)
    }

    /// The next step of the graph.
    fn transition_to(&mut self, task: &mut Task, next: usize, input: Value) -> Option<()> {
        task.stack.pop();
        let graph = self.graph_record(task, next, input);
        task.stack.push(Record::Graph(graph));
        task.control = Control::Start;
        Some(())
    }

    /// The end of a step that succeeded: what it emits, what it assigns, where it goes on.
    pub(super) fn complete_step(
        &mut self,
        task: &mut Task,
        site: Site<'_>,
        clause: &Clause,
        default: &Value,
    ) -> Option<()> {
        match self.apply_clause(task, site, clause, default) {
            Ok(output) => {
                task.frame_mut()?.failure = None;
                self.note_step_ended(task, None);
                self.transition_to(task, clause.next, output)
            }
            Err(failure) => self.fail_step(task, failure),
        }
    }

    fn apply_clause(
        &self,
        task: &mut Task,
        site: Site<'_>,
        clause: &Clause,
        default: &Value,
    ) -> Result<Value, Failure> {
        let output = self.shaped(task, site, clause.output.as_ref(), default)?;
        let values = self.values(task, site, &clause.assign)?;
        if let Some(frame) = task.frame_mut() {
            frame.vars.extend(values);
        }
        Ok(output)
    }

    /// The Result of a Call step has come out of its stack.
    pub(super) fn settle_step(&mut self, task: &mut Task, outcome: Outcome) -> Option<()> {
        let graph = task.graph_mut()?;
        graph.exited_at = Some(self.now);
        graph.result = Some(outcome.clone());
        let Action::Call { tail, .. } = &self.step_of(task)?.action else { return None };
        match outcome {
            Outcome::Success(value) => self.complete_step(task, Site::Step, &tail.success, &value),
            Outcome::Failure(failure) => self.fail_step(task, failure),
        }
    }

    /// The step resolves to a failure: a clause of its catch handles it, or it leaves the frame.
    pub(super) fn fail_step(&mut self, task: &mut Task, failure: Failure) -> Option<()> {
        let frame = task.frame_mut()?;
        // A failed recovery: what was being handled stays in the chain.
        let failure = match frame.failure.take() {
            Some(handled) => failure.superseding(handled),
            None => failure,
        };
        frame.failure = Some(failure.clone());
        task.graph_mut()?.exited_at.get_or_insert(self.now);
        self.note_step_ended(task, Some(&failure));
        let catch = match &self.step_of(task)?.action {
            Action::Call { tail, .. } => tail.catch.as_slice(),
            Action::Gather(gather) => gather.tail.catch.as_slice(),
            _ => &[],
        };
        let facts = super::retry::facts(&failure);
        let clause = catch.iter().find(|(matcher, _)| matcher.check(&facts).is_ok());
        let Some((_, clause)) = clause else { return self.leave_graph(task, failure) };
        let input = task.graph()?.input.clone();
        match self.apply_clause(task, Site::Step, clause, &input) {
            Ok(output) => self.transition_to(task, clause.next, output),
            Err(fault) => {
                let failure = fault.superseding(failure);
                task.frame_mut()?.failure = Some(failure.clone());
                self.leave_graph(task, failure)
            }
        }
    }

    fn leave_graph(&mut self, task: &mut Task, failure: Failure) -> Option<()> {
        task.stack.pop();
        task.control = Control::Rise(failure.into());
        Some(())
    }

    fn raise(&mut self, task: &mut Task, envelope: Option<&Envelope>) -> Option<()> {
        let active = task.frame()?.failure.clone();
        let failure = match (envelope, active) {
            (None, Some(active)) => active,
            (None, None) => Failure::error("System.EmptyRaise", "there is no failure that could be raised again"),
            (Some(envelope), active) => match self.construct(task, Site::Step, envelope, None, active) {
                Ok(failure) => failure,
                Err(fault) => return self.fail_step(task, fault),
            },
        };
        task.frame_mut()?.failure = Some(failure.clone());
        self.note_step_ended(task, Some(&failure));
        self.leave_graph(task, failure)
    }

    /// A failure as an author writes it. What is not written is taken from `base`; `superseded` is its `previous`
    /// unless that is written too.
    pub(super) fn construct(
        &self,
        task: &Task,
        site: Site<'_>,
        envelope: &Envelope,
        base: Option<&Failure>,
        superseded: Option<Failure>,
    ) -> Result<Failure, Failure> {
        let field = |template: &Option<Template>| {
            template.as_ref().map(|template| self.evaluate(task, site, template)).transpose()
        };
        let kind = text("type", field(&envelope.kind)?)?;
        if kind.as_deref() == Some("success") {
            return Err(invalid("/type", "a failure has a type other than success", &"success".into()));
        }
        let code = text("code", field(&envelope.code)?)?;
        let message = text("message", field(&envelope.message)?)?;
        let details = field(&envelope.details)?.map(Box::new);
        let retryable = match field(&envelope.retryable)? {
            None => base.and_then(|base| base.retryable),
            Some(Value::Null) => None,
            Some(Value::Bool(flag)) => Some(flag),
            Some(other) => return Err(invalid("/retryable", "true, false or null is expected", &other)),
        };
        let previous = match field(&envelope.previous)? {
            None => superseded,
            Some(Value::Null) => None,
            Some(other) => {
                Some(Failure::from_value(&other, "/previous").map_err(|(path, why)| invalid(&path, why, &other))?)
            }
        };
        let inherited = |part: fn(&Failure) -> Option<String>| base.and_then(part);
        let failure = Failure {
            kind: kind.or_else(|| inherited(|base| Some(base.kind.clone()))).unwrap_or_else(|| "error".to_owned()),
            code: code.or_else(|| inherited(|base| Some(base.code.clone()))).unwrap_or_default(),
            message: message.or_else(|| inherited(|base| base.message.clone())),
            details: details.or_else(|| base.and_then(|base| base.details.clone())),
            retryable,
            previous: previous.map(Box::new),
        };
        Ok(failure.bounded())
    }
}

fn text(name: &str, value: Option<Value>) -> Result<Option<String>, Failure> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(invalid(&format!("/{name}"), format!("a string is expected, not {}", brief(&other)), &other))
        }
    }
}

/// When a Sleep ends.
fn wake(until: bool, value: &Value, entered_at: Moment) -> Result<Moment, Failure> {
    let (name, allowed) = if until { ("/until", "an RFC 3339 timestamp") } else { ("/for", "an ISO 8601 duration") };
    let text = value.as_str().unwrap_or_default();
    let nanos = if until {
        parse_timestamp(text)
    } else {
        parse_iso(text).map(|span| span + i128::from(entered_at.micros()) * 1_000)
    };
    match nanos {
        Some(nanos) => {
            let micros = nanos.div_euclid(1_000).clamp(i64::MIN.into(), i64::MAX.into());
            Ok(Moment::from_micros(i64::try_from(micros).unwrap_or(i64::MAX)))
        }
        None => Err(invalid(name, format!("{} is expected, not {}", allowed, brief(value)), value)),
    }
}
