//! Jobs that applications leave in the store in their own transactions: the same documents as over HTTP, read
//! by the same code.

use super::intake;
use crate::app::{App, Server};
use crate::fault::Fault;
use crate::json::{Members, plain};
use redrive_engine::{EngineError, pace};
use redrive_store::{Letter, NewJob, Received};

impl Server {
    /// Takes in what applications leave in the store, until `stopped` completes.
    pub async fn receive(&self, stopped: impl Future<Output = ()>) {
        let app = &*self.app;
        let open = |letter: &Letter<'_>| read(app, letter);
        pace::receive(&app.engine, &open, stopped, |outcome| told(app, outcome)).await;
    }
}

fn read(app: &App, letter: &Letter<'_>) -> Result<NewJob, String> {
    let members = Members::parse(letter.text).map_err(|error| format!("not a job: {}", plain(&error)))?;
    let mut ids = app.engine.new_ids(letter.at);
    intake::read(app, &members, None, letter.at, &mut ids).map_err(|wrong| Fault::from(wrong).message)
}

fn told(app: &App, outcome: Result<&Received, &EngineError>) {
    match outcome {
        Ok(received) => {
            for (id, _) in &received.refused {
                app.log.warn(format_args!("inbox: job {id} is set aside; `redrive store inbox` tells why"));
            }
        }
        Err(error) => app.log.error(format_args!("inbox: {error}")),
    }
}
