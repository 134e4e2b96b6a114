//! Enqueueing jobs, one by one or in batches.

use super::http::Target;
use super::tally::Latencies;
use super::wire::JobTemplate;
use crate::exit::Failed;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;
use tokio::task::JoinSet;

/// How jobs are enqueued.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnqueueLoad {
    pub(super) connections: usize,
    /// How many jobs share a request; a single one is sent without a batch.
    pub(super) batch: usize,
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
        clients.spawn_local(async move { client(&target, &template, jobs, load.batch, &next, &latencies).await });
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
    batch: usize,
    next: &Cell<usize>,
    latencies: &RefCell<Latencies>,
) -> Result<(), Failed> {
    let mut connection = target.connect().await?;
    let head = target.head(if batch == 1 { "/ojs/v1/jobs" } else { "/ojs/v1/jobs/batch" });
    let mut body = Vec::new();
    loop {
        let first = next.get();
        let end = (first + batch).min(jobs);
        if first >= jobs {
            return Ok(());
        }
        next.set(end);
        body.clear();
        if batch == 1 {
            template.push_job(&mut body, first);
        } else {
            template.push_batch(&mut body, first..end);
        }
        let sent = Instant::now();
        connection.post(&head, &body).await?;
        latencies.borrow_mut().add(sent);
    }
}
