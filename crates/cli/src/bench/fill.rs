//! Enqueueing jobs: one by one, in batches, or as workflows.

use super::http::Target;
use super::tally::Latencies;
use super::wire::JobTemplate;
use crate::exit::Failed;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;
use tokio::task::JoinSet;

/// How jobs are enqueued.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnqueueLoad {
    pub(super) connections: usize,
    /// How many jobs share a request.
    pub(super) batch: usize,
    pub(super) request: EnqueueRequest,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum EnqueueRequest {
    Job,
    Batch,
    /// A workflow whose jobs run one after the other.
    Chain,
    /// A workflow whose last job runs after all others.
    Group,
}

impl EnqueueRequest {
    const fn path(self) -> &'static str {
        match self {
            Self::Job => "/ojs/v1/jobs",
            Self::Batch => "/ojs/v1/jobs/batch",
            Self::Chain | Self::Group => "/ojs/v1/workflows",
        }
    }

    fn push(self, template: &JobTemplate, body: &mut Vec<u8>, numbers: Range<usize>) {
        match self {
            Self::Job => template.push_job(body, numbers.start),
            Self::Batch => template.push_batch(body, numbers),
            Self::Chain => template.push_chain(body, numbers),
            Self::Group => template.push_group(body, numbers),
        }
    }
}

/// Enqueues jobs with the numbers from 0. On each connection a request waits for the answer to the
/// one before it.
pub(super) async fn fill(
    target: &Target,
    template: &JobTemplate,
    jobs: usize,
    load: EnqueueLoad,
    latencies: &Rc<RefCell<Latencies>>,
) -> Result<(), Failed> {
    let next = Rc::new(Cell::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..load.connections {
        let (target, template) = (target.clone(), template.clone());
        let (next, latencies) = (Rc::clone(&next), Rc::clone(latencies));
        clients.spawn_local(async move { client(&target, &template, jobs, load, &next, &latencies).await });
    }
    while let Some(ended) = clients.join_next().await {
        ended.map_err(Failed::invalid)??;
    }
    Ok(())
}

async fn client(
    target: &Target,
    template: &JobTemplate,
    jobs: usize,
    load: EnqueueLoad,
    next: &Cell<usize>,
    latencies: &RefCell<Latencies>,
) -> Result<(), Failed> {
    let mut connection = target.connect().await?;
    let head = target.head(load.request.path());
    let mut body = Vec::new();
    loop {
        let first = next.get();
        let end = (first + load.batch).min(jobs);
        if first >= jobs {
            return Ok(());
        }
        next.set(end);
        body.clear();
        load.request.push(template, &mut body, first..end);
        let sent = Instant::now();
        connection.post(&head, &body).await?;
        latencies.borrow_mut().add(sent);
    }
}
