//! Accepting connections, and stopping in good order.

use crate::app::Server;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// How long nothing is accepted after accepting failed, as it does when the process has no more file
/// descriptors.
const BREATHER: Duration = Duration::from_millis(50);

impl Server {
    /// Serves until `stopped` completes: then no connection is accepted any more, fetches that wait
    /// for a job answer that there is none, running requests are answered, and their connections are
    /// closed. What takes longer than `limits.drain` is cut off.
    pub async fn serve(&self, listener: TcpListener, stopped: impl Future<Output = ()>) {
        let router = self.router();
        let most = self.app.limits.connections;
        let places = Arc::new(Semaphore::new(most));
        let mut stopped = pin!(stopped);
        loop {
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, stream) = tokio::select! {
                () = &mut stopped => break,
                (place, stream) = accepted => (place, stream),
            };
            match stream {
                Ok((stream, _)) => {
                    let connection = self.connection(stream, router.clone());
                    tokio::spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    self.app.log.line(format_args!("cannot accept a connection: {error}"));
                    tokio::time::sleep(BREATHER).await;
                }
            }
        }
        drop(listener);
        self.stop.send_replace(true);
        let all = u32::try_from(most).unwrap_or(u32::MAX);
        if tokio::time::timeout(self.app.limits.drain, places.acquire_many(all)).await.is_err() {
            let open = most - places.available_permits();
            self.app.log.line(format_args!("{open} connections did not end in time and are cut off"));
        }
    }

    /// One connection, from its first request to its last.
    fn connection(&self, stream: TcpStream, router: Router) -> impl Future<Output = ()> + Send + use<> {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(self.app.limits.header_timeout);
        // An answer is one small write; waiting to fill a packet would delay it.
        let _ = stream.set_nodelay(true);
        let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        let stopping = self.stop.subscribe();
        async move {
            let mut connection = pin!(connection);
            tokio::select! {
                // A client that breaks off is no event.
                _ = connection.as_mut() => return,
                () = stop_of(stopping) => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
        }
    }
}

/// Completes once the server stops.
pub(crate) async fn stop_of(mut stopping: watch::Receiver<bool>) {
    // The sender is gone only where the whole server is: that is a stop too.
    let _ = stopping.wait_for(|stopped| *stopped).await;
}
