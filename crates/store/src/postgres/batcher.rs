//! Calls of one kind, taken together: while one batch is with the database, the next one fills.

use crate::StoreError;
use crate::observer::Observed;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// How many calls wait at most before further callers wait to send theirs.
const WAITING: usize = 4_096;
/// How many calls one batch takes at most.
const TOGETHER: usize = 256;
/// How many batches are with the database at the same time: the next one need not wait for the flush of the last one.
const CONCURRENCY: usize = 4;
/// How many of them may be small. Small calls wait a moment for company, because a transaction costs more than a job.
const SMALL: usize = 2;
/// A batch of this many jobs is not small.
const LARGE: usize = 32;

/// A call that can be taken together with others.
pub(super) trait Weigh {
    /// About how many jobs it is about.
    fn jobs(&self) -> usize;
}

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

impl<C: Weigh + Send + 'static, A: Send + 'static> Batcher<C, A> {
    /// A batcher. `work` answers each call of a batch, in the same order. It ends when the batcher is dropped and the
    /// last call is answered.
    pub(super) fn open<W, F>(observer: &Observed, work: W) -> Self
    where
        W: Fn(Vec<C>) -> F + Clone + Send + 'static,
        F: Future<Output = Vec<Result<A, StoreError>>> + Send + 'static,
    {
        let (calls, waiting) = mpsc::channel(WAITING);
        let (waiting, small) = (Arc::new(Mutex::new(waiting)), Arc::new(Semaphore::new(SMALL)));
        for _ in 0..CONCURRENCY {
            tokio::spawn(serve(Arc::clone(&waiting), Arc::clone(&small), observer.clone(), work.clone()));
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

/// The next calls; none when the batcher is closed. The permit of a small batch is held for as long as it is with the
/// database.
async fn next<C: Weigh, A>(
    waiting: &Mutex<mpsc::Receiver<Caller<C, A>>>,
    small: &Arc<Semaphore>,
) -> (Vec<Caller<C, A>>, Option<OwnedSemaphorePermit>) {
    let mut batch = Vec::new();
    let mut waiting = waiting.lock().await;
    waiting.recv_many(&mut batch, TOGETHER).await;
    while batch.iter().map(|(call, _)| call.jobs()).sum::<usize>() < LARGE && !batch.is_empty() {
        let room = TOGETHER - batch.len();
        tokio::select! {
            biased;
            permit = Arc::clone(small).acquire_owned() => return (batch, permit.ok()),
            more = waiting.recv_many(&mut batch, room), if room > 0 => if more == 0 { break },
        }
    }
    (batch, None)
}

async fn serve<C, A, W, F>(
    waiting: Arc<Mutex<mpsc::Receiver<Caller<C, A>>>>,
    small: Arc<Semaphore>,
    observer: Observed,
    work: W,
) where
    C: Weigh + Send + 'static,
    A: Send + 'static,
    W: Fn(Vec<C>) -> F + Send,
    F: Future<Output = Vec<Result<A, StoreError>>> + Send + 'static,
{
    loop {
        let (mut batch, _permit) = next(&waiting, &small).await;
        if batch.is_empty() {
            return;
        }
        // A caller that has gone no longer needs its call.
        batch.retain(|(_, caller)| !caller.is_closed());
        let (calls, callers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        if calls.is_empty() {
            continue;
        }
        let (jobs, begun) = (calls.iter().map(Weigh::jobs).sum(), Instant::now());
        // In a task of its own: a decision that panics must not end the batcher.
        let Ok(answers) = tokio::spawn(work(calls)).await else { continue };
        observer.flushed(jobs, begun.elapsed());
        for (caller, answer) in callers.into_iter().zip(answers) {
            // A caller that has gone away meanwhile does not learn the outcome, as the trait allows.
            let _ = caller.send(answer);
        }
    }
}
