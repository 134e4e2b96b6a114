//! Requests of Open Job Spec. A refusal is an error.

use crate::http::{HttpClient, HttpResponse};
use crate::{ClientError, QueueFull};
use bytes::Bytes;
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

    pub(super) async fn put(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<Bytes, ClientError> {
        Ok(accepted(self.0.put(path, body, within).await?)?.body)
    }

    pub(super) async fn patch(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<Bytes, ClientError> {
        Ok(accepted(self.0.patch(path, body, within).await?)?.body)
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
    if response.is_success() { Ok(response) } else { Err(refusal(&response)) }
}

/// The refusal of a request.
fn refusal(response: &HttpResponse) -> ClientError {
    let document: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let error = &document["error"];
    let full = (response.status == 429 && error["code"] == "QUEUE_FULL").then(|| queue_full(error, response));
    full.flatten().map_or_else(|| read_error(response.status, error), ClientError::QueueFull)
}

/// A queue that is full, where the answer says which and how full.
fn queue_full(error: &Value, response: &HttpResponse) -> Option<QueueFull> {
    let queue = error["queue"].as_str()?.to_owned();
    let (depth, bound) = (error["depth"].as_u64()?, error["bound"].as_u64()?);
    let retry_after = response.retry_after.unwrap_or(QueueFull::RETRY_AFTER);
    Some(QueueFull { queue, depth, bound, retry_after })
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
