//! A real server in this process, on a loopback port.

#![allow(dead_code, reason = "each test crate uses the part that it needs")]

pub(crate) mod proxy;

use redrive_engine::{Engine, Layers, RunLimits, Settings, SystemClock, SystemRandomness, advance_runs, sweeper};
use redrive_server::{Limits, Server, ServerSettings, WebhookSettings};
use redrive_store::{Memory, Store};
use redrive_worker::{Builder, Client, ClientError, Event, Summary};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The longest time that a test waits for anything.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A server that ends with its value.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Arc<Engine>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl TestServer {
    pub(crate) async fn open() -> Self {
        Self::on(Arc::new(Memory::new()), None).await
    }

    /// A server on a store, on a given port or any.
    pub(crate) async fn on(store: Arc<dyn Store>, address: Option<SocketAddr>) -> Self {
        let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
        let (clock, randomness) = (SystemClock::default(), SystemRandomness::default());
        let engine = Engine::new(store, Arc::new(clock), Arc::new(randomness), settings);
        let programs = redrive_server::programs(&Limits::default(), redrive_server::Leases::default());
        let engine = Arc::new(engine.with_programs(programs, RunLimits::default()));
        let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = TcpListener::bind(address).await.expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let limits = Limits { drain: Duration::from_millis(50), ..Limits::default() };
        let webhooks = WebhookSettings { allow_private: true, allow_http: true };
        let settings = ServerSettings { limits, webhooks, test_directives: true, ..ServerSettings::new("memory") };
        let server = Server::new(Arc::clone(&engine), settings);
        let (stop, stopping) = watch::channel(false);
        let sweeping = sweeper::run(Arc::clone(&engine), ended(stopping.clone()), |_| {});
        let advancing = advance_runs(Arc::clone(&engine), ended(stopping.clone()), |_| {});
        let serving = tokio::spawn(async move {
            let delivering = server.deliver_webhooks(ended(stopping.clone()));
            tokio::join!(sweeping, advancing, delivering, server.serve(listener, ended(stopping)));
        });
        Self { address, engine, stop, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::http(&self.url()).expect("an address")
    }

    pub(crate) async fn close(self) {
        self.stop.send_replace(true);
        self.serving.await.expect("the server ends");
    }
}

async fn ended(mut flag: watch::Receiver<bool>) {
    let _ = flag.wait_for(|set| *set).await;
}

/// Waits for something that must happen.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, what).await.expect("it happens in time")
}

/// A folder that is removed when it is dropped.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("redrive-worker-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running worker, its events, and the way to stop it.
pub(crate) struct RunningWorker {
    running: JoinHandle<Result<Summary, ClientError>>,
    stop: watch::Sender<bool>,
    events: mpsc::UnboundedReceiver<String>,
}

impl RunningWorker {
    /// Starts a worker. Every event becomes a line.
    pub(crate) fn start<S: Send + Sync + 'static>(builder: Builder<S>) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let builder = builder.poll(Duration::from_millis(200));
        let worker = builder.on_event(move |event| drop(sender.send(line(event)))).build().expect("it fits together");
        let (stop, stopping) = watch::channel(false);
        Self { running: tokio::spawn(worker.run_until(ended(stopping))), stop, events }
    }

    /// Waits for a line that starts like this, and returns it.
    pub(crate) async fn wait_for_event(&mut self, start: &str) -> String {
        let heard = async {
            let mut before = Vec::new();
            loop {
                match self.events.recv().await {
                    Some(line) if line.starts_with(start) => return line,
                    Some(line) => before.push(line),
                    None => panic!("never heard {start:?}, but {before:#?}"),
                }
            }
        };
        tokio::time::timeout(TIMEOUT, heard).await.unwrap_or_else(|_| panic!("{start:?} does not come"))
    }

    pub(crate) fn ask_to_stop(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) async fn stop(self) -> Summary {
        self.ask_to_stop();
        self.ended().await.expect("it worked")
    }

    pub(crate) async fn ended(self) -> Result<Summary, ClientError> {
        soon(self.running).await.expect("no panic")
    }
}

fn line(event: &Event<'_>) -> String {
    match event {
        Event::Started(job) => format!("started {} {}", job.kind(), job.attempt()),
        Event::Done(job) => format!("done {}", job.kind()),
        Event::Failed(job, failure) => format!("failed {} {failure}", job.kind()),
        Event::Released(job, delay) => format!("released {} {delay:?}", job.kind()),
        Event::Declined { job, reason, .. } => format!("declined {} {reason}", job.kind()),
        Event::Paused { queue, reason, .. } => format!("paused {queue} {reason}"),
        Event::Cancelled(job, why) => format!("cancelled {} {why:?}", job.kind()),
        Event::Settled { job, state, dead, .. } => {
            format!("settled {} {state}{}", job.kind(), if *dead { " dead" } else { "" })
        }
        Event::Refused(job, refused) => format!("refused {} {}", job.kind(), refused.status),
        Event::Unreachable(..) => "unreachable".to_owned(),
        Event::Back => "back".to_owned(),
        Event::Stopping => "stopping".to_owned(),
        other => format!("{other:?}"),
    }
}
