//! Requests of Open Job Spec. A refusal is an error.

use crate::ClientError;
use crate::http::{HttpClient, HttpResponse};
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
    if response.is_success() { Ok(response) } else { Err(refusal(response.status, &response.body)) }
}

/// The refusal of a request.
fn refusal(status: u16, body: &[u8]) -> ClientError {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    read_error(status, &document["error"])
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
