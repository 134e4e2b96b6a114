//! A subscription that is interrupted at every write delivers each event once, and loses none.

use redrive_engine::testing::{Outcome, Report, Trial};
use redrive_engine::{Child, Context, Effect, Engine, Input, Program, ProgramStep, Submission};
use redrive_ojs::webhooks::{Definition, Subscription, WEBHOOK, Webhooks};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Job, MessageBody, OtherEvent, Signal};
use std::sync::Arc;

/// A run that subscribes, and later enqueues two jobs and tells something.
struct Busy;

impl Program for Busy {
    fn kind(&self) -> &'static str {
        "busy"
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let child = |number| Child::of(context, number);
        let effects = match input {
            Input::Started => vec![Effect::StartRun { child: child(1), program: WEBHOOK, state: subscription() }],
            // A caller that got no answer sends it again.
            Input::Message(MessageBody::Signal(_)) if context.state.is_empty() => {
                let enqueue = |number| Effect::Enqueue { child: child(number), document: b"{}".to_vec() };
                let event = OtherEvent {
                    event_type: "workflow.started".into(),
                    subject: "s".into(),
                    queue: None,
                    job_type: None,
                    data: Blob::from(*b"{}"),
                };
                vec![enqueue(2), enqueue(3), Effect::Emit { event, with: Some(2) }]
            }
            _ => Vec::new(),
        };
        let said = matches!(input, Input::Message(MessageBody::Signal(_)));
        let state = if said { b"said".to_vec() } else { context.state.to_vec() };
        Ok(ProgramStep { state, effects })
    }

    fn submission(&self, _: &Engine, document: &[u8], _: Moment) -> Result<Submission, String> {
        Ok(Submission::new("a.b", "work", Blob::from(document)))
    }
}

pub(crate) fn subscription() -> Vec<u8> {
    let definition = Definition {
        url: "https://example.org".to_owned(),
        events: vec!["job.completed".to_owned(), "workflow.*".to_owned()],
        queues: Vec::new(),
        job_types: Vec::new(),
        metadata: None,
        retry: None,
        timeout_ms: 30_000,
        active: true,
    };
    Subscription::new(definition, "whsec_test".to_owned()).write()
}

async fn check(worker: fn(&Job) -> Report) -> Outcome {
    let trial = Trial {
        programs: vec![Arc::new(Busy), Arc::new(Webhooks::default())],
        program: "busy",
        state: Blob::default(),
        key: None,
        worker,
        signals: vec![(Span::from_secs(5), Signal { name: "go".into(), body: Blob::default() })],
        lasts: Span::from_secs(3 * 86_400),
    };
    trial.check().await
}

fn deliveries<'o>(outcome: &'o Outcome, state: &str) -> Vec<&'o str> {
    let jobs = outcome.0.lines().filter(|line| line.starts_with("job "));
    jobs.filter(|line| line.contains("webhook.deliver") && line.split(' ').nth(3) == Some(state)).collect()
}

#[tokio::test]
async fn every_event_is_one_delivery() {
    let outcome = check(|job| match (&*job.spec.kind, job.attempt) {
        ("webhook.deliver", 1) => Report::Fails("once".to_owned()),
        _ => Report::Done("1".to_owned()),
    })
    .await;
    assert_eq!(deliveries(&outcome, "completed").len(), 3, "{}", outcome.0);
    for (text, times) in [("\"delivered\":3", 1), ("\"outstanding\":0", 1), ("\"type\":\"workflow.started\"", 1)] {
        assert_eq!(outcome.0.matches(text).count(), times, "{text} in {}", outcome.0);
    }
}

#[tokio::test]
async fn what_is_never_answered_is_dead_and_not_lost() {
    let outcome = check(|job| match &*job.spec.kind {
        "webhook.deliver" => Report::Fails("always".to_owned()),
        _ => Report::Done("1".to_owned()),
    })
    .await;
    assert_eq!(deliveries(&outcome, "discarded").len(), 3, "{}", outcome.0);
    assert!(outcome.0.contains("\"dead\":3"), "{}", outcome.0);
}
