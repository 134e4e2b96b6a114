//! The deliverer: claims deliveries and sends them. Each subscription has a few places of its own, so that an endpoint
//! which does not answer delays no other.

use super::outcome::ending;
use super::send::{Answer, Delivery, NoAnswer};
use super::sign::signature;
use crate::app::{App, Server};
use hyper::Method;
use hyper::body::Bytes;
use redrive_engine::{ClaimRequest, Ending, EngineError};
use redrive_ojs::webhooks::{Subscription, WEBHOOK, delivery_id, delivery_queue, payload, subscription_id};
use redrive_policy::{Moment, Span};
use redrive_store::{Filter, Job, LeaseRef, Page, RESERVED_QUEUES, RunFilter, RunId, State, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{error, warn};

/// How many deliveries of one subscription are under way at once, on one node.
const AT_ONCE: usize = 4;
/// How often subscriptions are read, and how long a claim waits at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often queues of subscriptions that are gone are emptied.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// How many subscriptions, or deliveries, are read at once.
const READ: usize = 1_000;
/// How long deliveries that are under way have when the server stops. Those that take longer are tried again.
const LAST: Duration = Duration::from_secs(10);
/// How often the lease of a delivery is extended while its endpoint has not answered: well before it ends.
const EXTEND_EVERY: Duration = Duration::from_secs(3);

impl Server {
    /// Delivers events to endpoints, until `stopped` completes.
    pub async fn deliver_webhooks(&self, stopped: impl Future<Output = ()>) {
        let mut deliverer = Deliverer::new(Arc::clone(&self.app));
        tokio::select! {
            () = stopped => {}
            () = deliverer.run() => {}
        }
        deliverer.finish().await;
    }
}

struct Deliverer {
    app: Arc<App>,
    /// The subscriptions that are active.
    active: BTreeSet<RunId>,
    /// How many deliveries of each are under way.
    busy: BTreeMap<RunId, usize>,
    /// Whose turn was last.
    last: Option<RunId>,
    tasks: JoinSet<()>,
    freed: (mpsc::UnboundedSender<RunId>, mpsc::UnboundedReceiver<RunId>),
}

impl Deliverer {
    fn new(app: Arc<App>) -> Self {
        let (active, busy, last) = (BTreeSet::new(), BTreeMap::new(), None);
        Self { app, active, busy, last, tasks: JoinSet::new(), freed: mpsc::unbounded_channel() }
    }

    async fn run(&mut self) {
        let (mut looked, mut cleaned) = (None::<Instant>, Instant::now());
        loop {
            if looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
                looked = Some(Instant::now());
                if let Err(error) = self.look().await {
                    error!("webhooks: subscriptions cannot be read: {error}");
                }
            }
            if cleaned.elapsed() >= CLEAN_EVERY {
                cleaned = Instant::now();
                if let Err(error) = self.clean().await {
                    error!("webhooks: deliveries of deleted subscriptions cannot be cancelled: {error}");
                }
            }
            while self.tasks.try_join_next().is_some() {}
            while let Ok(run) = self.freed.1.try_recv() {
                self.free(run);
            }
            self.turn().await;
        }
    }

    /// Claims one delivery and sends it, or waits for something to do.
    async fn turn(&mut self) {
        let ready = self.ready();
        if ready.is_empty() {
            tokio::select! {
                run = self.freed.1.recv() => run.into_iter().for_each(|run| self.free(run)),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            return;
        }
        let queues = ready.iter().map(|run| delivery_queue(*run)).collect();
        let request = ClaimRequest { wait: LOOK_EVERY, ..ClaimRequest::new(queues, "webhooks") };
        let claim = self.app.engine.claim_or_release(request, std::future::pending());
        let jobs = tokio::select! {
            jobs = claim => jobs,
            run = self.freed.1.recv() => {
                run.into_iter().for_each(|run| self.free(run));
                return;
            }
        };
        match jobs {
            Ok(jobs) => jobs.into_iter().for_each(|job| self.begin(job)),
            Err(error) => {
                error!("webhooks: deliveries cannot be claimed: {error}");
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }

    /// The subscriptions that have a place left, beginning behind the one whose turn was last.
    fn ready(&self) -> Vec<RunId> {
        let has_place = |run: &&RunId| self.busy.get(run).is_none_or(|busy| *busy < AT_ONCE);
        let behind = |run: &RunId| self.last.is_some_and(|last| *run > last);
        let (later, earlier): (Vec<RunId>, Vec<RunId>) =
            self.active.iter().filter(has_place).partition(|run| behind(run));
        later.into_iter().chain(earlier).collect()
    }

    fn free(&mut self, run: RunId) {
        if let Some(busy) = self.busy.get_mut(&run) {
            *busy -= 1;
            if *busy == 0 {
                self.busy.remove(&run);
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let Some(run) = job.parent.map(|parent| parent.run) else { return };
        self.last = Some(run);
        *self.busy.entry(run).or_default() += 1;
        let (app, freed) = (Arc::clone(&self.app), self.freed.0.clone());
        self.tasks.spawn(async move {
            if let Err(error) = deliver(&app, run, &job).await {
                warn!(delivery = %delivery_id(job.id), "webhooks: a delivery is tried again later: {error}");
            }
            let _ = freed.send(run);
        });
    }

    /// Reads which subscriptions are active.
    async fn look(&mut self) -> Result<(), EngineError> {
        let mut filter = RunFilter { program: Some(WEBHOOK.into()), ended: Some(false), ..RunFilter::default() };
        let mut active = BTreeSet::new();
        loop {
            let runs = self.app.engine.list_runs(filter.clone(), READ).await?;
            let Some(last) = runs.last() else { break };
            filter.after = Some(last.id);
            let is_active = |run: &&redrive_store::Run| run.interest.is_some();
            active.extend(runs.iter().filter(is_active).map(|run| run.id));
        }
        self.active = active;
        Ok(())
    }

    /// Cancels deliveries of subscriptions that were deleted, where that was interrupted.
    async fn clean(&self) -> Result<(), EngineError> {
        let queues = self.app.engine.queues().await?;
        for queue in queues.iter().filter(|queue| queue.name.starts_with(RESERVED_QUEUES)) {
            let run = queue.name.strip_prefix(RESERVED_QUEUES).and_then(|run| run.parse::<RunId>().ok());
            let Some(run) = run else { continue };
            match self.app.engine.run(run).await {
                Ok(run) if run.end.is_none() => {}
                Ok(_) | Err(EngineError::RefusedRun(..)) => cancel_all(&self.app, run).await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for what is under way.
    async fn finish(&mut self) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST, all).await;
    }
}

/// Cancels all deliveries of a subscription that have not ended.
pub(crate) async fn cancel_all(app: &App, run: RunId) -> Result<(), EngineError> {
    for state in [State::Available, State::Retryable, State::Scheduled, State::Active] {
        let filter = Filter { queue: Some(delivery_queue(run)), state: Some(state), ..Filter::default() };
        loop {
            let page = Page { payloads: false, ..Page::new(0, READ) };
            let jobs = app.engine.list(filter.clone(), page).await?.jobs;
            let mut cancelled = 0;
            for job in &jobs {
                // Those that have ended meanwhile need no end.
                cancelled += usize::from(app.engine.cancel(job.id).await.is_ok());
            }
            if cancelled == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// One attempt of a delivery.
async fn deliver(app: &App, run: RunId, job: &Job) -> Result<(), EngineError> {
    let stored = app.engine.run(run).await?;
    let lease_ref =
        LeaseRef { id: job.id, token: job.lease.as_ref().map_or(Token::None, |lease| Token::Lease(lease.token)) };
    let (state, payload) = match (Subscription::read(&stored.state), payload(job)) {
        (Ok(state), Ok(payload)) if stored.end.is_none() => (state, payload),
        _ => return app.engine.cancel(job.id).await.map(drop),
    };
    if !state.definition.active {
        let ending = vec![(lease_ref, Ending::Released(Span::from_secs(5)))];
        return app.engine.settle(ending).await.map(drop);
    }
    let attempt = Attempt { run, event_type: &payload.event_type, delivery: delivery_id(job.id), body: payload.text };
    let begun = Instant::now();
    let answer = extended(app, &lease_ref, attempt.send(app, &state)).await;
    let own = state.definition.retry.is_some();
    let ending = ending(answer, begun.elapsed(), job.attempt, own, app.engine.now());
    app.engine.settle(vec![(lease_ref, ending)]).await.map(drop)
}

/// Waits for an answer, and extends the lease meanwhile. A lease that cannot be extended any more is no reason to give
/// up a request that is under way: it may be answered, and then the report is refused.
pub(crate) async fn extended<T>(app: &App, lease_ref: &LeaseRef, answer: impl Future<Output = T>) -> T {
    tokio::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            () = tokio::time::sleep(EXTEND_EVERY) => {
                if let Err(error) = app.engine.extend(vec![lease_ref.clone()], None).await {
                    warn!("the lease of a request that is under way cannot be extended: {error}");
                }
            }
        }
    }
}

/// A request with an event.
pub(crate) struct Attempt<'a> {
    pub(crate) run: RunId,
    pub(crate) event_type: &'a str,
    pub(crate) delivery: String,
    pub(crate) body: &'a str,
}

impl Attempt<'_> {
    /// Sends it, signed.
    pub(crate) async fn send(&self, app: &App, subscription: &Subscription) -> Result<Answer, NoAnswer> {
        let delivery = delivery(self, subscription, app.engine.now());
        app.webhooks.post(&delivery, Duration::from_millis(subscription.definition.timeout_ms)).await
    }
}

/// The request of an attempt at a time.
fn delivery<'d>(attempt: &Attempt<'_>, subscription: &'d Subscription, now: Moment) -> Delivery<'d> {
    let timestamp = now.micros().div_euclid(1_000_000);
    let signed = |secret: &str| signature(secret, timestamp, attempt.body.as_bytes());
    let signatures: Vec<String> = subscription.secrets(now).into_iter().map(signed).collect();
    Delivery {
        method: Method::POST,
        url: &subscription.definition.url,
        headers: vec![
            ("content-type", "application/json".to_owned()),
            ("user-agent", concat!("Redrive-Webhook/", env!("CARGO_PKG_VERSION")).to_owned()),
            ("x-ojs-event-type", attempt.event_type.to_owned()),
            ("x-ojs-delivery-id", attempt.delivery.clone()),
            ("x-ojs-subscription-id", subscription_id(attempt.run)),
            ("x-ojs-signature", signatures.join(",")),
            ("x-ojs-timestamp", timestamp.to_string()),
        ],
        body: Bytes::copy_from_slice(attempt.body.as_bytes()),
    }
}
