//! The engine in this process.

mod dead;
mod events;
mod report;
mod runs;
mod stored;
mod submit;

pub(crate) use stored::Stored;

use super::{
    Ask, DeadFilter, DeadPage, Delivery, EventFilter, EventSource, FetchRequest, HeartbeatAnswer, Lease,
    ProgressUpdate, ReportDefaults, RunReport, Settled, Start, Token, Transport, TransportFuture,
};
use crate::info::JobData;
use crate::job::Text;
use crate::run::Run;
use crate::{Cancelled, ClientError, Job, NewJob, QueueFull};
use redrive_engine::{
    AdvanceNotice, Backend, ClaimRequest, Engine, EngineError, Layers, ProgressReport, Randomness, Settings,
    SystemRandomness, advance_runs, sweeper,
};
use redrive_ojs::runs::programs;
use redrive_ojs::{Envelopes, Limits, body, is_same, key_reused, max_attempts};
use redrive_policy::Span;
use redrive_store::{Enqueued, JobId, Redrive, Refusal, RunRefusal, State};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// An engine in this process.
pub(crate) struct Local {
    pub(crate) engine: Arc<Engine>,
    envelopes: Arc<Envelopes>,
    /// Where the jobs are stored; absent for a store in memory.
    backend: Option<Backend>,
    /// Makes due jobs available, and advances workflows and schedules; absent if a test moves the clock itself.
    loops: Mutex<Option<JoinHandle<()>>>,
    stop: watch::Sender<bool>,
    /// What tells the events of this engine from those of another.
    process: u32,
}

impl Local {
    /// An engine with its loops on the runtime of the caller.
    pub(crate) async fn open(backend: Backend) -> Result<Self, ClientError> {
        let (randomness, programs) = (Arc::new(SystemRandomness::default()), programs(Limits::default()));
        let engine = backend.engine(randomness, settings()?, programs).await.map_err(refusal)?;
        let (stop, stopping) = watch::channel(false);
        let stopped = |mut stopping: watch::Receiver<bool>| async move {
            // Without a sender, the client is gone.
            let _ = stopping.wait_for(|stop| *stop).await;
        };
        // The next request reports that the store does not answer; the loops continue.
        let log = |notice: sweeper::Notice<'_>| tracing::warn!("{notice}");
        let sweeping = sweeper::run(Arc::clone(&engine), stopped(stopping.clone()), log);
        let log = |notice: AdvanceNotice<'_>| tracing::warn!("{notice}");
        let advancing = advance_runs(Arc::clone(&engine), stopped(stopping), log);
        let loops = tokio::spawn(async move {
            tokio::join!(sweeping, advancing);
        });
        let (envelopes, backend) = (envelopes(&engine), Some(backend));
        Ok(Self { engine, envelopes, backend, loops: Mutex::new(Some(loops)), stop, process: process() })
    }

    /// An engine that sweeps and advances only when the caller asks it to.
    pub(crate) fn without_loops(engine: Arc<Engine>) -> Self {
        let stop = watch::channel(false).0;
        let (envelopes, loops) = (envelopes(&engine), Mutex::new(None));
        Self { engine, envelopes, backend: None, loops, stop, process: process() }
    }

    pub(super) fn job_data(&self, job: redrive_store::Job) -> JobData {
        job_data(job, None, &self.envelopes)
    }

    /// Completes once this engine is closed.
    fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stop.subscribe();
        async move {
            let _ = stopping.wait_for(|stop| *stop).await;
        }
    }
}

fn process() -> u32 {
    SystemRandomness::default().bits() as u32
}

/// Writes the jobs of an engine as envelopes.
pub(crate) fn envelopes(engine: &Engine) -> Arc<Envelopes> {
    Arc::new(Envelopes::new(engine.settings().timeout))
}

impl Transport for Local {
    fn fetch<'a>(&'a self, request: &'a FetchRequest) -> TransportFuture<'a, Vec<Delivery>> {
        Box::pin(async move {
            self.engine.note_fetch(&request.worker, &request.queues);
            let claim = ClaimRequest {
                count: request.count,
                lease: Some(request.lease.into()),
                wait: request.wait,
                ..ClaimRequest::new(request.queues.to_vec(), Arc::clone(&request.worker))
            };
            let jobs = self.engine.claim_or_release(claim, self.stopped()).await.map_err(refusal)?;
            Ok(jobs.into_iter().filter_map(|job| delivery(job, &self.envelopes)).collect())
        })
    }

    fn settle<'a>(
        &'a self,
        reports: &'a [RunReport],
        report_defaults: &'a ReportDefaults,
    ) -> TransportFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            let endings = reports.iter().filter_map(|report| report::ending(report, report_defaults)).collect();
            let answers = self.engine.settle(endings).await.map_err(refusal)?;
            Ok(answers.into_iter().map(report::settled).collect())
        })
    }

    fn heartbeat<'a>(
        &'a self,
        runs: &'a [Arc<Run>],
        _report_defaults: &'a ReportDefaults,
    ) -> TransportFuture<'a, HeartbeatAnswer> {
        Box::pin(async move {
            let lease_refs: Vec<_> = runs.iter().filter_map(|run| report::lease_ref(run)).collect();
            let ids: Vec<_> = lease_refs.iter().map(|lease_ref| lease_ref.id).collect();
            let answers = self.engine.extend(lease_refs, None).await.map_err(refusal)?;
            let mut answer = HeartbeatAnswer::default();
            for (index, id) in ids.into_iter().enumerate().filter(|(index, _)| answers[*index].is_err()) {
                let cancelled = self.engine.job(id).await.is_ok_and(|job| job.state == State::Cancelled);
                answer.lost.push((index, if cancelled { Cancelled::JobCancelled } else { Cancelled::LeaseLost }));
            }
            Ok(answer)
        })
    }

    fn progress<'a>(&'a self, run: &'a Run, progress: ProgressUpdate) -> TransportFuture<'a, ()> {
        Box::pin(async move {
            let Some(lease_ref) = report::lease_ref(run) else { return Ok(()) };
            let report = ProgressReport {
                fraction: Some(progress.percent / 100.0),
                message: Some(progress.message).filter(|message| !message.is_empty()),
                data: progress.data.map(|data| Arc::from(data.get().as_bytes())),
            };
            self.engine.report_progress(lease_ref, report).await.map(drop).map_err(refusal)
        })
    }

    fn enqueue<'a>(&'a self, jobs: &'a [NewJob]) -> TransportFuture<'a, Vec<(JobData, bool)>> {
        Box::pin(async move {
            let submissions = submit::submissions(&self.engine, jobs)?;
            let asked: Vec<_> = submissions
                .iter()
                .map(|job| (Arc::clone(&job.kind), Arc::clone(&job.queue), Arc::clone(&job.body)))
                .collect();
            let enqueued = self.engine.submit(submissions).await.map_err(refusal)?;
            let answers = enqueued.into_iter().zip(asked).map(|(enqueued, (kind, queue, body))| match enqueued {
                Enqueued::Created(job) | Enqueued::Replaced { job, .. } => Ok((self.job_data(job), true)),
                Enqueued::Ignored(job) => Ok((self.job_data(job), false)),
                Enqueued::Existing(job) if is_same(&job, &kind, &queue, body::args(&body)) => {
                    Ok((self.job_data(job), false))
                }
                Enqueued::Existing(job) => Err(ClientError::refused(409, "conflict", key_reused(job.id))),
            });
            answers.collect()
        })
    }

    fn job<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData> {
        Box::pin(async move {
            let job = self.engine.job(parsed(id)?).await.map_err(refusal)?;
            let progress = self.engine.progress(&job);
            Ok(job_data(job, progress, &self.envelopes))
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData> {
        Box::pin(async move { Ok(self.job_data(self.engine.cancel(parsed(id)?).await.map_err(refusal)?.job)) })
    }

    fn dead_letters<'a>(
        &'a self,
        filter: &'a DeadFilter,
        start: &'a Start,
        limit: usize,
    ) -> TransportFuture<'a, DeadPage> {
        Box::pin(dead::page(self, filter, start, limit))
    }

    fn retry_dead<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData> {
        Box::pin(async move {
            let id = dead::dead(&self.engine, parsed(id)?).await?.id;
            Ok(self.job_data(self.engine.redrive(id, Redrive::default()).await.map_err(refusal)?.job))
        })
    }

    fn delete_dead<'a>(&'a self, id: &'a str) -> TransportFuture<'a, ()> {
        Box::pin(async move {
            let id = dead::dead(&self.engine, parsed(id)?).await?.id;
            self.engine.remove(id).await.map(drop).map_err(refusal)
        })
    }

    fn ask<'a>(&'a self, ask: Ask<'a>) -> TransportFuture<'a, serde_json::Value> {
        Box::pin(runs::ask(self, ask))
    }

    fn follow(&self, filter: EventFilter) -> TransportFuture<'_, Box<dyn EventSource>> {
        Box::pin(async move {
            let source: Box<dyn EventSource> = Box::new(events::Stream::open(self, filter).await?);
            Ok(source)
        })
    }

    fn supports_long_poll(&self) -> bool {
        true
    }

    fn releases_on_drop(&self) -> bool {
        true
    }

    fn close(&self) -> TransportFuture<'_, ()> {
        Box::pin(async move {
            self.stop.send_replace(true);
            let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(loops) = loops {
                let _ = loops.await;
            }
            let Some(backend) = &self.backend else { return Ok(()) };
            backend.close().await.map_err(|error| refusal(EngineError::Store(error)))
        })
    }
}

/// A claimed job as a worker takes it.
pub(crate) fn delivery(job: redrive_store::Job, envelopes: &Arc<Envelopes>) -> Option<Delivery> {
    let lease = job.lease.as_ref()?;
    let lease = Lease {
        token: Token::Lease(job.id, lease.token),
        span: lease.span.into(),
        timeout: lease.deadline.map(|deadline| deadline.since(lease.alive).into()),
    };
    let max_attempts = max_attempts(&job.spec.policy);
    Some(Delivery {
        job: Job {
            id: job.id.to_string().into(),
            kind: Arc::clone(&job.spec.kind),
            queue: Arc::clone(&job.spec.queue),
            attempt: job.attempt,
            max_attempts: Some(max_attempts).filter(|most| *most < u32::MAX),
            releases: job.releases,
            text: Text::Stored(Box::new(Stored { job, progress: None, envelopes: Arc::clone(envelopes) })),
        },
        lease,
    })
}

fn job_data(
    job: redrive_store::Job,
    progress: Option<redrive_engine::Progress>,
    envelopes: &Arc<Envelopes>,
) -> JobData {
    JobData::Stored(Box::new(Stored { job, progress, envelopes: Arc::clone(envelopes) }))
}

/// An invalid id is that of no job.
fn parsed(id: &str) -> Result<JobId, ClientError> {
    id.parse().map_err(|error| ClientError::refused(404, "not_found", error))
}

fn refusal(error: EngineError) -> ClientError {
    match &error {
        EngineError::Invalid(_) => ClientError::refused(400, "invalid_request", error),
        EngineError::InvalidPolicy(_) => ClientError::refused(422, "validation_error", error),
        EngineError::Duplicate(_) | EngineError::NotUnique(..) => ClientError::refused(409, "duplicate", error),
        EngineError::Refused(_, Refusal::Duplicate(_)) => ClientError::refused(409, "duplicate", error),
        EngineError::QueueFull(full) => ClientError::QueueFull(QueueFull {
            queue: full.queue.to_string(),
            depth: full.depth,
            bound: full.bound,
            retry_after: QueueFull::RETRY_AFTER,
        }),
        EngineError::Refused(_, Refusal::NotFound) | EngineError::NoSuchQueue(_) => {
            ClientError::refused(404, "not_found", error)
        }
        EngineError::Refused(..) | EngineError::QueueHasJobs(_) => ClientError::refused(409, "conflict", error),
        EngineError::RefusedRun(_, RunRefusal::NotFound) => ClientError::refused(404, "not_found", error),
        EngineError::RunKeyTaken(_) => ClientError::refused(409, "duplicate", error),
        EngineError::RefusedRun(..) => ClientError::refused(409, "conflict", error),
        EngineError::NoSuchProgram(_) => ClientError::refused(409, "not_configured", error),
        EngineError::RunTooLarge { .. } => ClientError::refused(413, "payload_too_large", error),
        EngineError::Store(_) => ClientError::Unreachable(error.to_string()),
    }
}

/// The defaults of Open Job Spec.
pub(crate) fn settings() -> Result<Settings, ClientError> {
    let layers = Layers::ojs_default()
        .map_err(|problems| ClientError::Invalid(format!("the default policy is not valid: {problems}")))?;
    Ok(Settings::new(layers))
}

/// A span as the client has it.
fn duration(span: Span) -> std::time::Duration {
    span.into()
}
