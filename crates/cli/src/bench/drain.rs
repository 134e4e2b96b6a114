//! Workers that claim jobs and settle them.

use super::http::{Connection, Head, Target};
use super::tally::{Latencies, Ledger};
use super::wire::{self, Fetched, JobTemplate, Settled};
use crate::exit::Failed;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;
use tokio::task::JoinSet;

/// How jobs are claimed.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerLoad {
    pub(super) connections: usize,
    /// How many jobs are fetched and settled in one request; a single one is fetched, and
    /// then acked or nacked.
    pub(super) batch: usize,
}

/// Claims and settles jobs until the ledger is complete. A latency is the time from the request for jobs to
/// the answer that they are settled.
pub(super) async fn drain(
    target: &Target,
    template: &JobTemplate,
    ledger: &Rc<RefCell<Ledger>>,
    worker: WorkerLoad,
    latencies: &Rc<RefCell<Latencies>>,
) -> Result<(), Failed> {
    let mut clients = JoinSet::new();
    for _ in 0..worker.connections {
        let client = BenchClient::open(target, template, worker.batch).await?;
        let (ledger, latencies) = (Rc::clone(ledger), Rc::clone(latencies));
        clients.spawn_local(async move { client.work(&ledger, &latencies).await });
    }
    while let Some(ended) = clients.join_next().await {
        ended.map_err(Failed::invalid)??;
        if ledger.borrow().is_complete() {
            // There are no jobs left for those that still wait; they end with the set.
            return Ok(());
        }
    }
    Ok(())
}

struct BenchClient {
    connection: Connection,
    batch: usize,
    fetch: Head,
    fetch_body: Vec<u8>,
    ack: Head,
    nack: Head,
    settle: Head,
}

/// How a run is going to end.
struct PlannedEnd {
    number: usize,
    fails: bool,
}

impl BenchClient {
    async fn open(target: &Target, template: &JobTemplate, batch: usize) -> Result<Self, Failed> {
        Ok(Self {
            connection: target.connect().await?,
            batch,
            fetch: target.head("/ojs/v1/workers/fetch"),
            fetch_body: template.fetch(batch),
            ack: target.head("/ojs/v1/workers/ack"),
            nack: target.head("/ojs/v1/workers/nack"),
            settle: target.head("/ojs/v1/workers/settle"),
        })
    }

    async fn work(mut self, ledger: &RefCell<Ledger>, latencies: &RefCell<Latencies>) -> Result<(), Failed> {
        let mut body = Vec::new();
        let mut ends = Vec::new();
        while !ledger.borrow().is_complete() {
            let asked = Instant::now();
            self.claim(ledger, &mut body, &mut ends).await?;
            if ends.is_empty() {
                continue;
            }
            self.settle(&body, &ends).await?;
            latencies.borrow_mut().add(asked);
            let mut ledger = ledger.borrow_mut();
            for end in ends.iter().filter(|end| !end.fails) {
                ledger.finished(end.number)?;
            }
        }
        Ok(())
    }

    /// Claims jobs, and decides how they end.
    async fn claim(
        &mut self,
        ledger: &RefCell<Ledger>,
        body: &mut Vec<u8>,
        ends: &mut Vec<PlannedEnd>,
    ) -> Result<(), Failed> {
        let answer = self.connection.post(&self.fetch, &self.fetch_body).await?;
        let fetched: Fetched<'_> =
            serde_json::from_slice(answer).map_err(|error| Failed::unreachable(format!("a fetch: {error}")))?;
        let mut ledger = ledger.borrow_mut();
        body.clear();
        ends.clear();
        let many = self.batch > 1;
        for job in &fetched.jobs {
            let number = job.args[0].i;
            let fails = ledger.started(number, job.attempt)?;
            if many {
                wire::push_settlement(body, job, fails);
            } else {
                wire::push_end(body, job, fails);
            }
            ends.push(PlannedEnd { number, fails });
        }
        if many {
            wire::close_settlement(body);
        }
        Ok(())
    }

    /// Reports how the runs ended, and checks that each report was accepted.
    async fn settle(&mut self, body: &[u8], ends: &[PlannedEnd]) -> Result<(), Failed> {
        if let ([end], 1) = (ends, self.batch) {
            let head = if end.fails { &self.nack } else { &self.ack };
            self.connection.post(head, body).await?;
            return Ok(());
        }
        let answer = self.connection.post(&self.settle, body).await?;
        let answer: Settled =
            serde_json::from_slice(answer).map_err(|error| Failed::unreachable(format!("a settle: {error}")))?;
        if answer.settled != ends.len() || answer.refused != 0 {
            let Settled { settled, refused } = answer;
            let message = format!("of {} reports {settled} were settled and {refused} refused", ends.len());
            return Err(Failed::invalid(message));
        }
        Ok(())
    }
}
