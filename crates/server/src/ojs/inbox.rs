//! Jobs that applications leave in the store in their own transactions: the same documents as over HTTP, read
//! by the same code.

use super::intake;
use crate::app::{App, Server};
use redrive_engine::{EngineError, Submission, sweeper};
use redrive_ojs::Invalid;
use redrive_ojs::json::{Members, plain};
use redrive_store::{Drained, InboxEntry};
use tracing::{error, warn};

impl Server {
    /// Takes in what applications leave in the store, until `stopped` completes.
    pub async fn drain_inbox(&self, stopped: impl Future<Output = ()>) {
        let app = &*self.app;
        let decode = |entry: &InboxEntry<'_>| read(app, entry);
        sweeper::drain_inbox(&app.engine, &decode, stopped, log_outcome).await;
    }
}

fn read(app: &App, entry: &InboxEntry<'_>) -> Result<Submission, String> {
    let members = Members::parse(entry.text).map_err(|error| format!("not a job: {}", plain(&error)))?;
    intake::read(app, &members, None, entry.at).map_err(Invalid::message)
}

fn log_outcome(outcome: Result<&Drained, &EngineError>) {
    match outcome {
        Ok(drained) => {
            for (id, _) in &drained.refused {
                warn!(job_id = %id, "inbox: job {id} is set aside; `redrive store inbox` tells why");
            }
        }
        Err(error) => error!("inbox: {error}"),
    }
}
