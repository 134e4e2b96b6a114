//! Workflows, schedules, events, workers and webhooks over HTTP.

use super::super::{Ask, Channel, EventFilter, WebhookAsk};
use super::ANSWER;
use super::call::Caller;
use crate::ClientError;
use crate::http::escaped;
use hyper::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// A test of a webhook takes as long as its endpoint, which has a minute at most.
const TEST: Duration = Duration::from_secs(90);

/// A request to be sent.
struct Request {
    method: Method,
    path: String,
    body: Option<Value>,
    within: Duration,
}

impl Request {
    const fn new(method: Method, path: String) -> Self {
        Self { method, path, body: None, within: ANSWER }
    }

    fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into())
    }

    fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path.into())
    }

    fn with(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }
}

/// Sends a request; the answer is the object that it is about, or the list.
pub(super) async fn ask(caller: &Caller, ask: Ask<'_>) -> Result<Value, ClientError> {
    // Other servers may have the object at the top only.
    let member = match &ask {
        Ask::StartWorkflow(_) | Ask::Workflow(_) | Ask::CancelWorkflow(_) => Some("workflow"),
        Ask::Register(_) | Ask::Replace(..) | Ask::Schedule(_) | Ask::Switch(..) | Ask::DeleteSchedule(_) => {
            Some("cron_job")
        }
        _ => None,
    };
    let Request { method, path, body, within } = request(ask);
    let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
    let answer = caller.send(method, &path, body, within).await?;
    let mut answer: Value = serde_json::from_slice(&answer)
        .map_err(|error| ClientError::Garbled(format!("this is not a server of Open Job Spec: {error}")))?;
    match member {
        Some(member) if answer[member].is_object() => Ok(answer[member].take()),
        _ => Ok(answer),
    }
}

fn request(ask: Ask<'_>) -> Request {
    let workflow = |id: &str| format!("/ojs/v1/workflows/{}", escaped(id));
    let schedule = |name: &str| format!("/ojs/v1/cron/{}", escaped(name));
    match ask {
        Ask::StartWorkflow(document) => Request::post("/ojs/v1/workflows").with(document),
        Ask::Workflow(id) => Request::get(workflow(id)),
        Ask::CancelWorkflow(id) => Request::new(Method::DELETE, workflow(id)),
        Ask::ListWorkflows { ended, after, limit } => {
            let state = ended.map(|ended| if ended { "ended" } else { "running" });
            Request::get(with_query("/ojs/v1/workflows", limit, &[("state", state), ("after", after.as_deref())]))
        }
        Ask::Register(document) => Request::post("/ojs/v1/cron").with(document),
        Ask::Replace(name, document) => Request::new(Method::PUT, schedule(name)).with(document),
        Ask::Schedule(name) => Request::get(schedule(name)),
        Ask::Switch(name, enabled) => Request::new(Method::PATCH, schedule(name)).with(json!({ "enabled": enabled })),
        Ask::DeleteSchedule(name) => Request::new(Method::DELETE, schedule(name)),
        Ask::ListSchedules { after, limit } => {
            Request::get(with_query("/ojs/v1/cron", limit, &[("cursor", after.as_deref())]))
        }
        Ask::ListEvents { filter, limit } => Request::get(events_path(filter, limit)),
        Ask::ListWorkers { after, limit } => {
            let cursor = after.map_or_else(String::new, |after| format!("&cursor={}", escaped(&after)));
            Request::get(format!("/ojs/v1/admin/workers?per_page={limit}{cursor}"))
        }
        Ask::Worker(id) => Request::get(format!("/ojs/v1/admin/workers/{}", escaped(id))),
        Ask::Webhooks(ask) => webhooks(ask),
    }
}

/// A list does not know jobs: what is of another one is left out when it is read.
fn events_path(filter: &EventFilter, limit: usize) -> String {
    let types = Some(filter.types.join(",")).filter(|types| !types.is_empty());
    let queue = match &filter.channel {
        Channel::Queue(name) => Some(name.as_str()),
        Channel::All | Channel::Job(_) => None,
    };
    let parts = [("types", types.as_deref()), ("queues", queue), ("after", filter.after.as_deref())];
    with_query("/ojs/v1/events", limit, &parts)
}

fn webhooks(ask: WebhookAsk<'_>) -> Request {
    const SUBSCRIPTIONS: &str = "/ojs/v1/webhooks/subscriptions";
    const DELIVERIES: &str = "/ojs/v1/webhooks/deliveries";
    let subscription = |id: &str, what: &str| format!("{SUBSCRIPTIONS}/{}{what}", escaped(id));
    let delivery = |id: &str, what: &str| format!("{DELIVERIES}/{}{what}", escaped(id));
    match ask {
        WebhookAsk::Subscribe(document) => Request::post(SUBSCRIPTIONS).with(document),
        WebhookAsk::List => Request::get(SUBSCRIPTIONS),
        WebhookAsk::Get(id) => Request::get(subscription(id, "")),
        WebhookAsk::Update(id, change) => Request::new(Method::PATCH, subscription(id, "")).with(change),
        WebhookAsk::RotateSecret(id) => Request::post(subscription(id, "/rotate-secret")),
        WebhookAsk::Test(id) => Request { within: TEST, ..Request::post(subscription(id, "/test")) },
        WebhookAsk::Delete(id) => Request::new(Method::DELETE, subscription(id, "")),
        WebhookAsk::Deliveries { subscription, status, limit } => {
            Request::get(with_query(DELIVERIES, limit, &[("subscription_id", subscription), ("status", status)]))
        }
        WebhookAsk::Delivery(id) => Request::get(delivery(id, "")),
        WebhookAsk::Retry(id) => Request::post(delivery(id, "/retry")),
        WebhookAsk::Drop(id) => Request::new(Method::DELETE, delivery(id, "")),
    }
}

fn with_query(path: &str, limit: usize, parts: &[(&str, Option<&str>)]) -> String {
    let mut path = format!("{path}?limit={limit}");
    for (key, value) in parts {
        if let Some(value) = value {
            path.push_str(&format!("&{key}={}", escaped(value)));
        }
    }
    path
}
