//! A TCP proxy on a loopback port, whose connections can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A forwarder that ends with its value.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    connected: Arc<watch::Sender<bool>>,
    running: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let connected = Arc::new(watch::channel(true).0);
        let cable = Arc::clone(&connected);
        let running = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(forward(stream, server, cable.subscribe()));
            }
        });
        Self { address, connected, running }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts the connection: open connections break, new ones are closed at once.
    pub(crate) fn cut(&self) {
        self.connected.send_replace(false);
    }

    pub(crate) fn restore(&self) {
        self.connected.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn forward(mut near: TcpStream, server: SocketAddr, mut connected: watch::Receiver<bool>) {
    if !*connected.borrow() {
        return;
    }
    let Ok(mut far) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = connected.wait_for(|connected| !*connected) => {}
    }
}
