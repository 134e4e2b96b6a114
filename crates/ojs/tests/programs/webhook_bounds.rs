//! Subscriptions at their bounds: what is allowed is delivered, and with one more they are disabled and say so.

use super::webhooks::subscription;
use redrive_engine::{
    ClaimRequest, Clock, Ending, Engine, Layers, ManualClock, Program, RunLimits, RunRequest, Settings, Submission,
    SystemRandomness,
};
use redrive_ojs::webhooks::{Subscription, WEBHOOK, Webhooks, delivery_queue, signals};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Filter, Job, LeaseRef, Memory, RunId, Signal, State, Token};
use std::sync::Arc;

/// Two nodes on one store: only one of them knows subscriptions, so that the other can leave it behind.
struct Bench {
    clock: Arc<ManualClock>,
    subscriber: Engine,
    other: Engine,
    run: RunId,
}

impl Bench {
    async fn new(limits: Webhooks, messages: usize) -> Self {
        let (memory, clock) = (Memory::new(), Arc::new(ManualClock::at(Moment::from_micros(1_700_000_000_000_000))));
        let engine = || {
            let shared: Arc<dyn Clock> = clock.clone();
            let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
            Engine::new(Arc::new(memory.clone()), shared, Arc::new(SystemRandomness::default()), settings)
        };
        let programs = [Arc::new(limits) as Arc<dyn Program>];
        let subscriber = engine().with_programs(programs, RunLimits { messages, ..RunLimits::default() });
        let request = RunRequest { id: None, program: WEBHOOK, state: Blob::from(subscription()), key: None };
        let run = subscriber.start_run(request).await.expect("started").id;
        Self { clock: Arc::clone(&clock), other: engine(), subscriber, run }
    }

    /// So many events, of which the subscriber does not learn yet.
    async fn events(&self, count: usize) {
        for _ in 0..count {
            self.other.submit(vec![Submission::new("a.b", "work", Blob::from(*b"{}"))]).await.expect("enqueued");
            self.end_one("work").await;
        }
        self.clock.set(self.clock.now().after(Span::from_millis(1)));
    }

    async fn end_one(&self, queue: &str) {
        let jobs = self.other.claim(&ClaimRequest::new(vec![queue.into()], "ada")).await.expect("an answer");
        let ended = jobs.iter().map(|job| (lease_ref(job), Ending::Done(None))).collect();
        assert_eq!(self.other.settle(ended).await.expect("an answer").iter().filter(|end| end.is_ok()).count(), 1);
    }

    async fn subscription(&self) -> Subscription {
        while self.subscriber.advance().await.expect("advanced") > 0 {}
        Subscription::read(&self.subscriber.run(self.run).await.expect("the run").state).expect("a subscription")
    }

    async fn outstanding(&self) -> usize {
        let queue = Some(delivery_queue(self.run));
        let filter = Filter { queue, state: Some(State::Available), ..Filter::default() };
        self.other.list(filter, redrive_store::Page::new(0, 1_000)).await.expect("an answer").jobs.len()
    }

    async fn resume(&self) {
        let definition = self.subscription().await.definition;
        let body = serde_json::to_vec(&redrive_ojs::webhooks::Definition { active: true, ..definition });
        let signal = Signal { name: signals::REPLACE.into(), body: Blob::from(body.expect("it can be written")) };
        self.subscriber.signal_run(self.run, signal).await.expect("signalled");
    }
}

fn lease_ref(job: &Job) -> LeaseRef {
    let token = job.lease.as_ref().map_or(Token::None, |lease| Token::Lease(lease.token));
    LeaseRef { id: job.id, token }
}

#[tokio::test]
async fn a_subscription_with_too_many_deliveries_that_have_not_ended_is_disabled() {
    let bench = Bench::new(Webhooks { outstanding: 3, ..Webhooks::default() }, 1_000).await;
    bench.events(3).await;
    let full = bench.subscription().await;
    assert!(full.definition.active && full.disabled.is_none(), "{full:?}");
    bench.end_one(&delivery_queue(bench.run)).await;
    bench.events(1).await;
    assert!(bench.subscription().await.definition.active, "a delivery that has ended made room");
    bench.events(2).await;
    let disabled = bench.subscription().await;
    assert!(!disabled.definition.active);
    assert_eq!(disabled.disabled.as_deref(), Some("3 deliveries were waiting to be answered"));
    assert_eq!((disabled.deliveries, disabled.delivered, disabled.lost), (4, 1, 2));
    assert_eq!(bench.outstanding().await, 3, "what was recorded before is still there");
    bench.events(5).await;
    assert_eq!(bench.subscription().await.lost, 2, "it does not listen any more");
    bench.end_one(&delivery_queue(bench.run)).await;
    bench.resume().await;
    bench.events(1).await;
    let resumed = bench.subscription().await;
    assert_eq!((resumed.definition.active, resumed.disabled.as_deref(), resumed.deliveries), (true, None, 5));
}

#[tokio::test]
async fn a_subscription_whose_events_come_too_fast_is_disabled() {
    let limits = Webhooks { behind: 4, ..Webhooks::default() };
    let bench = Bench::new(limits, 2).await;
    // It reads two at a time. With fewer than that, none waits.
    bench.events(3).await;
    let behind = bench.subscription().await;
    assert!(behind.definition.active, "{behind:?}");
    assert_eq!((behind.deliveries, behind.lost), (3, 0));
    bench.events(10).await;
    let disabled = bench.subscription().await;
    assert_eq!(disabled.disabled.as_deref(), Some("events came faster than deliveries could be written"));
    assert_eq!((disabled.deliveries, disabled.lost), (3 + 3, 7));
    bench.resume().await;
    bench.events(3).await;
    assert_eq!(bench.subscription().await.deliveries, 9, "it begins anew");
}
