//! Which handler runs which job.

use crate::Context;
use crate::handler::{Endpoint, Running};
use crate::middleware::{Middleware, Next};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The handlers and the middleware of a worker.
pub(crate) struct Registry<S> {
    pub(super) kinds: HashMap<Box<str>, Kind<S>>,
    /// Runs every job that has no other handler.
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
    /// The handler for jobs of this type, if there is one.
    pub(crate) fn endpoint(&self, kind: &str) -> Option<&Endpoint<S>> {
        self.kinds.get(kind).and_then(|kind| kind.endpoint.as_ref()).or(self.fallback.as_ref())
    }

    /// Starts a run.
    pub(crate) fn call(&self, endpoint: &Endpoint<S>, context: Context<S>) -> Running {
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
