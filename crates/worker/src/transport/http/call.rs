//! Requests of Open Job Spec. A refusal is an error.

use super::ANSWER;
use crate::http::{HttpBody, HttpClient, HttpResponse};
use crate::{ClientError, QueueFull};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;
use std::time::Duration;

/// Sends requests to one server.
#[derive(Clone)]
pub(super) struct Caller(pub(super) HttpClient);

impl Caller {
    pub(super) async fn get(&self, path: &str, within: Duration) -> Result<Bytes, ClientError> {
        Ok(accepted(self.0.get(path, within).await?)?.body)
    }

    pub(super) async fn delete(&self, path: &str, within: Duration) -> Result<Bytes, ClientError> {
        Ok(accepted(self.0.delete(path, within).await?)?.body)
    }

    /// Sends a request of any method.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Bytes, ClientError> {
        Ok(accepted(self.0.send(method, path, body, within).await?)?.body)
    }

    /// Opens a stream of events; `None` where the server has no more of them.
    pub(super) async fn follow(&self, path: &str, last_id: Option<&str>) -> Result<Option<HttpBody>, ClientError> {
        let (status, mut body) = self.0.open(path, last_id, ANSWER).await?;
        match status {
            200 => Ok(Some(body)),
            204 => Ok(None),
            status => Err(refusal(status, &body.rest(ANSWER).await?, None)),
        }
    }

    pub(super) async fn post(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<Bytes, ClientError> {
        self.post_for(path, body, within).await.map(|(_, answer)| answer)
    }

    /// The same; also returns the status of the success.
    pub(super) async fn post_for(
        &self,
        path: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<(u16, Bytes), ClientError> {
        let response = accepted(self.0.post(path, body, within).await?)?;
        Ok((response.status, response.body))
    }
}

fn accepted(response: HttpResponse) -> Result<HttpResponse, ClientError> {
    let HttpResponse { status, ref body, retry_after } = response;
    if response.is_success() { Ok(response) } else { Err(refusal(status, body, retry_after)) }
}

/// The refusal of a request.
fn refusal(status: u16, body: &[u8], retry_after: Option<Duration>) -> ClientError {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = &document["error"];
    let full = (status == 429 && error["code"] == "QUEUE_FULL").then(|| queue_full(error, retry_after));
    full.flatten().map_or_else(|| read_error(status, error), ClientError::QueueFull)
}

/// A queue that is full, where the answer says which and how full.
fn queue_full(error: &Value, retry_after: Option<Duration>) -> Option<QueueFull> {
    let queue = error["queue"].as_str()?.to_owned();
    let (depth, bound) = (error["depth"].as_u64()?, error["bound"].as_u64()?);
    Some(QueueFull { queue, depth, bound, retry_after: retry_after.unwrap_or(QueueFull::RETRY_AFTER) })
}

/// The `error` object of an answer.
pub(super) fn read_error(status: u16, error: &Value) -> ClientError {
    let code = error["code"].as_str().unwrap_or("error");
    let message = error["message"].as_str().unwrap_or("the server gives no reason");
    match error["hint"].as_str().filter(|hint| !hint.is_empty()) {
        Some(hint) => ClientError::refused(status, code, format_args!("{message}. {hint}")),
        None => ClientError::refused(status, code, message),
    }
}
