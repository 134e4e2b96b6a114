//! The address of the protocol: connections, keys, and the end.

use super::Protocol;
use super::clients::Clients;
use super::cluster::Cluster;
use super::connection::Connection;
use crate::access::Scope;
use crate::api_error::Code;
use crate::app::{App, Server};
use crate::listen::stop_of;
use redrive_azolla::LONGEST_MESSAGE;
use redrive_azolla::orchestrator::client_service_server::ClientServiceServer;
use redrive_azolla::orchestrator::cluster_service_server::ClusterServiceServer;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::{Request, Status};
use tracing::warn;

/// After how long without anything a client is asked whether it is there, and how long it may take to answer. With the
/// time that its tasks wait for it, they are given to another within 45 s.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// How many calls one connection may make at once: clients wait for many tasks over one.
const CALLS: u32 = 10_000;
/// The longest message of a shepherd. It is above the longest that clients take, so that a result which none could take
/// is an error of its task, and not the end of the stream of all others.
const LONGEST_REPORT: usize = 4 * LONGEST_MESSAGE;
/// How often other nodes' ends of tasks are looked for, where there are waiting callers.
const LOOK: Duration = Duration::from_millis(500);
/// How long nothing is accepted after accepting failed.
const BREATHER: Duration = Duration::from_millis(50);

impl Server {
    /// Serves Azolla's protocol until `stopped` completes: then no connection is accepted any more, streams end,
    /// callers that wait are told so, and running calls are answered. What takes longer than `limits.drain` is cut off.
    pub async fn serve_azolla(&self, listener: TcpListener, stopped: impl Future<Output = ()>) {
        let app = &self.app;
        let protocol = Arc::new(Protocol::new(Arc::clone(app)));
        let clients =
            ClientServiceServer::new(Clients(Arc::clone(&protocol))).max_decoding_message_size(LONGEST_MESSAGE);
        let cluster = ClusterServiceServer::new(Cluster(protocol)).max_decoding_message_size(LONGEST_REPORT);
        let clients = InterceptedService::new(clients, admitting(Arc::clone(app), Scope::Enqueue));
        let cluster = InterceptedService::new(cluster, admitting(Arc::clone(app), Scope::Work));
        let service = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE.0))
            .http2_keepalive_timeout(Some(KEEPALIVE.1))
            .max_concurrent_streams(CALLS)
            .add_service(clients)
            .add_service(cluster);
        let (connections, incoming) = mpsc::channel(1);
        let stopping = app.stopping.clone();
        let serving = service.serve_with_incoming_shutdown(ReceiverStream::new(incoming), stop_of(stopping.clone()));
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            () = stopped => {}
            () = accept(&listener, connections, app.limits.connections) => {}
            () = look(self, app.backend) => {}
            ended = &mut serving => return told(ended),
        }
        drop(listener);
        self.stop.send_replace(true);
        match timeout(app.limits.drain, serving).await {
            Ok(ended) => told(ended),
            Err(_) => warn!("connections over gRPC did not end in time and are cut off (limits.drain)"),
        }
    }
}

/// Admits callers whose key has this scope, for all queues.
fn admitting(app: Arc<App>, scope: Scope) -> impl Fn(Request<()>) -> Result<Request<()>, Status> + Clone {
    move |request| match app.guard.admits(&app.engine, &request.metadata().clone().into_headers(), scope) {
        Ok(()) => Ok(request),
        Err(error) if error.code == Code::Forbidden => Err(Status::permission_denied(error.message)),
        Err(error) => Err(Status::unauthenticated(error.message)),
    }
}

fn told(ended: Result<(), tonic::transport::Error>) {
    if let Err(error) = ended {
        warn!("the gRPC service has ended: {error}");
    }
}

/// Accepts connections, as many as are allowed.
async fn accept(listener: &TcpListener, connections: mpsc::Sender<Result<Connection, Infallible>>, most: usize) {
    let permits = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!("cannot accept a connection over gRPC: {error}");
                sleep(BREATHER).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            warn!("refused a connection over gRPC: all {most} are taken (limits.connections)");
            sleep(BREATHER).await;
            continue;
        };
        // A message is one small write; waiting to fill a packet would delay it.
        let _ = stream.set_nodelay(true);
        if connections.send(Ok(Connection { stream, _permit: permit })).await.is_err() {
            return;
        }
    }
}

/// Looks for tasks that ended on another node, where there can be any.
async fn look(server: &Server, backend: &str) {
    if backend != "postgres" {
        return std::future::pending().await;
    }
    loop {
        sleep(LOOK).await;
        if let Err(error) = server.app.engine.look_for_ends().await {
            warn!("cannot look for tasks that have ended on other nodes: {error}");
        }
    }
}
