//! Calls of one kind, taken together: while one batch is with the database, the next one fills.

use crate::StoreError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

/// How many calls wait at most before further callers wait to send theirs.
const WAITING: usize = 4_096;
/// How many calls one batch takes at most.
const TOGETHER: usize = 256;

type Caller<C, A> = (C, oneshot::Sender<Result<A, StoreError>>);

/// The sending side of a batcher.
pub(super) struct Batcher<C, A> {
    calls: mpsc::Sender<Caller<C, A>>,
}

impl<C, A> fmt::Debug for Batcher<C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("free", &self.calls.capacity()).finish()
    }
}

impl<C: Send + 'static, A: Send + 'static> Batcher<C, A> {
    /// A batcher with up to `concurrency` batches in progress at the same time. `work` answers each call of
    /// a batch, in the same order. It ends when the batcher is dropped and the last call is answered.
    pub(super) fn open<W, F>(concurrency: usize, work: W) -> Self
    where
        W: Fn(Vec<C>) -> F + Clone + Send + 'static,
        F: Future<Output = Vec<Result<A, StoreError>>> + Send + 'static,
    {
        let (calls, waiting) = mpsc::channel(WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..concurrency {
            tokio::spawn(serve(Arc::clone(&waiting), work.clone()));
        }
        Self { calls }
    }

    /// Sends a call, and waits for the answer.
    pub(super) async fn call(&self, call: C) -> Result<A, StoreError> {
        let (answer, answered) = oneshot::channel();
        let lost = || StoreError::Unavailable("the work on this call ended without an answer".to_owned());
        self.calls.send((call, answer)).await.map_err(|_| lost())?;
        answered.await.map_err(|_| lost())?
    }
}

async fn serve<C, A, W, F>(waiting: Arc<Mutex<mpsc::Receiver<Caller<C, A>>>>, work: W)
where
    C: Send + 'static,
    A: Send + 'static,
    W: Fn(Vec<C>) -> F + Send,
    F: Future<Output = Vec<Result<A, StoreError>>> + Send + 'static,
{
    loop {
        let mut batch = Vec::new();
        if waiting.lock().await.recv_many(&mut batch, TOGETHER).await == 0 {
            return;
        }
        // A caller that has gone no longer needs its call.
        batch.retain(|(_, caller)| !caller.is_closed());
        let (calls, callers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        if calls.is_empty() {
            continue;
        }
        // In a task of its own: a decision that panics must not end the batcher.
        let Ok(answers) = tokio::spawn(work(calls)).await else { continue };
        for (caller, answer) in callers.into_iter().zip(answers) {
            // A caller that has gone away meanwhile does not learn the outcome, as the trait allows.
            let _ = caller.send(answer);
        }
    }
}
