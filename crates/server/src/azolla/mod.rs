//! Azolla's protocol over gRPC, at an address of its own. Programs that use its clients, and its shepherds, call it
//! without a change.

mod clients;
mod cluster;
mod connection;
mod dispatch;
mod listen;
mod settler;
mod shepherds;
mod status;
mod stream;

use crate::app::App;
use redrive_azolla::{Policies, TaskSettings};
use redrive_policy::Span;
use shepherds::Shepherds;
use std::sync::Arc;
use std::time::Duration;

/// What an operator sets for Azolla's protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct AzollaSettings {
    /// How long a shepherd may say nothing before its tasks are given to others. Shepherds send a heartbeat every 30 s.
    pub lease: Duration,
    /// How long the tasks of a shepherd stay its own after its connection has broken. It returns within 6 s.
    pub reconnect: Duration,
    /// How long one attempt may take. A shepherd ends its workers after 300 s, and reports nothing then.
    pub timeout: Duration,
    /// How many tasks of a domain run at once, where nothing else is set for its key; zero for any number.
    pub concurrency: u32,
    /// Whether tasks that fail for good are kept as dead letters.
    pub dead_letters: bool,
}

impl Default for AzollaSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(45),
            reconnect: Duration::from_secs(15),
            timeout: Duration::from_secs(330),
            concurrency: 100,
            dead_letters: false,
        }
    }
}

impl AzollaSettings {
    fn of_tasks(&self) -> TaskSettings {
        let concurrency = Some(self.concurrency).filter(|most| *most > 0);
        TaskSettings { timeout: span(self.timeout), concurrency }
    }

    /// How often leases are extended: often enough that one which another node has shortened does not run out.
    fn beat(&self) -> Duration {
        (self.lease / 4).min(self.reconnect / 2)
    }
}

/// What all calls share.
struct Protocol {
    app: Arc<App>,
    settings: AzollaSettings,
    policies: Policies,
    shepherds: Shepherds,
}

impl Protocol {
    fn new(app: Arc<App>) -> Self {
        let settings = app.azolla.clone();
        let policies = Policies::new(settings.dead_letters);
        Self { app, settings, policies, shepherds: Shepherds::default() }
    }
}

fn span(duration: Duration) -> Span {
    Span::saturating_ms(duration.as_secs_f64() * 1_000.0)
}
