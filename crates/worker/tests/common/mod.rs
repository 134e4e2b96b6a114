//! A real server in this process, on a loopback port.

#![allow(dead_code, reason = "each test crate uses the part that it needs")]

use redrive_engine::{Engine, Layers, Settings, SystemClock, SystemRandomness, pace};
use redrive_server::{ApiKeys, Limits, Log, Server, ServerSettings};
use redrive_store::{Memory, Store};
use redrive_worker::Client;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Whatever a test waits for comes sooner than this, or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with its value.
pub(crate) struct House {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Arc<Engine>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl House {
    pub(crate) async fn open() -> Self {
        Self::on(Arc::new(Memory::new()), None).await
    }

    /// A server on a store, on a given port or any.
    pub(crate) async fn on(store: Arc<dyn Store>, address: Option<SocketAddr>) -> Self {
        let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
        let (clock, randomness) = (SystemClock::default(), SystemRandomness::default());
        let engine = Arc::new(Engine::new(store, Arc::new(clock), Arc::new(randomness), settings));
        let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = TcpListener::bind(address).await.expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let limits = Limits { drain: Duration::from_millis(50), ..Limits::default() };
        let settings = ServerSettings { limits, keys: ApiKeys::default(), backend: "memory", log: Log::to(|_| {}) };
        let server = Server::new(Arc::clone(&engine), settings);
        let (stop, stopping) = watch::channel(false);
        let paced = pace::run(Arc::clone(&engine), ended(stopping.clone()), |_| {});
        let serving = tokio::spawn(async move {
            tokio::join!(paced, server.serve(listener, ended(stopping)));
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
    tokio::time::timeout(PATIENCE, what).await.expect("it happens in time")
}
