//! The client: enqueueing and managing jobs.

use crate::dead_letters::DeadLetters;
use crate::delay::until_ended;
use crate::gather::Gather;
use crate::transport::Transport;
use crate::{ClientError, Events, JobInfo, NewJob, Schedules, Webhooks, Workers, Workflows};
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A connection to a server, or to a store in a folder of this program. It is cheap to clone.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    gather: Arc<Gather>,
}

impl Client {
    /// A server of Open Job Spec, such as `http://127.0.0.1:8080`. Nothing is sent yet.
    ///
    /// With the feature `tls` also `https://`: the server's certificate is verified against the roots of
    /// the system.
    ///
    /// # Errors
    /// The address is invalid, or there are no root certificates to verify the server with.
    #[cfg(feature = "http")]
    pub fn http(url: &str) -> Result<Self, ClientError> {
        Ok(Self::over(crate::transport::http::Http::new(url, None)?))
    }

    /// The same with an API key, which is sent as a bearer token.
    ///
    /// # Errors
    /// The address is invalid, or the key cannot be sent in a header.
    #[cfg(feature = "http")]
    pub fn http_with_key(url: &str, key: &str) -> Result<Self, ClientError> {
        Ok(Self::over(crate::transport::http::Http::new(url, Some(key))?))
    }

    /// The same with other root certificates than those of the system.
    ///
    /// # Errors
    /// As [`Client::http_with_key`].
    #[cfg(feature = "tls")]
    pub fn http_with_roots(url: &str, key: Option<&str>, roots: &crate::RootCertificates) -> Result<Self, ClientError> {
        Ok(Self::over(crate::transport::http::Http::with_roots(url, key, roots)?))
    }

    /// A folder of this program, which is created if missing: a durable queue without a server.
    /// One process at a time can have it open. Due jobs become ready, and workflows and schedules go on, by a
    /// task on the current runtime, until the client and all its clones are dropped, or until [`Client::close`].
    ///
    /// # Errors
    /// The folder cannot be used: it is damaged, has a newer format, or is open in another process.
    #[cfg(feature = "embedded")]
    pub async fn open(folder: impl AsRef<std::path::Path>) -> Result<Self, ClientError> {
        use redrive_engine::Backend;
        let folder = folder.as_ref().to_owned();
        let opened = tokio::task::spawn_blocking(move || Backend::open_folder(folder)).await;
        let opened = opened.map_err(|error| ClientError::Unreachable(format!("cannot open the folder: {error}")))?;
        let (backend, _) = opened.map_err(|error| ClientError::Unreachable(error.to_string()))?;
        Ok(Self::over(crate::transport::embedded::Local::open(backend).await?))
    }

    pub(crate) fn over(transport: impl Transport) -> Self {
        let transport: Arc<dyn Transport> = Arc::new(transport);
        Self { gather: Gather::new(Arc::clone(&transport)), transport }
    }

    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport)
    }

    /// Enqueues a job. When this returns, the job is durable.
    ///
    /// Jobs without an idempotency key that are enqueued while a request is under way share the next one; each call
    /// has its own answer. Where the future is dropped, the job may have been enqueued or not.
    ///
    /// # Errors
    /// The server refuses it, or cannot be reached.
    pub async fn enqueue(&self, job: NewJob) -> Result<JobInfo, ClientError> {
        self.enqueue_or_find(job).await.map(|(job, _)| job)
    }

    /// Enqueues a job with an idempotency key. If there is a job with that key already, it returns that job and
    /// false.
    ///
    /// # Errors
    /// As [`Client::enqueue`].
    pub async fn enqueue_or_find(&self, job: NewJob) -> Result<(JobInfo, bool), ClientError> {
        let (envelope, new) = self.gather.enqueue(job).await?;
        Ok((JobInfo::new(envelope), new))
    }

    /// Enqueues jobs, all or none.
    ///
    /// # Errors
    /// The server refuses one of them, or cannot be reached.
    pub async fn enqueue_all(&self, jobs: Vec<NewJob>) -> Result<Vec<JobInfo>, ClientError> {
        let stored = self.transport.enqueue(&jobs).await?;
        Ok(stored.into_iter().map(|(envelope, _)| JobInfo::new(envelope)).collect())
    }

    /// What is known about a job.
    ///
    /// # Errors
    /// There is no such job, or the server cannot be reached.
    pub async fn job(&self, id: &str) -> Result<JobInfo, ClientError> {
        Ok(JobInfo::new(self.transport.job(id).await?))
    }

    /// Cancels a job. A handler that runs it is cancelled with its next heartbeat.
    ///
    /// # Errors
    /// There is no such job, it has ended, or the server cannot be reached.
    pub async fn cancel(&self, id: &str) -> Result<JobInfo, ClientError> {
        Ok(JobInfo::new(self.transport.cancel(id).await?))
    }

    /// Waits until a job has ended, for at most `within`.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] if it has not ended by then; there is no such job, or the server
    /// refuses. While the server is unreachable, the client tries again.
    pub async fn wait(&self, id: &str, within: Duration) -> Result<JobInfo, ClientError> {
        until_ended(within, || self.job(id), JobInfo::has_ended).await
    }

    /// Waits for the result of a job, for at most `within`.
    ///
    /// # Errors
    /// As [`Client::wait`]; [`ClientError::Failed`] if the job ended without success.
    pub async fn result<R: DeserializeOwned>(&self, id: &str, within: Duration) -> Result<R, ClientError> {
        let job = self.wait(id, within).await?;
        if job.state() == "completed" { job.result() } else { Err(ClientError::Failed(Box::new(job))) }
    }

    /// The dead letters.
    #[must_use]
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters::new(Arc::clone(&self.transport))
    }

    /// The workflows: start them, look at them, wait for them, cancel them.
    #[must_use]
    pub fn workflows(&self) -> Workflows {
        Workflows::new(Arc::clone(&self.transport))
    }

    /// The schedules: register them, look at them, pause, resume and delete them.
    #[must_use]
    pub fn schedules(&self) -> Schedules {
        Schedules::new(Arc::clone(&self.transport))
    }

    /// The events: what happened lately, and a stream of what happens.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::new(Arc::clone(&self.transport))
    }

    /// The webhooks of a server: subscribe endpoints to events, test them, look at deliveries.
    #[must_use]
    pub fn webhooks(&self) -> Webhooks {
        Webhooks::new(Arc::clone(&self.transport))
    }

    /// The workers: which there are, and what they run.
    #[must_use]
    pub fn workers(&self) -> Workers {
        Workers::new(Arc::clone(&self.transport))
    }

    /// Closes the store in a folder cleanly, and unlocks the folder. Enqueued jobs are durable with or
    /// without it.
    ///
    /// # Errors
    /// The store had stopped before.
    pub async fn close(&self) -> Result<(), ClientError> {
        self.transport.close().await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
