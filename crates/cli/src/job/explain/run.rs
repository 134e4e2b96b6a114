//! One run: where it ran, and three times. It *waited* from when the job could run until a worker took it, it
//! *ran* from then until its end, and its start lies so long *since created*.

use super::{Decisions, FailureRecord};
use crate::when;
use redrive_policy::Span;
use serde_json::Value;

/// When a run happened, and where.
pub(super) struct Run<'a> {
    created: Option<&'a str>,
    available: Option<&'a str>,
    started: Option<&'a str>,
    /// Absent while it runs.
    ended: Option<&'a str>,
    worker: Option<&'a str>,
}

impl<'a> Run<'a> {
    pub(super) fn failed(job: &'a Value, failure: &'a FailureRecord) -> Self {
        Self {
            created: job["created_at"].as_str(),
            available: Some(&failure.available_at),
            started: Some(&failure.started_at),
            ended: Some(&failure.at),
            worker: failure.worker_id.as_deref(),
        }
    }

    /// The latest run of a job that is completed, or active.
    pub(super) fn latest(job: &'a Value, decisions: &'a Decisions) -> Self {
        Self {
            created: job["created_at"].as_str(),
            available: job["enqueued_at"].as_str(),
            started: job["started_at"].as_str(),
            ended: job["completed_at"].as_str(),
            worker: job["worker_id"].as_str().or(decisions.completed_by.as_deref()),
        }
    }

    /// A line about it.
    pub(super) fn line(&self) -> String {
        let Some(started) = self.started else { return String::new() };
        let mut line = format!("    Started {started}");
        if let Some(worker) = self.worker {
            line.push_str(&format!(" on worker {worker}"));
        }
        let mut add = |lead: &str, span: Option<Span>, rest: &str| {
            line.extend(span.map(|span| format!("{lead}{}{rest}", rounded(span))));
        };
        add(", ", when::between(self.created, self.started), " since created");
        add("; waited ", when::between(self.available, self.started), "");
        add(", ran ", when::between(self.started, self.ended), "");
        line + ".\n"
    }
}

/// To whole milliseconds, or to tenths of them where there are few.
fn rounded(span: Span) -> Span {
    let step = if span.ms() < 10.0 { 0.1 } else { 1.0 };
    Span::saturating_ms((span.ms() / step).round() * step)
}
