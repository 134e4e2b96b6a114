//! The program of subscriptions.

use super::delivery::{Document, delivery_queue, envelope};
use super::events::told;
use super::subscription::{Definition, Subscription};
use crate::jobs::{PolicyOrigin, body, policy_text};
use redrive_engine::{
    Child, Context, Effect, Effective, Engine, Input, JobPolicy, Program, ProgramStep, RunLimits, Submission,
};
use redrive_policy::{Disposition, Moment, Parts, Policy, Span};
use redrive_store::{Blob, ChildEnd, EventBody, MessageBody, Signal};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The kind of the runs of subscriptions.
pub const WEBHOOK: &str = "ojs.webhook";

/// What a subscription can be told.
pub mod signals {
    /// It becomes what the body says.
    pub const REPLACE: &str = "replace";
    /// It is signed with the secret in the body from now on, and with the one before for a day.
    pub const ROTATE: &str = "rotate";
    /// It ends.
    pub const DELETE: &str = "delete";
}

/// The type of the jobs that are deliveries.
const DELIVER: &str = "webhook.deliver";
/// How long a delivery is leased. The deliverer extends that while it waits for the answer, so that a delivery whose
/// server is gone is sent by another one soon.
const LEASE: Span = Span::from_secs(10);
/// How long one attempt may take: longer than the longest time that an endpoint can be given for its answer.
const TIMEOUT: Span = Span::from_secs(90);
/// As many attempts as the table of the specification has. Its delays come with each failure.
const DEFAULT_RETRY: &str =
    r#"{"max_attempts":8,"initial_interval":"PT30S","backoff_coefficient":4,"max_interval":"PT24H","jitter":false}"#;

/// The program of subscriptions, and how far one of them may fall behind before it is disabled.
#[derive(Clone, Copy, Debug)]
pub struct Webhooks {
    /// How many of its deliveries may be outstanding.
    pub outstanding: u64,
    /// How many events it may read in a row while more of them wait.
    pub behind: u32,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self { outstanding: 10_000, behind: 100_000 }
    }
}

impl Program for Webhooks {
    fn kind(&self) -> &'static str {
        WEBHOOK
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        if context.ended {
            return Ok(ProgramStep { state: context.state.to_vec(), effects: Vec::new() });
        }
        let state = Subscription::read(context.state)?;
        let mut turn = Turn { limits: *self, state, context, effects: Vec::new() };
        match input {
            Input::Started => turn.start(),
            Input::Message(MessageBody::Event { at, event }) => turn.event(*at, event)?,
            Input::Message(MessageBody::JobEnded { end, .. }) => turn.ended(end),
            Input::Message(MessageBody::JobRedriven { .. }) => turn.redriven(),
            Input::Message(MessageBody::Signal(signal)) => turn.signal(signal)?,
            Input::JobRefused { why, .. } => turn.refused(why),
            Input::TimerDue | Input::Message(MessageBody::RunEnded { .. }) => {}
        }
        Ok(ProgramStep { state: turn.state.write(), effects: turn.effects })
    }

    fn submission(&self, engine: &Engine, document: &[u8], _: Moment) -> Result<Submission, String> {
        let document: Document = serde_json::from_slice(document).map_err(|error| format!("a delivery: {error}"))?;
        let retry = document.retry.as_ref().map_or(DEFAULT_RETRY, |retry| retry.get());
        let effective = engine.effective(Some(policy_text(retry)), DELIVER, &document.queue);
        let effective = effective.map_err(|problems| problems.to_string())?;
        let meta = serde_json::json!({ "event_type": document.event_type }).to_string();
        let args = format!("[{}]", document.payload.get());
        let mut text = body::begin(&PolicyOrigin::from(&*effective), &args, Some(&meta), None, 1);
        text.push(b'}');
        // Dead deliveries are found at their subscription. They are none of the dead letters of the application,
        // whatever the policy says.
        let parts = Parts { on_stop: Disposition::Discard, ..Policy::clone(&effective.policy).into_parts() };
        let policy = Policy::new(parts).map_err(|problems| problems.to_string())?;
        let mut effective = Effective::clone(&effective);
        effective.policy = Arc::new(policy);
        Ok(Submission {
            lease: Some(LEASE),
            timeout: Some(TIMEOUT),
            policy: JobPolicy::Effective(Arc::new(effective)),
            ..Submission::new(DELIVER, document.queue, Blob::from(text))
        })
    }

    /// A subscription has no last delivery.
    fn most_children(&self, _: &RunLimits) -> u64 {
        u64::MAX
    }
}

/// One call of the program.
struct Turn<'c> {
    limits: Webhooks,
    state: Subscription,
    context: &'c Context<'c>,
    effects: Vec<Effect>,
}

impl Turn<'_> {
    fn start(&mut self) {
        self.effects.push(told(self.context.id, "webhook.subscription.created", &[]));
        self.listen();
    }

    fn listen(&mut self) {
        self.effects.push(Effect::Listen(self.state.definition.interest()));
    }

    fn event(&mut self, at: Moment, event: &EventBody) -> Result<(), String> {
        self.state.behind = if self.context.more_waits { self.state.behind.saturating_add(1) } else { 0 };
        if !self.state.definition.active {
            self.state.lost += u64::from(self.state.disabled.is_some());
            return Ok(());
        }
        if self.state.outstanding >= self.limits.outstanding {
            self.disable(&format!("{} deliveries were waiting to be answered", self.limits.outstanding));
            return Ok(());
        }
        if self.state.behind >= self.limits.behind {
            self.disable("events came faster than deliveries could be written");
            return Ok(());
        }
        let (_, text) = envelope(at, event);
        let payload = RawValue::from_string(text).map_err(|error| format!("an event: {error}"))?;
        let document = Document {
            queue: delivery_queue(self.context.id).to_string(),
            event_type: event.event_type().to_owned(),
            payload,
            retry: self.state.definition.retry.clone(),
        };
        let document = serde_json::to_vec(&document).map_err(|error| format!("a delivery: {error}"))?;
        self.state.deliveries += 1;
        self.state.outstanding += 1;
        let child = Child { number: self.state.deliveries, at: self.context.now };
        self.effects.push(Effect::Enqueue { child, document });
        Ok(())
    }

    /// Stops a subscription that would grow without end. The event that it is about is the first that is lost.
    fn disable(&mut self, why: &str) {
        self.state.definition.active = false;
        self.state.disabled = Some(why.to_owned());
        self.state.lost += 1;
        self.state.behind = 0;
        let url = self.state.definition.url.as_str().into();
        self.effects.push(told(self.context.id, "webhook.disabled", &[("reason", why.into()), ("url", url)]));
        self.listen();
    }

    fn ended(&mut self, end: &ChildEnd) {
        self.state.outstanding = self.state.outstanding.saturating_sub(1);
        match end {
            ChildEnd::Completed { .. } => self.state.delivered += 1,
            ChildEnd::Failed { .. } | ChildEnd::Expired { .. } => self.state.dead += 1,
            ChildEnd::Cancelled { .. } => {}
        }
    }

    fn redriven(&mut self) {
        self.state.outstanding += 1;
        self.state.dead = self.state.dead.saturating_sub(1);
    }

    /// A delivery that cannot be enqueued, because the operator's caps forbid its policy.
    fn refused(&mut self, why: &str) {
        self.state.outstanding = self.state.outstanding.saturating_sub(1);
        self.disable(&format!("a delivery was refused: {why}"));
    }

    fn signal(&mut self, signal: &Signal) -> Result<(), String> {
        match &*signal.name {
            signals::REPLACE => {
                let new: Definition =
                    serde_json::from_slice(&signal.body).map_err(|error| format!("a new definition: {error}"))?;
                if new.active {
                    self.state.disabled = None;
                    self.state.behind = 0;
                }
                self.state.definition = new;
                self.listen();
            }
            signals::ROTATE => {
                let secret = String::from_utf8(signal.body.to_vec()).map_err(|error| format!("a secret: {error}"))?;
                self.state.rotate(secret, self.context.now);
            }
            signals::DELETE => {
                self.effects.push(told(self.context.id, "webhook.subscription.deleted", &[]));
                self.effects.push(Effect::Finish { succeeded: true, result: b"{}".to_vec() });
            }
            // From a later version; there is nothing to be done about it.
            _ => {}
        }
        Ok(())
    }
}
