//! Middleware, which runs around every handler.

use crate::handler::{Endpoint, Running};
use crate::{Context, Outcome};
use std::sync::Arc;

/// Runs around every handler: measuring, logging, setting up, refusing. Async closures
/// of the context and of [`Next`] are middleware:
///
/// ```
/// use redrive_worker::{Context, Next, Outcome};
///
/// async fn timed<S: Send + Sync + 'static>(context: Context<S>, next: Next<S>) -> Outcome {
///     let started = std::time::Instant::now();
///     let outcome = next.run(context.clone()).await;
///     eprintln!("{} took {:?}", context.job().kind(), started.elapsed());
///     outcome
/// }
/// ```
pub trait Middleware<S>: Send + Sync + 'static {
    /// Runs what comes next, or does not, and returns how the run ended.
    fn call(&self, context: Context<S>, next: Next<S>) -> Running;
}

impl<S, F, Fut> Middleware<S> for F
where
    F: Fn(Context<S>, Next<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    fn call(&self, context: Context<S>, next: Next<S>) -> Running {
        Box::pin(self(context, next))
    }
}

/// What comes next: further middleware, and the handler in the end.
pub struct Next<S> {
    pub(crate) layers: Arc<[Arc<dyn Middleware<S>>]>,
    pub(crate) done: usize,
    pub(crate) endpoint: Endpoint<S>,
}

impl<S: 'static> Next<S> {
    /// Runs it.
    pub async fn run(self, context: Context<S>) -> Outcome {
        self.start(context).await
    }

    pub(crate) fn start(mut self, context: Context<S>) -> Running {
        match self.layers.get(self.done).cloned() {
            Some(layer) => {
                self.done += 1;
                layer.call(context, self)
            }
            None => (self.endpoint)(context),
        }
    }
}

impl<S> std::fmt::Debug for Next<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").field("layers_left", &(self.layers.len() - self.done)).finish()
    }
}
