//! The history of a run: what has happened lately, numbered.

use crate::{Brief, Decision, Note, What};
use redrive_ojs::time::rfc3339;
use redrive_policy::Moment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// How many events are kept of a run.
const KEPT: usize = 200;

/// What has happened lately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Events {
    /// The number of the last event.
    last: u64,
    kept: VecDeque<Event>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number, from 1.
    #[serde(rename = "n")]
    pub seq: u64,
    /// When, in microseconds of the wall clock.
    #[serde(rename = "u")]
    at_us: i64,
    /// Its name, such as `step.started`.
    #[serde(rename = "e")]
    pub name: String,
    #[serde(rename = "f", default, skip_serializing_if = "String::is_empty")]
    flow: String,
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Map::is_empty")]
    more: Map<String, Value>,
}

impl Event {
    /// The event as callers see it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut shown = json!({
            "seq": self.seq, "at": rfc3339(Moment::from_micros(self.at_us)), "event": self.name,
            "flow": self.flow, "step": self.step,
        });
        for (name, value) in &self.more {
            shown[name] = value.clone();
        }
        shown
    }
}

impl Events {
    /// The events behind a number, and how many of them are not kept any more.
    pub(crate) fn after(&self, seq: u64) -> (u64, impl Iterator<Item = &Event>) {
        let first = self.last - self.kept.len() as u64;
        (first.saturating_sub(seq), self.kept.iter().filter(move |event| event.seq > seq))
    }

    /// Passes over notes that were dropped before anyone could write them down.
    pub(crate) fn skip(&mut self, count: u64) {
        if count > 0 {
            self.last += count;
            self.kept.clear();
        }
    }

    /// An event of the run itself.
    pub(crate) fn tell(&mut self, at: Moment, name: &str) {
        self.push(at, (String::new(), None), name, Map::new());
    }

    fn push(&mut self, at: Moment, (flow, step): (String, Option<String>), name: &str, more: Map<String, Value>) {
        self.last += 1;
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        let (seq, at_us, name) = (self.last, at.micros(), name.to_owned());
        self.kept.push_back(Event { seq, at_us, name, flow, step, more });
    }

    /// Writes a note down. `job_id` names the job of a call.
    pub(crate) fn note(&mut self, note: &Note, job_id: impl Fn(u64) -> String) {
        let Some((name, more)) = told(&note.what, job_id) else { return };
        let more = match more {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        self.push(note.at, (note.flow.clone(), note.step.clone()), name, more);
    }
}

/// The name of an event, and what it has besides.
fn told(what: &What, job_id: impl Fn(u64) -> String) -> Option<(&'static str, Value)> {
    Some(match what {
        What::StepStarted { execution, action } => {
            ("step.started", json!({ "action": action, "execution": execution }))
        }
        What::StepEnded { execution, result } => ("step.ended", with(json!({ "execution": execution }), result)),
        What::CallDispatched { call, provider } => {
            ("call.dispatched", json!({ "call": call, "provider": provider.name(), "job_id": job_id(*call) }))
        }
        What::CallAnswered { call, result } => ("call.answered", with(json!({ "call": call }), result)),
        What::CallWithdrawn { call } => ("call.withdrawn", json!({ "call": call })),
        What::RetryEntered { retry, path } => ("retry.entered", json!({ "retry": retry, "path": path })),
        What::AttemptEnded { retry, attempt, result, decided: Some(decided) } => match decided.decision {
            Decision::Retry { delay, next_at, .. } => {
                let waiting = json!({
                    "retry": retry, "attempt": attempt, "code": result.code, "policy": decided.policy,
                    "delay_ms": delay.ms(), "next_at": rfc3339(next_at),
                });
                ("retry.waiting", waiting)
            }
            Decision::Exhausted | Decision::Passed => return None,
        },
        What::RetryEnded { retry, attempt, result, .. } => {
            ("retry.ended", with(json!({ "retry": retry, "attempt": attempt }), result))
        }
        What::TimeoutExceeded { path } => ("timeout.exceeded", json!({ "path": path })),
        What::LoopAgain { path, iteration } => ("loop.again", json!({ "path": path, "iteration": iteration })),
        What::CleanupStarted { path } => ("cleanup.started", json!({ "path": path })),
        What::CleanupEnded { path, result } => ("cleanup.ended", with(json!({ "path": path }), result)),
        What::Ended { result } => ("run.ended", with(json!({}), result)),
        What::AttemptStarted { .. } | What::AttemptEnded { .. } => return None,
    })
}

fn with(mut more: Value, result: &Brief) -> Value {
    more["result"] = result.kind.as_str().into();
    if let Some(code) = &result.code {
        more["code"] = code.as_str().into();
    }
    more
}
