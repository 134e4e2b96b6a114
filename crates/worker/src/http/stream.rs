//! Responses that are read as they come.

use super::{HttpClient, MAX_ANSWER, invalid};
use crate::ClientError;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use std::time::Duration;

/// The body of a response that is not read yet.
pub(crate) struct HttpBody {
    client: HttpClient,
    body: Incoming,
}

impl HttpClient {
    /// `GET` of a stream of events, after the event of this id; its status, and its body as it comes. The head of the
    /// response has to come `within` this time.
    pub(crate) async fn open(
        &self,
        path: &str,
        last_event_id: Option<&str>,
        within: Duration,
    ) -> Result<(u16, HttpBody), ClientError> {
        let mut request = self.request(Method::GET, path).header(ACCEPT, "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let request = request.body(Full::new(Bytes::new())).map_err(invalid)?;
        let opened = async { self.client.request(request).await.map_err(|error| self.unreachable(&error)) };
        let response = self.in_time(opened, within).await?;
        let status = response.status().as_u16();
        Ok((status, HttpBody { client: self.clone(), body: response.into_body() }))
    }
}

impl HttpBody {
    /// The next part, which has to come `within` this time; `None` at the end. Nothing is lost if the future is
    /// dropped.
    pub(crate) async fn next(&mut self, within: Duration) -> Result<Option<Bytes>, ClientError> {
        loop {
            let Ok(frame) = tokio::time::timeout(within, self.body.frame()).await else {
                let message = format!("{} sent nothing for {within:?}", self.client.base);
                return Err(ClientError::Unreachable(message));
            };
            let Some(frame) = frame else { return Ok(None) };
            // What is no data ends a body, and says nothing here.
            if let Ok(data) = frame.map_err(|error| self.client.unreachable(&error))?.into_data() {
                return Ok(Some(data));
            }
        }
    }

    /// All of it.
    pub(crate) async fn rest(&mut self, within: Duration) -> Result<Bytes, ClientError> {
        let client = self.client.clone();
        let read = async {
            let body = Limited::new(&mut self.body, MAX_ANSWER).collect().await;
            body.map(http_body_util::Collected::to_bytes).map_err(|error| client.unreachable(&*error))
        };
        client.in_time(read, within).await
    }
}
