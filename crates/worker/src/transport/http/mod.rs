//! Open Job Spec over HTTP.

mod call;
mod follow;
mod manifest;
mod read;
mod runs;
mod write;

use super::{
    Ask, DeadFilter, DeadPage, Delivery, EventFilter, EventSource, FetchRequest, HeartbeatAnswer, ProgressUpdate,
    ReportDefaults, RunReport, Settled, Start, Transport, TransportFuture,
};
use crate::http::{HttpClient, escaped};
use crate::info::JobData;
use crate::run::Run;
use crate::{ClientError, NewJob};
use call::Caller;
use manifest::Extensions;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

/// How long an answer may take, apart from the wait of a long poll.
const ANSWER: Duration = Duration::from_secs(30);
/// How many single reports are sent concurrently to a server that does not accept lists.
const SINGLE_REPORTS: usize = 16;

/// The transport to a server.
pub(crate) struct Http {
    caller: Caller,
    /// What the server can do beyond the specification; asked for once.
    extensions: OnceCell<Extensions>,
}

impl Http {
    pub(crate) fn new(url: &str, key: Option<&str>) -> Result<Self, ClientError> {
        Ok(Self { caller: Caller(HttpClient::new(url, key)?), extensions: OnceCell::new() })
    }

    #[cfg(feature = "tls")]
    pub(crate) fn with_roots(
        url: &str,
        key: Option<&str>,
        roots: &crate::RootCertificates,
    ) -> Result<Self, ClientError> {
        Ok(Self { caller: Caller(HttpClient::with_roots(url, key, roots)?), extensions: OnceCell::new() })
    }

    /// What the server can do. If it cannot be reached, the next call asks again.
    async fn extensions(&self) -> Result<Extensions, ClientError> {
        self.extensions.get_or_try_init(|| Extensions::ask(&self.caller)).await.copied()
    }

    async fn post(&self, path: &str, body: Vec<u8>) -> Result<bytes::Bytes, ClientError> {
        self.caller.post(path, body, ANSWER).await
    }

    /// Sends reports in lists, each within the longest body of a server.
    async fn settle_lists(
        &self,
        reports: &[RunReport],
        report_defaults: &ReportDefaults,
        extensions: Extensions,
    ) -> Result<Vec<Settled>, ClientError> {
        let mut settled = Vec::with_capacity(reports.len());
        while settled.len() < reports.len() {
            let (body, count) = write::settlements(&reports[settled.len()..], report_defaults, extensions);
            let answer = self.post("/ojs/v1/workers/settle", body).await?;
            let before = settled.len();
            settled.extend(read::settlements(&answer)?);
            if settled.len() != before + count {
                let found = settled.len() - before;
                return Err(ClientError::Garbled(format!("{count} reports were sent, and {found} were answered")));
            }
        }
        Ok(settled)
    }

    /// Sends reports one by one, several at a time.
    async fn settle_singly(
        &self,
        reports: &[RunReport],
        report_defaults: &ReportDefaults,
        extensions: Extensions,
    ) -> Result<Vec<Settled>, ClientError> {
        let mut settled = Vec::with_capacity(reports.len());
        for some in reports.chunks(SINGLE_REPORTS) {
            let mut calls = JoinSet::new();
            for (index, report) in some.iter().enumerate() {
                let (path, body) = write::single(report, report_defaults, extensions);
                let caller = self.caller.clone();
                calls.spawn(async move { (index, caller.post(path, body, ANSWER).await) });
            }
            let mut answers: Vec<_> = calls.join_all().await;
            answers.sort_unstable_by_key(|(index, _)| *index);
            for (_, answer) in answers {
                settled.push(read::single(answer)?);
            }
        }
        Ok(settled)
    }
}

impl Transport for Http {
    fn fetch<'a>(&'a self, request: &'a FetchRequest) -> TransportFuture<'a, Vec<Delivery>> {
        Box::pin(async move {
            let long_poll = self.extensions().await?.long_poll;
            let wait = if long_poll { request.wait } else { Duration::ZERO };
            let body = write::fetch(request, wait);
            let answer = self.caller.post("/ojs/v1/workers/fetch", body, ANSWER + wait).await?;
            read::deliveries(&answer, request)
        })
    }

    fn settle<'a>(
        &'a self,
        reports: &'a [RunReport],
        report_defaults: &'a ReportDefaults,
    ) -> TransportFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            let extensions = self.extensions().await?;
            if extensions.settle_many {
                self.settle_lists(reports, report_defaults, extensions).await
            } else {
                self.settle_singly(reports, report_defaults, extensions).await
            }
        })
    }

    fn heartbeat<'a>(
        &'a self,
        runs: &'a [Arc<Run>],
        report_defaults: &'a ReportDefaults,
    ) -> TransportFuture<'a, HeartbeatAnswer> {
        Box::pin(async move {
            let tokens = self.extensions().await?.lease_tokens;
            let answer =
                self.post("/ojs/v1/workers/heartbeat", write::heartbeat(runs, report_defaults, tokens)).await?;
            read::heartbeat(&answer, runs)
        })
    }

    fn progress<'a>(&'a self, run: &'a Run, progress: ProgressUpdate) -> TransportFuture<'a, ()> {
        Box::pin(async move {
            let body = write::progress(run, &progress);
            self.post("/ojs/v1/workers/progress", body).await.map(drop)
        })
    }

    fn enqueue<'a>(&'a self, jobs: &'a [NewJob]) -> TransportFuture<'a, Vec<(JobData, bool)>> {
        Box::pin(async move {
            match jobs {
                [] => Ok(Vec::new()),
                [one] => {
                    let mut body = Vec::with_capacity(256);
                    write::push_job(&mut body, one);
                    let (status, answer) = self.caller.post_for("/ojs/v1/jobs", body, ANSWER).await?;
                    Ok(vec![(read::job(&answer)?, status == 201)])
                }
                many => read::batch(&self.post("/ojs/v1/jobs/batch", write::batch(many)).await?),
            }
        })
    }

    fn job<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData> {
        Box::pin(async move { read::job(&self.caller.get(&path_of(id), ANSWER).await?) })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData> {
        Box::pin(async move { read::job(&self.caller.delete(&path_of(id), ANSWER).await?) })
    }

    fn dead_letters<'a>(
        &'a self,
        filter: &'a DeadFilter,
        start: &'a Start,
        limit: usize,
    ) -> TransportFuture<'a, DeadPage> {
        Box::pin(async move {
            let path = write::dead_path(filter, start, limit);
            read::dead_page(&self.caller.get(&path, ANSWER).await?, start, limit)
        })
    }

    fn retry_dead<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData> {
        Box::pin(async move {
            let path = format!("/ojs/v1/dead-letter/{}/retry", escaped(id));
            read::job(&self.post(&path, Vec::new()).await?)
        })
    }

    fn delete_dead<'a>(&'a self, id: &'a str) -> TransportFuture<'a, ()> {
        Box::pin(async move {
            let path = format!("/ojs/v1/dead-letter/{}", escaped(id));
            self.caller.delete(&path, ANSWER).await.map(drop)
        })
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> TransportFuture<'a, serde_json::Value> {
        Box::pin(runs::ask(&self.caller, ask))
    }

    fn follow(&self, filter: EventFilter) -> TransportFuture<'_, Box<dyn EventSource>> {
        Box::pin(async move {
            let source: Box<dyn EventSource> = Box::new(follow::Stream::open(self.caller.clone(), filter).await?);
            Ok(source)
        })
    }

    fn supports_long_poll(&self) -> bool {
        self.extensions.get().is_some_and(|extensions| extensions.long_poll)
    }

    fn releases_on_drop(&self) -> bool {
        false
    }

    fn close(&self) -> TransportFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn path_of(id: &str) -> String {
    format!("/ojs/v1/jobs/{}", escaped(id))
}
