//! The server that is called: on an embedded store, with data.

#[path = "../common/log.rs"]
mod log;

use crate::client::Tally;
use crate::hooks::Arrived;
use crate::neighbour;
use crate::vocabulary::QUEUES;
use crate::wire::Caller;
use redrive_engine::{Engine, Layers, RunLimits, Settings, SystemClock, SystemRandomness, advance_runs, sweeper};
use redrive_server::{Limits, Server, ServerSettings, WebhookSettings};
use redrive_store::embedded::Options;
use redrive_store::{Embedded, Filter, Page, RESERVED_QUEUES, State};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Jobs that are there from the start.
const JOBS: usize = 200;
/// How many events the engine remembers.
const EVENTS: usize = 10_000;

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) arrived: Arrived,
    folder: Folder,
    store: Arc<Embedded>,
    engine: Arc<Engine>,
    server: Arc<Server>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Short, so that slow clients are answered within the test.
fn limits() -> Limits {
    Limits {
        body_bytes: 64 << 10,
        args_bytes: 32 << 10,
        header_timeout: Duration::from_secs(3),
        body_timeout: Duration::from_secs(1),
        long_poll: Duration::from_secs(1),
        long_polls: 4,
        drain: Duration::from_secs(5),
        ..Limits::default()
    }
}

impl World {
    pub(crate) async fn open() -> Self {
        let folder = Folder(std::env::temp_dir().join(format!("redrive-random-{}", std::process::id())));
        let (store, _) = Embedded::open(&folder.0, Options::default()).expect("a store");
        let store = Arc::new(store);
        let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
        let (clock, randomness) = (SystemClock::default(), SystemRandomness::default());
        let engine = Engine::new(Arc::clone(&store) as _, Arc::new(clock), Arc::new(randomness), settings);
        let engine = Arc::new(engine.with_programs(
            redrive_server::programs(&limits(), redrive_server::Leases::default()),
            RunLimits::default(),
        ));
        let webhooks = WebhookSettings { allow_private: true, allow_http: true };
        let settings = ServerSettings { limits: limits(), webhooks, ..ServerSettings::new("embedded") };
        log::captured();
        let server = Arc::new(Server::new(Arc::clone(&engine), settings));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopping) = watch::channel(false);
        let sweeper = sweeper::run(Arc::clone(&engine), stopped(stopping.clone()), |error| panic!("sweep: {error}"));
        let advancer =
            advance_runs(Arc::clone(&engine), stopped(stopping.clone()), |notice| panic!("advancer: {notice}"));
        let (serving, delivering) = (Arc::clone(&server), Arc::clone(&server));
        let until = stopped(stopping.clone());
        let serving = async move { serving.serve(listener, until).await };
        let delivering = async move { delivering.deliver_webhooks(stopped(stopping)).await };
        let tasks = [tokio::spawn(sweeper), tokio::spawn(advancer), tokio::spawn(serving), tokio::spawn(delivering)];
        let (arrived, tasks) = (Arrived::listen().await, tasks.into());
        let world = Self { address, arrived, folder, store, engine, server, stop, tasks };
        world.fill().await;
        world
    }

    /// Jobs in every queue, some of them scheduled, some with a short timeout.
    async fn fill(&self) {
        let retry = json!({ "max_attempts": 2, "initial_interval": "PT0.01S", "on_exhaustion": "dead_letter" });
        let jobs: Vec<_> = (0..JOBS)
            .map(|index| {
                let mut options = json!({ "queue": QUEUES[index % QUEUES.len()], "retry": retry });
                match index % 10 {
                    7 => options["scheduled_at"] = json!("+PT20S"),
                    8 => options["pending"] = json!(true),
                    9 => options["expires_at"] = json!("+PT30S"),
                    _ => {}
                }
                json!({ "type": "work.do", "args": [index], "options": options })
            })
            .collect();
        let answer = Caller::new(self.address).post("/ojs/v1/jobs/batch", &json!({ "jobs": jobs })).await;
        assert_eq!(answer.status, 201, "{answer}");
    }

    async fn jobs(&self) -> usize {
        let queues = self.engine.queues().await.expect("queues");
        queues.iter().flat_map(|queue| State::ALL.into_iter().map(|state| queue.count(state))).sum()
    }

    /// The queues of the jobs of workflows, schedules and subscriptions, and how many other jobs there are.
    async fn children(&self) -> (BTreeSet<Arc<str>>, i64) {
        let (mut queues, mut others) = (BTreeSet::new(), 0);
        let mut page = Some(Page { payloads: false, ..Page::new(0, 1_000) });
        while let Some(some) = page {
            let listed = self.engine.list(Filter::default(), some).await.expect("a list");
            for job in &listed.jobs {
                match job.parent {
                    Some(_) => drop(queues.insert(Arc::clone(&job.spec.queue))),
                    None => others += 1,
                }
            }
            page = listed.next;
        }
        (queues, others)
    }

    /// Checks that there is no more than the answers reported, including these jobs of the neighbour. Jobs that were
    /// removed may have been of workflows and schedules, of which no answer counts the jobs.
    pub(crate) async fn has_not_grown(&self, tally: &Tally, of_neighbour: usize) {
        let (of_children, jobs) = self.children().await;
        let fewest = tally.jobs + (JOBS + of_neighbour) as i64;
        let expected = fewest..=fewest + tally.removed;
        assert!(expected.contains(&jobs), "{jobs} jobs, not {expected:?}: some that no answer named, or that are gone");
        for queue in self.engine.queues().await.expect("queues") {
            let known = tally.queues.contains(&*queue.name) || QUEUES.contains(&&*queue.name);
            // Those of deliveries that were dropped are forgotten like any other queue without jobs.
            let known = known || of_children.contains(&queue.name) || queue.name.starts_with(RESERVED_QUEUES);
            assert!(known || &*queue.name == neighbour::QUEUE, "a queue that no answer named: {}", queue.name);
        }
        let (events, _) = self.engine.events(0, usize::MAX, |_| true);
        assert!(events.len() <= EVENTS, "{} events", events.len());
        let finished = tokio::time::timeout(Duration::from_secs(20), async {
            while self.server.waiting_fetches() > 0 {
                tokio::task::yield_now().await;
            }
        });
        finished.await.expect("no fetch waits for ever");
        assert_eq!(Caller::new(self.address).get("/ojs/v1/health").await.status, 200);
    }

    /// Stops cleanly, and finds everything again.
    pub(crate) async fn close(mut self) {
        self.stop.send_replace(true);
        for task in std::mem::take(&mut self.tasks) {
            task.await.expect("no task panics");
        }
        let before = self.jobs().await;
        drop((self.engine, self.server));
        tokio::task::block_in_place(|| self.store.close()).expect("the store closes");
        drop(self.store);
        let (_, opened) = Embedded::open(&self.folder.0, Options::default()).expect("the store opens again");
        assert_eq!(opened.jobs.iter().sum::<usize>(), before);
    }
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopped| *stopped).await;
}
