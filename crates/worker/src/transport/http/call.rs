//! Requests of Open Job Spec, whose refusals are errors.

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

    pub(super) async fn post(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<Bytes, ClientError> {
        self.post_for(path, body, within).await.map(|(_, answer)| answer)
    }

    /// The same with the status, which is a success.
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

/// What the server says about a request that it does not carry out.
fn refusal(status: u16, body: &[u8]) -> ClientError {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    read_error(status, &document["error"])
}

/// The `error` object of an answer.
pub(super) fn read_error(status: u16, error: &Value) -> ClientError {
    let code = error["code"].as_str().unwrap_or("error");
    let said = error["message"].as_str().unwrap_or("the server gives no reason");
    match error["hint"].as_str().filter(|hint| !hint.is_empty()) {
        Some(hint) => ClientError::refused(status, code, format_args!("{said}. {hint}")),
        None => ClientError::refused(status, code, said),
    }
}
