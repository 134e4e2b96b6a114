//! Jobs that applications leave in the store in their own transactions: the same documents as over HTTP, read
//! by the same code.

use super::intake;
use crate::api_error::ApiError;
use crate::app::{App, Server};
use crate::json::{Members, plain};
use redrive_engine::{EngineError, sweeper};
use redrive_store::{Drained, InboxEntry, NewJob};

impl Server {
    /// Takes in what applications leave in the store, until `stopped` completes.
    pub async fn drain_inbox(&self, stopped: impl Future<Output = ()>) {
        let app = &*self.app;
        let open = |entry: &InboxEntry<'_>| read(app, entry);
        sweeper::drain_inbox(&app.engine, &open, stopped, |outcome| told(app, outcome)).await;
    }
}

fn read(app: &App, entry: &InboxEntry<'_>) -> Result<NewJob, String> {
    let members = Members::parse(entry.text).map_err(|error| format!("not a job: {}", plain(&error)))?;
    let mut ids = app.engine.new_ids(entry.at);
    intake::read(app, &members, None, entry.at, &mut ids).map_err(|wrong| ApiError::from(wrong).message)
}

fn told(app: &App, outcome: Result<&Drained, &EngineError>) {
    match outcome {
        Ok(drained) => {
            for (id, _) in &drained.refused {
                app.log.warn(format_args!("inbox: job {id} is set aside; `redrive store inbox` tells why"));
            }
        }
        Err(error) => app.log.error(format_args!("inbox: {error}")),
    }
}
