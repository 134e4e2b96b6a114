//! Transactions that the database rolls back: repeated if that is safe, else reported, never half done.

use crate::subject::{new_schema, open, plain_client, runtime};
use crate::trigger::{self, When};
use crate::work::{claim, decision, failed, job, later, now};
use redrive_policy::{Moment, Span};
use redrive_store::postgres::Postgres;
use redrive_store::{
    AttemptOutcome, Filter, Held, Job, JobId, LeaseRef, Listed, Missing, NewJob, Page, Queue, Redrive, Refusal,
    Retention, Settled, Settlement, Store, StoreError, Token,
};

/// Everything that writes.
#[derive(Clone, Copy, Debug)]
enum Step {
    EnqueueIntoNewQueue,
    EnqueueOneMore,
    Claim,
    Extend,
    Fail,
    Promote,
    ClaimAll,
    Succeed,
    Reclaim,
    Cancel,
    Redrive,
    CancelAgain,
    Remove,
    Prune,
    Pause,
}

/// A job that goes through all of them, and what each returns when it succeeds.
const STEPS: [(Step, &str); 15] = [
    (Step::EnqueueIntoNewQueue, "2 jobs"),
    (Step::EnqueueOneMore, "1 jobs"),
    (Step::Claim, "1 jobs"),
    (Step::Extend, "active"),
    (Step::Fail, "retryable"),
    (Step::Promote, "1 jobs"),
    (Step::ClaimAll, "3 jobs"),
    (Step::Succeed, "completed"),
    (Step::Reclaim, "2 jobs"),
    (Step::Cancel, "cancelled"),
    (Step::Redrive, "available"),
    (Step::CancelAgain, "cancelled"),
    (Step::Remove, "cancelled"),
    (Step::Prune, "1 jobs"),
    (Step::Pause, "paused"),
];

/// The jobs that go through it.
struct Jobs([NewJob; 3]);

impl Jobs {
    fn new() -> Self {
        Self([job("q"), job("q"), job("q")])
    }

    async fn apply(&self, store: &Postgres, step: Step) -> Result<String, StoreError> {
        let Self([first, second, third]) = self;
        let many = |count: usize| format!("{count} jobs");
        Ok(match step {
            Step::EnqueueIntoNewQueue => {
                many(store.enqueue(vec![first.clone(), second.clone()], now()).await?.unwrap().len())
            }
            Step::EnqueueOneMore => many(store.enqueue(vec![third.clone()], now()).await?.unwrap().len()),
            Step::Claim => many(store.claim(claim("q", 1, 1), now()).await?.jobs.len()),
            Step::Extend => state(store.extend(vec![lease_ref(first.id)], None, later(500)).await?),
            Step::Fail => state(settled(store, first.id, failed(now())).await?),
            Step::Promote => many(store.promote(&Held::new(), 9, later(2_000)).await?.len()),
            Step::ClaimAll => many(store.claim(claim("q", 9, 2), later(2_000)).await?.jobs.len()),
            Step::Succeed => state(settled(store, second.id, AttemptOutcome::Done(None)).await?),
            Step::Reclaim => many(store.reclaim(&|job, _| decision(job, later(60_000)), 9, later(60_000)).await?.len()),
            Step::Cancel | Step::CancelAgain => {
                let cancelled = store.cancel(third.id, later(60_000)).await?;
                state(vec![cancelled.map(|cancelled| cancelled.job)])
            }
            Step::Redrive => {
                let redriven = store.redrive(third.id, Redrive::default(), later(60_000)).await?;
                state(vec![redriven.map(|redriven| redriven.job)])
            }
            Step::Remove => state(vec![store.remove(third.id).await?]),
            Step::Prune => many(store.prune(at_once(), 9, later(99_000)).await?),
            Step::Pause => {
                let queue = store.pause("q".into(), true, Missing::Create, later(99_000)).await?;
                if queue.is_some_and(|queue| queue.paused) { "paused" } else { "open" }.to_owned()
            }
        })
    }
}

fn at_once() -> Retention {
    Retention { finished: Span::ZERO, dead: Span::ZERO }
}

fn lease_ref(id: JobId) -> LeaseRef {
    LeaseRef { id, token: Token::Worker("ada".into()) }
}

async fn settled(store: &Postgres, id: JobId, report: AttemptOutcome) -> Result<Vec<Result<Job, Refusal>>, StoreError> {
    let answers = store.settle(vec![Settlement { lease_ref: lease_ref(id), report }], later(2_000)).await?;
    Ok(answers.into_iter().map(|answer| answer.map(Settled::into_job)).collect())
}

fn state(mut answers: Vec<Result<Job, Refusal>>) -> String {
    answers.pop().unwrap().unwrap().state.name().to_owned()
}

async fn everything(store: &Postgres) -> (Listed, Vec<Queue>, Option<Moment>) {
    let listed = store.list(Filter::default(), Page::new(0, 99)).await.unwrap();
    (listed, store.queues().await.unwrap(), store.next_wake(&Held::new()).await.unwrap())
}

#[test]
fn every_operation_is_repeated_after_a_serialization_failure() {
    let faults = [("40001", When::Writing), ("40P01", When::Writing), ("40001", When::Committing)];
    for (code, when) in faults {
        let schema = new_schema();
        let store = open(&schema);
        runtime().block_on(async {
            let client = plain_client().await;
            trigger::arrange(&client, &schema, when).await;
            let jobs = Jobs::new();
            for (step, expected) in STEPS {
                trigger::arm(&client, &schema, code, 2).await;
                assert_eq!(jobs.apply(&store, step).await.as_deref(), Ok(expected), "{step:?}, {code} while {when:?}");
                assert!(trigger::is_spent(&client, &schema).await, "{step:?} had no fault");
            }
        });
    }
}

#[test]
fn a_full_disk_is_reported_leaves_nothing_half_written_and_is_forgotten_when_there_is_room_again() {
    for when in [When::Writing, When::Committing] {
        let schema = new_schema();
        let store = open(&schema);
        runtime().block_on(async {
            let client = plain_client().await;
            trigger::arrange(&client, &schema, when).await;
            let jobs = Jobs::new();
            for (step, expected) in STEPS {
                let before = everything(&store).await;
                trigger::arm(&client, &schema, "53100", 1_000).await;
                let refused = jobs.apply(&store, step).await;
                let Err(StoreError::Unavailable(why)) = &refused else { panic!("{step:?}: {refused:?}") };
                assert!(why.contains("53100"), "{step:?}: {why}");
                trigger::arm(&client, &schema, "53100", 0).await;
                trigger::wait_for_rollback(&client, &schema).await;
                assert_eq!(everything(&store).await, before, "{step:?} left something behind");
                assert_eq!(jobs.apply(&store, step).await.as_deref(), Ok(expected), "{step:?}, with room again");
            }
        });
    }
}

#[test]
fn endless_serialization_failures_are_reported() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let client = plain_client().await;
        trigger::arrange(&client, &schema, When::Writing).await;
        trigger::arm(&client, &schema, "40001", 1_000).await;
        let refused = store.enqueue(vec![job("q")], now()).await;
        let Err(StoreError::Unavailable(why)) = &refused else { panic!("{refused:?}") };
        assert!(why.contains("40001"), "{why}");
        trigger::arm(&client, &schema, "40001", 0).await;
        assert_eq!(everything(&store).await.0.total, Some(0));
    });
}
