//! Functions as handlers.

use crate::{Context, Failure, IntoOutcome, Outcome};
use serde::de::DeserializeOwned;
use std::pin::Pin;
use std::sync::Arc;

/// A run under way.
pub type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A handler in the form in which the worker calls it.
pub(crate) type Endpoint<S> = Arc<dyn Fn(Context<S>) -> Running + Send + Sync>;

/// What can handle jobs: async functions and closures of the arguments, `async fn(Args) -> R`, or of
/// the arguments and the context, `async fn(Args, Context<S>) -> R`. The arguments are anything that
/// serde can read; it returns a [`Result`] or an [`Outcome`].
///
/// `Form` distinguishes the two and is never named.
pub trait Handler<S, Form>: Send + Sync + 'static {
    /// Starts a run.
    fn call(&self, context: Context<S>) -> Running;
}

impl<S, F, A, Fut> Handler<S, (A,)> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    fn call(&self, context: Context<S>) -> Running {
        match context.job().args::<A>() {
            Ok(args) => {
                let run = self(args);
                Box::pin(async move { run.await.into_outcome() })
            }
            Err(error) => invalid_arguments(&context, &error),
        }
    }
}

impl<S, F, A, Fut> Handler<S, (A, Context<S>)> for F
where
    F: Fn(A, Context<S>) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    fn call(&self, context: Context<S>) -> Running {
        match context.job().args::<A>() {
            Ok(args) => {
                let run = self(args, context);
                Box::pin(async move { run.await.into_outcome() })
            }
            Err(error) => invalid_arguments(&context, &error),
        }
    }
}

/// Arguments that the handler cannot read stay unreadable: the job waits among the dead letters until
/// the job, or the handler, has been fixed.
fn invalid_arguments<S>(context: &Context<S>, error: &serde_json::Error) -> Running {
    let message = format!("the arguments of {} are not what its handler takes: {error}", context.job().kind());
    Box::pin(std::future::ready(Outcome::Failed(Failure::new("invalid_arguments", message).unrecoverable())))
}
