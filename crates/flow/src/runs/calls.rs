//! Calls as jobs: the documents that a run enqueues, and what has become of them.

use crate::{Answer, Dispatch, Failure, Outcome, Provider};
use redrive_engine::{Engine, JobPolicy, Submission};
use redrive_ojs::json::Members;
use redrive_ojs::{Invalid, Limits, PolicyOrigin, body, policy_text, submission};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, ChildEnd, FailedAttempt, Job};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The queue of calls over HTTP. Its name is one that callers cannot use.
pub const HTTP_QUEUE: &str = "flow:http";
/// The type of the jobs that are calls over HTTP.
const HTTP_TYPE: &str = "flow.http";
/// How long a call over HTTP is leased. The server extends that while it waits for the answer, so that the call of a
/// server that is gone is made by another one soon.
const HTTP_LEASE: Span = Span::from_secs(10);
/// How long one attempt may take: longer than a service can be given for its answer.
const HTTP_TIMEOUT: Span = Span::from_secs(360);
/// What happens to a call whose server is gone: another one makes it. Failures of the service are Results of the call,
/// and its flow decides what they mean.
const HTTP_POLICY: &str = r#"{"max_attempts":10,"initial_interval":"PT0.1S","max_interval":"PT10S","jitter":false,"on_exhaustion":"discard"}"#;

/// What a run asks the engine to enqueue.
#[derive(Serialize, Deserialize)]
struct Document {
    provider: Provider,
    key: String,
    request: Value,
}

/// The document of a call.
pub(super) fn document(dispatch: Dispatch) -> Vec<u8> {
    let Dispatch { key, provider, request, .. } = dispatch;
    // Writing into memory cannot fail, and every key is a text.
    serde_json::to_vec(&Document { provider, key, request }).unwrap_or_default()
}

/// The job of a call, as the engine takes it.
pub(super) fn of_document(
    engine: &Engine,
    document: &[u8],
    limits: &Limits,
    now: Moment,
) -> Result<Submission, String> {
    let document: Document = serde_json::from_slice(document).map_err(|error| format!("a call: {error}"))?;
    match document.provider {
        Provider::Job => {
            let text = document.request.to_string();
            let members = Members::parse(&text).map_err(|error| format!("the job is not an object: {error}"))?;
            submission(engine, &members, None, limits, now).map_err(Invalid::message)
        }
        Provider::Http => {
            let effective = engine.effective(Some(policy_text(HTTP_POLICY)), HTTP_TYPE, HTTP_QUEUE);
            let effective = effective.map_err(|problems| problems.to_string())?;
            let args = json!([{ "key": document.key, "request": document.request }]).to_string();
            if args.len() > limits.args_bytes {
                let (found, most) = (args.len(), limits.args_bytes);
                return Err(format!("the request has {found} bytes; at most {most} are allowed (limits.args_bytes)"));
            }
            let mut text = body::begin(&PolicyOrigin::from(&*effective), &args, None, None, 1);
            text.push(b'}');
            Ok(Submission {
                lease: Some(HTTP_LEASE),
                timeout: Some(HTTP_TIMEOUT),
                policy: JobPolicy::Effective(effective),
                ..Submission::new(HTTP_TYPE, HTTP_QUEUE, Blob::from(text))
            })
        }
    }
}

/// A call over HTTP, as the server makes it.
#[derive(Debug, Deserialize)]
pub struct HttpCall {
    /// What tells it from every other call.
    pub key: String,
    /// The request.
    pub request: HttpRequest,
}

/// A request to a service.
#[derive(Debug, Deserialize)]
pub struct HttpRequest {
    /// Where it goes.
    pub url: String,
    /// Its method.
    pub method: String,
    /// The headers of the definition.
    pub headers: BTreeMap<String, String>,
    /// Its body, JSON text.
    pub body: Option<Box<RawValue>>,
    /// How long the service has for its answer.
    pub timeout_ms: u64,
}

/// Reads the job of a call over HTTP.
///
/// # Errors
/// It is none.
pub fn http_call(job: &Job) -> Result<HttpCall, String> {
    let args: Vec<HttpCall> =
        serde_json::from_str(body::args(&job.spec.body)).map_err(|error| format!("the call: {error}"))?;
    args.into_iter().next().ok_or_else(|| "the call has no request".to_owned())
}

/// What the job of a call over HTTP ends with, whatever its Result is.
#[must_use]
pub fn http_answer(outcome: &Outcome, metadata: &Value) -> Blob {
    json!({ "result": outcome.to_value(), "metadata": metadata }).to_string().into_bytes().into()
}

/// What has become of the job of a call. `job` is its id.
pub(super) fn answer(call: u64, provider: Provider, job: &str, end: &ChildEnd) -> Answer {
    let (outcome, metadata) = match (provider, end) {
        (Provider::Job, ChildEnd::Completed { result }) => {
            let value = result.as_deref().map_or(Ok(Value::Null), serde_json::from_slice);
            (Outcome::Success(value.unwrap_or_default()), json!({ "jobId": job }))
        }
        (Provider::Http, ChildEnd::Completed { result }) => {
            served(result.as_deref().unwrap_or_default()).unwrap_or_else(|| (lost(job, 0).into(), json!({})))
        }
        (Provider::Job, ChildEnd::Failed { failure, .. }) => (failed(job, failure).into(), json!({ "jobId": job })),
        (Provider::Http, ChildEnd::Failed { failure, .. }) => (lost(job, failure.attempt).into(), json!({})),
        (_, ChildEnd::Expired { .. }) => {
            let failure = Failure::error("Redrive.Job.Expired", "the job expired before an attempt succeeded");
            (failure.with_details(json!({ "jobId": job })).into(), json!({ "jobId": job }))
        }
        (_, ChildEnd::Cancelled { .. }) => {
            let failure = Failure::error("Redrive.Job.Cancelled", "the job was cancelled, and not by this flow");
            (failure.with_details(json!({ "jobId": job })).into(), json!({ "jobId": job }))
        }
    };
    Answer { call, outcome, metadata }
}

/// A call whose job cannot be enqueued.
pub(super) fn refused(call: u64, provider: Provider, why: &str) -> Answer {
    let code = match provider {
        Provider::Job => "Redrive.Job.Refused",
        Provider::Http => "Redrive.Http.Refused",
    };
    Answer { call, outcome: Failure::error(code, why).into(), metadata: json!({}) }
}

fn served(result: &[u8]) -> Option<(Outcome, Value)> {
    let mut stored: Value = serde_json::from_slice(result).ok()?;
    let result = stored["result"].take();
    let outcome = match result.get("type")?.as_str()? {
        "success" => Outcome::Success(result["value"].clone()),
        _ => Outcome::Failure(Failure::from_value(&result, "").ok()?),
    };
    Some((outcome, stored["metadata"].take()))
}

/// Nothing is known of what the service has done.
fn lost(job: &str, attempts: u32) -> Failure {
    let message = format!("the call was made {attempts} times, and no server lived to tell the answer");
    Failure::error("Redrive.Http.Lost", message).with_details(json!({ "jobId": job, "attempts": attempts }))
}

/// The last failure of a job whose own retry policy has stopped it, in the words of its worker.
fn failed(job: &str, failed: &FailedAttempt) -> Failure {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Stored {
        code: Option<String>,
        r#type: Option<String>,
        message: Option<String>,
        retryable: Option<bool>,
        details: Option<Value>,
    }
    let stored: Stored = serde_json::from_slice(&failed.error).unwrap_or_default();
    let named = |name: Option<String>| name.filter(|name| !name.is_empty());
    let code = named(stored.code).or_else(|| named(stored.r#type)).unwrap_or_else(|| "Redrive.Job.Failed".to_owned());
    let mut details = json!({ "jobId": job, "attempts": failed.attempt });
    if let Some(more) = stored.details {
        details["details"] = more;
    }
    let failure = Failure { retryable: stored.retryable, message: stored.message, ..Failure::new("error", &code) };
    failure.with_details(details)
}
