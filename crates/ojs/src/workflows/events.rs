//! What workflows tell of themselves.

use super::machine::Machine;
use super::state::{Kind, Status};
use super::view::kind_name;
use redrive_engine::Effect;
use redrive_policy::Moment;
use redrive_store::OtherEvent;
use serde_json::{Value, json};

impl Machine<'_> {
    pub(super) fn tell_started(&mut self) {
        let total = self.state.count(|_| true);
        self.tell("workflow.started", &[("total_steps", total.into())]);
    }

    /// A job completed.
    pub(super) fn tell_step_completed(&mut self, index: u32) {
        let node = self.state.node(index);
        let since = node.enqueued_us.map_or(self.context.created, Moment::from_micros);
        let (step, job_type) = (self.step_name(index), node.job_type.clone());
        let remaining = self.state.count(|status| !status.is_over());
        self.tell(
            "workflow.step_completed",
            &[
                ("step_id", step.into()),
                ("step_type", job_type.into()),
                ("duration_ms", self.ms_since(since)),
                ("steps_remaining", remaining.into()),
            ],
        );
    }

    /// The workflow is over; `state` is the word for how.
    pub(super) fn tell_over(&mut self, state: &str) {
        let total = self.state.count(|_| true);
        let duration = ("duration_ms", self.ms_since(self.context.created));
        match state {
            "completed" => self.tell("workflow.completed", &[("total_steps", total.into()), duration]),
            "cancelled" => self.tell("workflow.cancelled", &[("total_steps", total.into()), duration]),
            _ => self.tell_failed(),
        }
    }

    /// The step that is named is the first that failed; else one that was cancelled.
    fn tell_failed(&mut self) {
        let jobs = || (0..).zip(&self.state.nodes).filter(|(_, node)| node.kind == Kind::Job);
        let of = |status| jobs().find(|(_, node)| node.status == status).map(|(index, _)| index);
        let index: u32 = of(Status::Failed).or_else(|| of(Status::Cancelled)).unwrap_or(0);
        let node = self.state.node(index);
        let error = match &node.error {
            Some(error) => json!({ "code": error.code, "message": error.message }),
            None => json!({ "code": "cancelled", "message": "the job was cancelled" }),
        };
        let (step, job_type) = (self.step_name(index), node.job_type.clone());
        let failed = [("failed_step_id", step.into()), ("failed_step_type", job_type.into()), ("error", error)];
        self.tell("workflow.failed", &failed);
    }

    /// What the caller calls a step; else its index in the list of steps.
    fn step_name(&self, index: u32) -> String {
        let before = self.state.nodes.iter().take(index as usize).filter(|node| node.kind == Kind::Job);
        self.state.node(index).id.clone().unwrap_or_else(|| before.count().to_string())
    }

    fn ms_since(&self, since: Moment) -> Value {
        Value::from(self.context.now.since(since).ms().round() as u64)
    }

    fn tell(&mut self, event_type: &str, more: &[(&str, Value)]) {
        let id = self.context.id.to_string();
        let name = self.state.name.as_deref().unwrap_or_else(|| kind_name(self.state.nodes[0].kind));
        let mut data = json!({ "workflow_id": id, "workflow_name": name });
        for (key, value) in more {
            data[*key] = value.clone();
        }
        let event = OtherEvent {
            event_type: event_type.into(),
            subject: id.into(),
            queue: None,
            job_type: None,
            data: data.to_string().into_bytes().into(),
        };
        self.effects.push(Effect::Emit { event, with: None });
    }
}
