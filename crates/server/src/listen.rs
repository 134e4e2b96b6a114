//! Accepting connections, and graceful shutdown.

mod connections;
mod notices;
mod peer;
mod refusal;
mod service;
mod stream;

pub(crate) use connections::{Bounds, Connections};

use crate::app::{App, Server};
use crate::limits::Limits;
use axum::Router;
use connections::{Found, Limit, Taken};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use notices::{Event, Notices};
use peer::Peer;
use service::Requests;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use stream::ClientStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::warn;

/// How long nothing is accepted after accepting failed.
const BREATHER: Duration = Duration::from_millis(50);
/// How many refused connections may wait for their request at the same time.
const REFUSALS: usize = 16;
/// What is read of a connection before it is looked at: the longest head, and what a client may send ahead.
const READ_AHEAD: usize = 64 << 10;
/// What the system calls it when a process, or the whole system, has no more file descriptors: EMFILE, ENFILE.
const NO_DESCRIPTORS: [Option<i32>; 2] = [Some(24), Some(23)];

impl Limits {
    /// How many file descriptors accepting takes at most: those of the connections, of others that are being
    /// closed or refused, of the listener, and a spare one.
    #[must_use]
    pub const fn descriptors(&self) -> usize {
        self.connections + connections::CLOSING + REFUSALS + 2
    }
}

impl Server {
    /// Serves until `stopped` completes: then no connection is accepted any more, fetches that wait
    /// for a job answer that there is none, running requests are answered, and their connections are
    /// closed. What takes longer than `limits.drain` is cut off.
    pub async fn serve(&self, listener: TcpListener, stopped: impl Future<Output = ()>) {
        let mut accepting = Accepting::new(self, listener);
        let mut stopped = pin!(stopped);
        let mut following = pin!(self.app.guard.follow(&self.app.engine));
        loop {
            tokio::select! {
                () = &mut stopped => break,
                () = accepting.next() => {}
                () = &mut following => {}
            }
        }
        drop(accepting);
        self.stop.send_replace(true);
        let ended = async {
            while self.connections.count() > 0 {
                self.connections.freed().await;
            }
        };
        if timeout(self.app.limits.drain, ended).await.is_err() {
            let open = self.connections.count();
            warn!(open, "{open} connections did not end in time and are cut off (limits.drain)");
        }
    }

    /// How many connections are open.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.connections.count()
    }
}

/// The connections that come.
struct Accepting {
    listener: TcpListener,
    app: Arc<App>,
    router: Router,
    connections: Arc<Connections>,
    notices: Notices,
    refusals: Arc<Semaphore>,
    /// Given up where no other descriptor is left to accept a connection with, only to refuse it.
    spare: Option<File>,
}

impl Accepting {
    fn new(server: &Server, listener: TcpListener) -> Self {
        Self {
            listener,
            app: Arc::clone(&server.app),
            router: server.router(),
            connections: Arc::clone(&server.connections),
            notices: Notices::new(server.app.limits.clone()),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
            spare: spare(),
        }
    }

    async fn next(&mut self) {
        match self.listener.accept().await {
            Ok((stream, client)) => match self.peer(client.ip()).await {
                Ok(taken) => self.serve(stream, taken),
                Err(limit) => self.refuse(stream, limit),
            },
            Err(error) => self.recover(&error).await,
        }
    }

    async fn peer(&self, client: IpAddr) -> Result<Taken, Limit> {
        self.connections.ask_for_keys(!self.app.guard.is_open());
        loop {
            match self.connections.take(client, Instant::now()) {
                Found::Peer(taken) => return Ok(taken),
                Found::Made(taken, limit, closed) => {
                    self.notices.tell(Event::ClosedForOthers(limit), closed);
                    return Ok(taken);
                }
                Found::Full(limit) => return Err(limit),
                Found::Soon(at) => tokio::select! {
                    () = self.connections.freed() => {}
                    () = sleep_until(at) => {}
                },
            }
        }
    }

    fn serve(&self, stream: TcpStream, taken: Taken) {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(self.app.limits.header_timeout);
        builder.max_buf_size(READ_AHEAD);
        // An answer is one small write; waiting to fill a packet would delay it.
        let _ = stream.set_nodelay(true);
        let peer = Arc::clone(&taken.peer);
        let stream = ClientStream::new(stream, Arc::clone(&peer), self.app.limits.write_timeout);
        let router = TowerToHyperService::new(self.router.clone());
        let requests = Requests { router, app: Arc::clone(&self.app), peer };
        let connection = builder.serve_connection(TokioIo::new(stream), requests);
        let (app, notices) = (Arc::clone(&self.app), self.notices.clone());
        tokio::spawn(async move {
            run(connection, &taken.peer, &app).await;
            if taken.peer.timed_out() {
                notices.tell(Event::NotRead, 1);
            }
        });
    }

    fn refuse(&self, stream: TcpStream, limit: Limit) {
        self.notices.tell(Event::Refused(limit), 1);
        let answer = refusal::answer(limit, &self.app.limits);
        let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() else {
            return refusal::close(stream, true, &answer);
        };
        tokio::spawn(async move {
            refusal::refuse(stream, &answer).await;
            drop(permit);
        });
    }

    /// After a connection could not be accepted. Where descriptors ran out, the one that waits is refused, and
    /// one that does nothing is closed, so that the store gets what it needs.
    async fn recover(&mut self, error: &io::Error) {
        if !NO_DESCRIPTORS.contains(&error.raw_os_error()) {
            // A client that broke off before it was accepted is no event.
            if error.kind() != io::ErrorKind::ConnectionAborted {
                warn!("cannot accept a connection: {error}");
                sleep(BREATHER).await;
            }
            return;
        }
        self.notices.tell(Event::NoDescriptor, 1);
        self.connections.close_one(Instant::now());
        self.spare = None;
        if let Ok(Ok((stream, _))) = timeout(BREATHER, self.listener.accept()).await {
            refusal::close(stream, true, &refusal::answer(Limit::Connections, &self.app.limits));
        }
        self.spare = spare();
        sleep(BREATHER).await;
    }
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

type Connection = http1::Connection<TokioIo<ClientStream<TcpStream>>, Requests>;

/// One connection, from its first request to its last.
async fn run(mut connection: Connection, peer: &Peer, app: &App) {
    let told_to_close = tokio::select! {
        biased;
        // A client that breaks off is no event.
        _ = &mut connection => return,
        limit = peer.told_to_close() => Some(limit),
        () = stop_of(app.stopping.clone()) => None,
    };
    match told_to_close {
        Some(limit) if !peer.works() => close(connection, peer, &refusal::answer(limit, &app.limits)),
        _ => {
            Pin::new(&mut connection).graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Ends a connection that waits for its client.
fn close(connection: Connection, peer: &Peer, answer: &[u8]) {
    let (request_has_begun, blocked) = (peer.awaits_body(), peer.is_blocked());
    let parts = connection.into_parts();
    // Where an answer is half written, another one would only garble it.
    if !blocked {
        let request_has_begun = request_has_begun || !parts.read_buf.is_empty();
        refusal::close(parts.io.into_inner().into_inner(), request_has_begun, answer);
    }
}

/// Completes once the server stops.
pub(crate) async fn stop_of(mut stopping: watch::Receiver<bool>) {
    // The sender is gone only where the whole server is: that is a stop too.
    let _ = stopping.wait_for(|stopped| *stopped).await;
}
