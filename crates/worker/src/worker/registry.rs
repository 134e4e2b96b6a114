//! Which handler runs which job.

use crate::handler::{Endpoint, Running};
use crate::middleware::{Middleware, Next};
use crate::{Context, Failure, Outcome};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The handlers of a worker, and what is done around them.
pub(crate) struct Registry<S> {
    pub(super) kinds: HashMap<Box<str>, Kind<S>>,
    /// Takes every job that no other handler takes.
    pub(super) fallback: Option<Endpoint<S>>,
    pub(super) layers: Arc<[Arc<dyn Middleware<S>>]>,
}

/// What a worker knows about a type of jobs.
pub(crate) struct Kind<S> {
    pub(super) endpoint: Option<Endpoint<S>>,
    pub(super) concurrency: Option<usize>,
    pub(super) timeout: Option<Duration>,
}

impl<S> Default for Kind<S> {
    fn default() -> Self {
        Self { endpoint: None, concurrency: None, timeout: None }
    }
}

impl<S: Send + Sync + 'static> Registry<S> {
    /// Starts a run.
    pub(crate) fn call(&self, context: Context<S>) -> Running {
        let kind = context.job().kind();
        let endpoint = self.kinds.get(kind).and_then(|kind| kind.endpoint.as_ref()).or(self.fallback.as_ref());
        let Some(endpoint) = endpoint else { return unknown(kind) };
        if self.layers.is_empty() {
            return endpoint(context);
        }
        let next = Next { layers: Arc::clone(&self.layers), done: 0, endpoint: Arc::clone(endpoint) };
        next.start(context)
    }

    /// How long a run of this type may take here.
    pub(crate) fn timeout(&self, kind: &str) -> Option<Duration> {
        self.kinds.get(kind).and_then(|kind| kind.timeout)
    }
}

/// A job that nobody here can run; by its policy it is tried again, perhaps by a newer worker.
fn unknown(kind: &str) -> Running {
    let message = format!("this worker has no handler for the type {kind:?}; add one, or keep such jobs elsewhere");
    Box::pin(std::future::ready(Outcome::Failed(Failure::new("handler_not_found", message))))
}

impl<S> fmt::Debug for Registry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<&str> = self.kinds.keys().map(|kind| &**kind).collect();
        f.debug_struct("Registry")
            .field("kinds", &kinds)
            .field("fallback", &self.fallback.is_some())
            .field("layers", &self.layers.len())
            .finish()
    }
}
