//! Calls of services over HTTP: jobs of a queue that only the server has. A call is made again where its server is
//! gone before it could report the answer; the service tells a repetition by its key.

use super::outcome::{failed, outcome};
use crate::app::{App, Server};
use crate::webhooks::{Delivery, NoAnswer, extended};
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::{Bytes, Incoming};
use redrive_engine::{ClaimRequest, Ending, EngineError};
use redrive_flow::Outcome;
use redrive_flow::runs::{HTTP_QUEUE, HttpCall, HttpRequest, http_answer, http_call};
use redrive_store::{Job, LeaseRef, Token};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{error, warn};

/// How many calls are under way at once, on one node.
const AT_ONCE: usize = 64;
/// How long a claim waits, and how long nothing is claimed when the store does not answer.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long calls that are under way have when the server stops. Those that take longer are made again.
const LAST: Duration = Duration::from_secs(10);
/// How much of an answer is read, in bytes.
const ANSWER: usize = 1 << 20;

impl Server {
    /// Makes the calls of flows to services, until `stopped` completes.
    pub async fn call_services(&self, stopped: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        let places = Arc::new(Semaphore::new(AT_ONCE));
        tokio::pin!(stopped);
        loop {
            let place = tokio::select! {
                () = &mut stopped => break,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let request = ClaimRequest { wait: LOOK_EVERY, ..ClaimRequest::new(vec![HTTP_QUEUE.into()], "flows") };
            let claimed = tokio::select! {
                () = &mut stopped => break,
                claimed = self.app.engine.claim_or_release(request, std::future::pending()) => claimed,
            };
            while tasks.try_join_next().is_some() {}
            match claimed.map(|mut jobs| jobs.pop()) {
                Ok(Some(job)) => {
                    let app = Arc::clone(&self.app);
                    tasks.spawn(async move {
                        if let Err(error) = call(&app, &job).await {
                            warn!(job_id = %job.id, "flows: a call is made again later: {error}");
                        }
                        drop(place);
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    error!("flows: calls cannot be claimed: {error}");
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
        }
        let all = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST, all).await;
    }
}

/// Makes a call. Whatever the service answers is the Result of the call, and an end of its job.
async fn call(app: &App, job: &Job) -> Result<(), EngineError> {
    let token = job.lease.as_ref().map_or(Token::None, |lease| Token::Lease(lease.token));
    let lease_ref = LeaseRef { id: job.id, token };
    let (outcome, metadata) = match http_call(job) {
        Ok(call) => {
            let begun = Instant::now();
            let (outcome, status) = extended(app, &lease_ref, made(app, &call)).await;
            let took_ms = begun.elapsed().as_millis() as u64;
            (outcome, json!({ "status": status, "durationMs": took_ms, "attempt": job.attempt, "key": call.key }))
        }
        Err(why) => (failed("Redrive.Http.Refused", why, Some(false)), json!({})),
    };
    let ending = Ending::Done(Some(http_answer(&outcome, &metadata)));
    app.engine.settle(vec![(lease_ref, ending)]).await.map(drop)
}

/// The Result of a call, and the status of the answer where there is one.
async fn made(app: &App, call: &HttpCall) -> (Outcome, Option<u16>) {
    let HttpCall { key, request } = call;
    let within = Duration::from_millis(request.timeout_ms);
    let answered = async {
        let response = app.webhooks.once(&delivery(key, request)).await?;
        let (parts, answer) = response.into_parts();
        let header = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
        let status = parts.status.as_u16();
        Ok((outcome(status, header, read(answer).await), Some(status)))
    };
    match tokio::time::timeout(within, answered).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(NoAnswer::NotAllowed(why))) => (failed("Redrive.Http.NotAllowed", why, Some(false)), None),
        Ok(Err(NoAnswer::Failed(why))) => (failed("Redrive.Http.NoAnswer", why, Some(true)), None),
        Err(_) => {
            let why = format!("there was no answer within {} s", within.as_secs_f64());
            (failed("Redrive.Http.TimedOut", why, Some(true)), None)
        }
    }
}

fn delivery<'c>(key: &'c str, request: &'c HttpRequest) -> Delivery<'c> {
    let own = |name: &str| request.headers.keys().any(|header| header.eq_ignore_ascii_case(name));
    let mut headers: Vec<(&str, String)> =
        request.headers.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    if request.body.is_some() && !own("content-type") {
        headers.push(("content-type", "application/json".to_owned()));
    }
    if !own("user-agent") {
        headers.push(("user-agent", concat!("Redrive-Flow/", env!("CARGO_PKG_VERSION")).to_owned()));
    }
    headers.push(("idempotency-key", key.to_owned()));
    // Where a body is usual, its absence is said.
    if request.body.is_none() && matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
        headers.push(("content-length", "0".to_owned()));
    }
    let body = request.body.as_ref().map_or_else(Bytes::new, |body| Bytes::copy_from_slice(body.get().as_bytes()));
    let method = Method::from_bytes(request.method.as_bytes()).unwrap_or(Method::POST);
    Delivery { method, url: &request.url, headers, body }
}

/// The body of an answer.
pub(super) enum Body {
    Whole(Vec<u8>),
    /// It has more bytes than this.
    TooLarge(usize),
    CutShort(String),
}

async fn read(mut body: Incoming) -> Body {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => read.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
            Err(error) => return Body::CutShort(error.to_string()),
        }
        if read.len() > ANSWER {
            return Body::TooLarge(ANSWER);
        }
    }
    Body::Whole(read)
}
