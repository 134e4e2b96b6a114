//! The bytes of a connection, with an eye on whether the client takes its answers.

use super::peer::Peer;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// So much must be taken within the time allowed, as long as there is so much: a client that takes a byte
/// now and then could hold its connection for days.
const STEP: usize = 16 << 10;

/// A stream whose writes fail when the client does not take them in time.
pub(super) struct ClientStream<S> {
    stream: S,
    peer: Arc<Peer>,
    timeout: Duration,
    /// Runs while something waits for the client to take it.
    deadline: Option<Pin<Box<Sleep>>>,
    /// What was taken since the deadline was set.
    taken: usize,
}

impl<S> ClientStream<S> {
    pub(super) fn new(stream: S, peer: Arc<Peer>, timeout: Duration) -> Self {
        Self { stream, peer, timeout, deadline: None, taken: 0 }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    fn timed(&mut self, context: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match wrote {
            Poll::Ready(Ok(bytes)) => {
                self.taken = self.taken.saturating_add(bytes);
                if let Some(deadline) = self.deadline.as_mut().filter(|_| self.taken >= STEP) {
                    deadline.as_mut().reset(Instant::now() + self.timeout);
                    self.taken = 0;
                }
                wrote
            }
            Poll::Ready(Err(_)) => wrote,
            Poll::Pending => {
                if self.deadline.is_none() {
                    self.peer.block();
                    self.taken = 0;
                }
                let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(self.timeout)));
                ready!(deadline.as_mut().poll(context));
                self.peer.time_out();
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, buffer);
        self.timed(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.timed(context, wrote)
    }

    /// Asked for only after everything was written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.deadline.take().is_some() {
            self.peer.unblock();
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    /// An answer that cannot be written holds the next one back only where writes are vectored.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn stream() -> (ClientStream<DuplexStream>, DuplexStream) {
        let (server, client) = duplex(1_024);
        let peer = Arc::new(Peer::new(Ipv4Addr::LOCALHOST.into(), Instant::now()));
        (ClientStream::new(server, peer, TIMEOUT), client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_now_and_then_but_too_little_is_given_up() {
        let (mut server, mut client) = stream();
        let start = Instant::now();
        let reader = async {
            loop {
                tokio::time::sleep(Duration::from_secs(10)).await;
                if client.read_u8().await.is_err() {
                    break;
                }
            }
        };
        let writer = async { server.write_all(&vec![0; 1 << 20]).await.map_err(|error| error.kind()) };
        let wrote = tokio::select! { wrote = writer => wrote, () = reader => Ok(()) };
        assert_eq!(wrote, Err(io::ErrorKind::TimedOut));
        assert_eq!(start.elapsed(), TIMEOUT);
        assert!(server.peer.timed_out());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_that_goes_on_reading_gets_everything() {
        let (mut server, mut client) = stream();
        let start = Instant::now();
        let reader = async {
            let mut chunk = [0; 1_024];
            let mut read = 0;
            while read < 64 << 10 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                read += client.read(&mut chunk).await.unwrap();
            }
        };
        let writer = async {
            server.write_all(&vec![0; 64 << 10]).await.unwrap();
            server.flush().await.unwrap();
        };
        tokio::join!(writer, reader);
        assert!(start.elapsed() > 2 * TIMEOUT, "it took longer than one timeout");
        assert!(!server.peer.timed_out() && !server.peer.is_blocked());
    }
}
