//! What a shepherd reports: stored in the order in which it came, as many reports at once as have come meanwhile.

use super::span;
use super::stream::Session;
use redrive_azolla::Report;
use redrive_engine::{Ending, EngineError};
use redrive_store::{LeaseRef, Settled};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tracing::{error, info, warn};

/// How many reports are stored at once.
const AT_ONCE: usize = 500;
/// How long to wait before a store that did not answer is asked again.
const AGAIN: Duration = Duration::from_millis(500);

/// What a shepherd has told.
pub(super) enum Told {
    /// That it is there.
    Alive,
    /// How an attempt ended.
    Report(Report),
}

/// Stores reports and extends leases, until the stream has ended and everything is stored that came before.
pub(super) struct Settler {
    session: Arc<Session>,
}

impl Settler {
    pub(super) const fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    pub(super) async fn run(self, mut reports: mpsc::Receiver<Told>) {
        let beat = self.session.protocol.settings.beat();
        let mut beats = interval_at(Instant::now() + beat, beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The leases that it brings begin anew.
        self.extend(self.session.protocol.settings.lease).await;
        loop {
            let mut told = Vec::new();
            tokio::select! {
                count = reports.recv_many(&mut told, AT_ONCE) => {
                    if count == 0 {
                        break;
                    }
                }
                // As long as the stream is open, the shepherd is there: a silent one is noticed where it is read.
                _ = beats.tick() => self.extend(self.session.protocol.settings.lease).await,
            }
            self.settle(told).await;
        }
        self.leave().await;
    }

    /// Stores reports of tasks that the shepherd has. One of a task that it does not have, or not any more, changes
    /// nothing.
    async fn settle(&self, told: Vec<Told>) {
        let Session { shepherd, worker, .. } = &*self.session;
        let mut endings: Vec<(LeaseRef, Ending)> = Vec::new();
        for report in told.into_iter().filter_map(Told::report) {
            let twice = endings.iter().any(|(held, _)| held.id == report.id);
            match shepherd.lease_of(report.id).filter(|_| !twice) {
                Some(held) => endings.push((held, report.ending)),
                None => info!(job_id = %report.id, "{worker} reports {}, which it does not have: ignored", report.id),
            }
        }
        if endings.is_empty() {
            return;
        }
        let held: Vec<LeaseRef> = endings.iter().map(|(held, _)| held.clone()).collect();
        match self.stored(endings).await {
            Ok(answers) => {
                for (held, answer) in held.iter().zip(answers) {
                    shepherd.drop_task(held);
                    if let Err(error) = answer {
                        info!(job_id = %held.id, "a late report of {worker} is ignored: {error}");
                    }
                }
            }
            Err(error) => error!("{} reports of {worker} are lost: {error}", held.len()),
        }
    }

    /// Asks the store until it answers, or the leases are over.
    async fn stored(&self, endings: Vec<(LeaseRef, Ending)>) -> Result<Vec<Result<Settled, EngineError>>, EngineError> {
        let until = Instant::now() + self.session.protocol.settings.lease;
        loop {
            match self.session.protocol.app.engine.settle(endings.clone()).await {
                Err(error) if Instant::now() < until => {
                    warn!("cannot store reports of {} yet: {error}", self.session.worker);
                    tokio::time::sleep(AGAIN).await;
                }
                answer => return answer,
            }
        }
    }

    /// All leases of the shepherd last so long from now. It has a task no more whose lease is over: its time has run
    /// out, or it was cancelled.
    async fn extend(&self, lease: Duration) {
        let shepherd = &self.session.shepherd;
        let held = shepherd.leases();
        if held.is_empty() || !shepherd.is_current(self.session.number) {
            return;
        }
        match self.session.protocol.app.engine.extend(held.clone(), Some(span(lease))).await {
            Ok(answers) => {
                for (held, answer) in held.iter().zip(answers) {
                    if answer.is_err() {
                        shepherd.drop_task(held);
                    }
                }
            }
            Err(error) => warn!("cannot extend the leases of {}: {error}", self.session.worker),
        }
    }

    /// The stream is over. The shepherd has its tasks for some time, in which it may come back.
    async fn leave(self) {
        let Session { protocol, shepherd, number, worker, .. } = &*self.session;
        if !shepherd.is_current(*number) {
            return;
        }
        let reconnect = protocol.settings.reconnect;
        info!("{worker} is gone; its tasks wait {reconnect:?} for it (azolla.reconnect)");
        self.extend(reconnect).await;
        tokio::time::sleep(reconnect * 2).await;
        protocol.shepherds.forget(shepherd, *number);
    }
}

impl Told {
    fn report(self) -> Option<Report> {
        match self {
            Self::Alive => None,
            Self::Report(report) => Some(report),
        }
    }
}
