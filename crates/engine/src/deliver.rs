//! Claims for callers that may go away: a job reaches its caller, or it is released.

use crate::{ClaimRequest, Ending, Engine, EngineError};
use redrive_policy::Span;
use redrive_store::{Job, LeaseRef, Token};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

impl Engine {
    /// As [`Engine::claim`], for a caller that may go away: a connection that breaks, a task that is aborted. Once
    /// this future is dropped, the claim stops waiting, and what was claimed already is released. The wait ends
    /// without a job as well once `stopped` completes.
    ///
    /// The claim runs in a task of its own on the caller's runtime, because a call to the store that were dropped
    /// half way could leave jobs under a lease that no worker knows of.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn claim_or_release(
        self: &Arc<Self>,
        request: ClaimRequest,
        stopped: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Vec<Job>, EngineError> {
        let (mut caller, answer) = oneshot::channel();
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            let over = async {
                tokio::select! {
                    () = stopped => {}
                    () = caller.closed() => {}
                }
            };
            let claimed = engine.claim_unless(&request, over).await;
            let runtime = Handle::current();
            // An answer that the caller does not take is dropped, here or in the channel.
            let _ = caller.send(claimed.map(|jobs| Undelivered { engine, runtime, jobs }));
        });
        // Without an answer the task has panicked, or the runtime is shutting down.
        answer.await.map_or_else(|_| Ok(Vec::new()), |claimed| claimed.map(Undelivered::deliver))
    }
}

/// Jobs on their way to the caller that they were claimed for. Dropped on the way, they are released.
struct Undelivered {
    engine: Arc<Engine>,
    runtime: Handle,
    jobs: Vec<Job>,
}

impl Undelivered {
    fn deliver(mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if !self.jobs.is_empty() {
            self.runtime.spawn(release(Arc::clone(&self.engine), std::mem::take(&mut self.jobs)));
        }
    }
}

async fn release(engine: Arc<Engine>, jobs: Vec<Job>) {
    let released = |job: &Job| {
        let token = job.lease.as_ref()?.token;
        Some((LeaseRef { id: job.id, token: Token::Lease(token) }, Ending::Released(Span::ZERO)))
    };
    if let Err(error) = engine.settle(jobs.iter().filter_map(released).collect()).await {
        let count = jobs.len();
        tracing::warn!("{count} jobs of a caller that went away cannot be released before their leases end: {error}");
    }
}
