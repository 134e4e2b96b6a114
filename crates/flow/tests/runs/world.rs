//! A trial of a flow, and what has become of it.

use redrive_engine::testing::{Report, Trial};
use redrive_flow::runs::{FLOW, FlowState, Flows};
use redrive_ojs::Limits;
use redrive_policy::Span;
use redrive_store::{Blob, Job, Signal};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const JOB: &str = "mwl:provider.call/redrive/job/v1";
pub(crate) const HTTP: &str = "mwl:provider.call/redrive/http/v1";

/// A flow that is tried.
pub(crate) struct Tried {
    pub(crate) definition: Value,
    pub(crate) input: Value,
    pub(crate) arguments: Value,
    pub(crate) worker: fn(&Job) -> Report,
    /// Cancelled after so many seconds.
    pub(crate) cancelled_after: Option<u32>,
}

/// How a trial has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The Result.
    pub(crate) result: Value,
    /// The state of the run.
    pub(crate) state: Value,
    /// A line for each job: its id, its type, its state, its attempts, and so on.
    pub(crate) jobs: Vec<String>,
}

impl Tried {
    pub(crate) fn new(definition: Value) -> Self {
        let worker = |_: &Job| Report::Fails("nothing has jobs here".to_owned());
        Self { definition, input: Value::Null, arguments: json!({}), worker, cancelled_after: None }
    }

    pub(crate) fn worker(mut self, worker: fn(&Job) -> Report) -> Self {
        self.worker = worker;
        self
    }

    /// Interrupts the run before and after every write.
    pub(crate) async fn check(&self) -> Ended {
        let text = self.definition.to_string();
        if let Err(problems) = redrive_flow::Definition::read(&text) {
            panic!("{problems:#?}\n{text}");
        }
        let state =
            FlowState::new("tried", 1, &text, self.input.clone(), self.arguments.clone()).expect("not too deep");
        let cancel = |seconds| (Span::from_secs(seconds), Signal { name: "cancel".into(), body: Blob::default() });
        let trial = Trial {
            programs: vec![Arc::new(Flows::new(Limits::default()))],
            program: FLOW,
            state: Blob::from(state.write()),
            key: None,
            worker: self.worker,
            signals: self.cancelled_after.map(cancel).into_iter().collect(),
            lasts: Span::from_secs(100_000),
        };
        Ended::read(&trial.check().await.0)
    }
}

impl Ended {
    /// What the outcome of a trial says of its run.
    fn read(outcome: &str) -> Self {
        let mut lines = outcome.lines();
        let (run, state) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let (_, end) = run.split_once("end Some((").unwrap_or_else(|| panic!("the run has not ended: {outcome}"));
        let (_, quoted) = end.split_once(", ").expect("a result");
        let quoted = quoted.trim_end_matches("))");
        // It is written as Rust writes a text, which for these texts is as JSON writes one.
        let text: String = serde_json::from_str(&quoted.replace("\\'", "'")).expect("a text");
        Self {
            result: serde_json::from_str(&text).expect("a Result"),
            state: serde_json::from_str(state.trim()).expect("a state"),
            jobs: lines.filter(|line| line.starts_with("job ")).map(str::to_owned).collect(),
        }
    }

    pub(crate) fn value(&self) -> &Value {
        assert_eq!(self.result["type"], "success", "{}", self.result);
        &self.result["value"]
    }

    pub(crate) fn code(&self) -> &str {
        self.result["code"].as_str().unwrap_or_else(|| panic!("no failure: {}", self.result))
    }

    /// The jobs of a type.
    pub(crate) fn jobs_of(&self, kind: &str) -> Vec<&str> {
        let of = |line: &&String| line.split(' ').nth(2) == Some(kind);
        self.jobs.iter().filter(of).map(String::as_str).collect()
    }
}

/// A call that a worker has as a job of this type.
pub(crate) fn job(kind: &str) -> Value {
    let retry = json!({ "max_attempts": 2, "initial_interval": "PT1S", "jitter": false });
    json!({ "provider": JOB, "with": { "type": kind, "queue": "work", "retry": retry } })
}

/// A worker that does what the type of a job says.
pub(crate) fn worker(job: &Job) -> Report {
    match &*job.spec.kind {
        "fails" => Report::Fails("as it says".to_owned()),
        "fails.once" if job.attempt == 1 => Report::Fails("the first time".to_owned()),
        // Some jobs, whatever was interrupted the same ones.
        "sometimes" if job.id.to_bytes()[15].is_multiple_of(3) => Report::Fails("this one".to_owned()),
        kind => Report::Done(json!({ "done": kind }).to_string()),
    }
}
