//! What expressions see, by where they stand.

use super::Machine;
use super::state::{CallRecord, CleanupRecord, EntryRecord, FrameRecord, GraphRecord, Own, Record, Task, Window};
use crate::cel::time::shown_moment;
use crate::cel::{Fault, Roots, Val};
use crate::model::{Assign, FlowId, StepId};
use crate::result::{Failure, Outcome};
use crate::template::Template;
use redrive_policy::Moment;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where an expression stands.
#[derive(Clone, Copy)]
pub(super) enum Site<'a> {
    /// A field of the step.
    Step,
    /// A clause of a Match, with its input.
    Match(&'a Value),
    /// `input` or `with` of a call.
    Call(&'a CallRecord),
    /// An arm of a call.
    Arm(&'a CallRecord, &'a Outcome),
    /// A phase of the innermost middleware entry.
    Phase { entered_at: Moment, result: Option<&'a Outcome> },
}

/// The records around an expression.
struct Around<'a> {
    frame: &'a FrameRecord,
    graph: Option<&'a GraphRecord>,
    cleanup: Option<(&'a EntryRecord, &'a CleanupRecord)>,
}

pub(super) fn failed(fault: Fault) -> Failure {
    match fault {
        Fault::Evaluation(message) => Failure::error("System.ExpressionEvaluationError", message),
        Fault::Unrepresentable(message) => Failure::error("System.UnrepresentableValue", message),
    }
}

/// A value that is not what a field or a schema takes.
pub(super) fn invalid(path: &str, message: impl Into<String>, found: &Value) -> Failure {
    let message = message.into();
    let details =
        serde_json::json!({ "problems": [{ "path": path, "schema": path, "message": message, "value": found }] });
    Failure::error("System.ParameterValidationFailed", format!("{path}: {message}")).with_details(details).bounded()
}

impl Machine<'_> {
    /// The value of a field.
    pub(super) fn evaluate(&self, task: &Task, site: Site<'_>, template: &Template) -> Result<Value, Failure> {
        if let Template::Literal(value) = template {
            return Ok(value.clone());
        }
        let roots = self.roots(task, site, &|root| template.mentions(root));
        template.evaluate(&roots).map_err(failed)
    }

    /// The value of a field, or what passes through where it is not written.
    pub(super) fn shaped(
        &self,
        task: &Task,
        site: Site<'_>,
        template: Option<&Template>,
        default: &Value,
    ) -> Result<Value, Failure> {
        template.map_or_else(|| Ok(default.clone()), |template| self.evaluate(task, site, template))
    }

    /// A condition.
    pub(super) fn holds(&self, task: &Task, site: Site<'_>, template: &Template) -> Result<bool, Failure> {
        match self.evaluate(task, site, template)? {
            Value::Bool(flag) => Ok(flag),
            other => {
                let message = format!("a condition is true or false, not {}", brief(&other));
                Err(Failure::error("System.ExpressionEvaluationError", message))
            }
        }
    }

    /// The values of a block, none of which sees another.
    pub(super) fn values(&self, task: &Task, site: Site<'_>, assign: &Assign) -> Result<Vec<(String, Value)>, Failure> {
        let values = assign.iter().map(|(name, template)| Ok((name.clone(), self.evaluate(task, site, template)?)));
        values.collect()
    }

    fn around<'a>(&'a self, task: &'a Task) -> Option<Around<'a>> {
        let (mut graph, mut cleanup, mut task) = (None, None, task);
        loop {
            let mut entry_above_is_cleanup: Option<&CleanupRecord> = None;
            for record in task.stack.iter().rev() {
                match record {
                    Record::Frame(frame) => return Some(Around { frame, graph, cleanup }),
                    Record::Graph(found) if graph.is_none() => graph = Some(found),
                    Record::Cleanup(found) if cleanup.is_none() && graph.is_none() => {
                        entry_above_is_cleanup = Some(found);
                    }
                    Record::Entry(entry) => {
                        if let Some(found) = entry_above_is_cleanup.take() {
                            cleanup = Some((entry, found));
                        }
                    }
                    _ => {}
                }
            }
            task = self.state.tasks.get(&task.parent?.0)?;
        }
    }

    /// In which flow a task is, and at which step of it.
    pub(super) fn whereabouts(&self, task: &Task) -> (FlowId, Option<StepId>) {
        let around = self.around(task);
        around.map_or((0, None), |around| (around.frame.flow, around.graph.map(|graph| graph.step)))
    }

    fn roots<'a>(&'a self, task: &'a Task, site: Site<'a>, mentions: &dyn Fn(&str) -> bool) -> Roots<'a> {
        let mut values = BTreeMap::new();
        let around = self.around(task);
        let pin = match (site, &around) {
            (Site::Call(call) | Site::Arm(call, _), _) => call.entered_at,
            (Site::Phase { entered_at, .. }, _) => entered_at,
            (_, Some(Around { graph: Some(graph), .. })) => graph.entered_at,
            _ => self.now,
        };
        let mut add = |name: &'static str, value: &dyn Fn() -> Option<Val<'a>>| {
            if mentions(name) {
                values.extend(value().map(|value| (name, value)));
            }
        };
        add("execution", &|| Some(self.execution()));
        if let Some(Around { frame, graph, cleanup }) = &around {
            let frame = *frame;
            add("vars", &|| Some(Val::JsonMap(&frame.vars)));
            add("frame", &|| Some(frame_root(frame)));
            add("failure", &|| Some(frame.failure.as_ref().map_or(Val::Null, failure)));
            if let Some(graph) = *graph {
                let in_stack = matches!(site, Site::Phase { .. } | Site::Call(_) | Site::Arm(..));
                add("step", &|| Some(self.step_root(frame, graph, in_stack)));
            }
            add("middleware", &|| match (site, task.entry(), cleanup) {
                (Site::Phase { entered_at, result }, Some(entry), _) => Some(middleware(entry, entered_at, result)),
                (_, _, Some((entry, cleanup))) => Some(middleware(entry, cleanup.entered_at, Some(&cleanup.result))),
                _ => None,
            });
            if let (Site::Match(input), Some(graph)) = (site, graph) {
                let metadata = || metadata(graph.entered_at, graph.exited_at);
                add("match", &|| Some(Val::record([("input", Val::of(input)), ("metadata", metadata())])));
            }
        }
        match site {
            Site::Call(call) => add("call", &|| Some(call_root(call, None))),
            Site::Arm(call, result) => {
                add("call", &|| Some(call_root(call, Some(result))));
                add("provider", &|| match &call.window {
                    Window::Provider { metadata } => Some(Val::record([
                        ("input", Val::of(&call.delivered)),
                        ("result", outcome(result)),
                        ("metadata", Val::of(metadata)),
                    ])),
                    Window::Flow { .. } => None,
                });
                add("flow", &|| match &call.window {
                    Window::Flow { vars, entered_at, exited_at } => Some(Val::record([
                        ("input", Val::of(&call.delivered)),
                        ("vars", Val::JsonMap(vars)),
                        ("result", outcome(result)),
                        ("metadata", metadata(*entered_at, Some(*exited_at))),
                    ])),
                    Window::Provider { .. } => None,
                });
            }
            _ => {}
        }
        Roots { values, pin, now: self.now }
    }

    fn execution<'a>(&'a self) -> Val<'a> {
        let platform = Val::record([]);
        let metadata = metadata(self.state.entered_at, None);
        Val::record([("id", Val::borrowed(&self.state.id)), ("metadata", metadata), ("platform", platform)])
    }

    /// `in_stack`: the step has no Result yet where its middleware and its call stand.
    fn step_root<'a>(&'a self, frame: &FrameRecord, graph: &'a GraphRecord, in_stack: bool) -> Val<'a> {
        let step = &self.definition.flows[frame.flow].steps[graph.step];
        let mut times = times(graph.entered_at, graph.exited_at.filter(|_| !in_stack));
        times.extend(graph.dispatches.map(|count| ("dispatchCount", Val::Double(count as f64))));
        let mut members = vec![
            ("name", Val::borrowed(&step.name)),
            ("id", Val::text(format!("{}/{}", self.state.id, graph.id))),
            ("action", Val::borrowed(step.action.name())),
            ("input", Val::of(&graph.input)),
            ("metadata", Val::record(times)),
        ];
        if !in_stack {
            members.extend(graph.result.as_ref().map(|result| ("result", outcome(result))));
            let all = |results: &'a Vec<Outcome>| results.iter().map(outcome).collect();
            members
                .extend(graph.results.as_ref().map(|results| ("results", Val::List(std::rc::Rc::new(all(results))))));
        }
        Val::record(members)
    }
}

fn times<'a>(entered_at: Moment, exited_at: Option<Moment>) -> Vec<(&'static str, Val<'a>)> {
    let mut times = vec![("enteredAt", Val::text(shown_moment(entered_at)))];
    times.extend(exited_at.map(|at| ("exitedAt", Val::text(shown_moment(at)))));
    times
}

fn metadata<'a>(entered_at: Moment, exited_at: Option<Moment>) -> Val<'a> {
    Val::record(times(entered_at, exited_at))
}

fn frame_root(frame: &FrameRecord) -> Val<'_> {
    Val::record([("input", Val::of(&frame.input)), ("metadata", metadata(frame.entered_at, None))])
}

fn call_root<'a>(call: &'a CallRecord, result: Option<&'a Outcome>) -> Val<'a> {
    let mut times = times(call.entered_at, call.accepted_at);
    times.extend(call.dispatched_at.map(|at| ("dispatchedAt", Val::text(shown_moment(at)))));
    times.extend(call.accepted_at.map(|at| ("acceptedAt", Val::text(shown_moment(at)))));
    let mut members = vec![("input", Val::of(&call.input)), ("metadata", Val::record(times))];
    members.extend(call.index.map(|index| ("index", Val::Double(index as f64))));
    members.extend(result.map(|result| ("result", outcome(result))));
    Val::record(members)
}

fn middleware<'a>(entry: &'a EntryRecord, entered_at: Moment, result: Option<&'a Outcome>) -> Val<'a> {
    let mut times = times(entered_at, None);
    match &entry.own {
        Own::Retry(retry) => times.push(("attempt", Val::Double(retry.attempt.into()))),
        Own::Timeout { deadline: Some(deadline) } => times.push(("deadline", Val::text(shown_moment(*deadline)))),
        Own::Loop { iteration, .. } => times.push(("iteration", Val::Double(*iteration as f64))),
        Own::Timeout { deadline: None } | Own::Finally => {}
    }
    let mut members = vec![("input", Val::of(&entry.input)), ("metadata", Val::record(times))];
    members.extend(result.map(|result| ("result", outcome(result))));
    Val::record(members)
}

fn outcome(result: &Outcome) -> Val<'_> {
    match result {
        Outcome::Success(value) => Val::record([("type", Val::borrowed("success")), ("value", Val::of(value))]),
        Outcome::Failure(found) => failure(found),
    }
}

fn failure(found: &Failure) -> Val<'_> {
    let mut members = vec![("type", Val::borrowed(&found.kind)), ("code", Val::borrowed(&found.code))];
    members.extend(found.message.as_ref().map(|message| ("message", Val::borrowed(message))));
    members.extend(found.details.as_ref().map(|details| ("details", Val::of(details))));
    members.extend(found.retryable.map(|flag| ("retryable", Val::Bool(flag))));
    members.extend(found.previous.as_ref().map(|previous| ("previous", failure(previous))));
    Val::record(members)
}

/// A value in a message.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 60 => "a long string".to_owned(),
        other => other.to_string(),
    }
}
