//! Schedules that are interrupted at every write enqueue each slot once.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use redrive_engine::testing::{Outcome, Report, Trial};
use redrive_ojs::Limits;
use redrive_ojs::cron::{Cron, CronJob, Definition, KIND, Overlap, signals};
use redrive_policy::Span;
use redrive_store::{Blob, Job, Signal};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Every ten seconds, for a minute; then it is deleted.
async fn check(overlap: Overlap, worker: fn(&Job) -> Report) -> Outcome {
    let template = r#"{"type":"a.b","args":[],"options":{"retry":{"initial_interval":"PT15S","jitter":false}}}"#;
    let definition = Definition {
        name: "test".to_owned(),
        expression: "*/10 * * * * *".to_owned(),
        timezone: "UTC".to_owned(),
        overlap,
        enabled: true,
        description: None,
        template: RawValue::from_string(template.to_owned()).expect("JSON"),
    };
    let trial = Trial {
        programs: vec![Arc::new(Cron::new(Limits::default()))],
        program: KIND,
        state: Blob::from(CronJob::beginning(definition).expect("written")),
        key: Some("cron:test".into()),
        worker,
        signals: vec![(Span::from_secs(65), Signal { name: signals::DELETE.into(), body: Blob::default() })],
        lasts: Span::from_secs(200),
    };
    trial.check().await
}

fn jobs(outcome: &Outcome) -> usize {
    outcome.0.lines().filter(|line| line.starts_with("job ")).count()
}

#[tokio::test]
async fn each_slot_is_one_job() {
    for overlap in Overlap::ALL {
        let outcome = check(overlap, |_| Report::Done("1".to_owned())).await;
        assert_eq!(jobs(&outcome), 6, "{overlap:?}: {}", outcome.0);
    }
}

#[tokio::test]
async fn slots_overlap_while_a_job_waits_for_its_retry() {
    // The first attempt of each job fails, and the second comes 15 s later.
    let worker = |job: &Job| match job.attempt {
        1 => Report::Fails("once".to_owned()),
        _ => Report::Done("1".to_owned()),
    };
    for (overlap, expected) in
        [(Overlap::Allow, 6), (Overlap::Skip, 3), (Overlap::CancelPrevious, 6), (Overlap::Enqueue, 4)]
    {
        let outcome = check(overlap, worker).await;
        assert_eq!(jobs(&outcome), expected, "{overlap:?}: {}", outcome.0);
    }
}
