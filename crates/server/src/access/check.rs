//! Whether a caller may send a request, by the rule of its endpoint.

use super::{Caller, Queues, Rule};
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Query;
use axum::RequestExt;
use axum::extract::{RawPathParams, Request};

/// Refuses a request that its caller may not send. What the handler has to check is left to it.
pub(crate) async fn check(app: &App, request: &mut Request, rule: Rule, query: Option<&Query>) -> Result<(), ApiError> {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else { return Ok(()) };
    caller.check(rule)?;
    if caller.limits().is_none() {
        return Ok(());
    }
    match rule.queues {
        Queues::None | Queues::ByHandler | Queues::All => Ok(()),
        Queues::InPath => {
            let name = parameter(request, "name").await.unwrap_or_default();
            caller.check_queues([&*name])
        }
        Queues::OfJobInPath => {
            // What is no id names no job, and the handler says so.
            let id = parameter(request, "id").await.and_then(|id| id.parse().ok());
            caller.check_jobs(app, id.as_slice()).await
        }
        Queues::InQuery => match query.map(|query| query.get("queue")) {
            Some(Some(queue)) => caller.check_queues([queue]),
            Some(None) => Err(caller.limited("this lists jobs of all queues; name one with ?queue=")),
            // The handler does not run.
            None => Ok(()),
        },
    }
}

/// A parameter of the path; empty where it cannot be read, which is the name of no queue.
async fn parameter(request: &mut Request, name: &str) -> Option<String> {
    let parameters = request.extract_parts::<RawPathParams>().await.ok()?;
    parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}
