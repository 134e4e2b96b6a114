//! Knowing when there is nothing left to do, for `--once` and `--drain`.

use super::args::Args;
use crate::client::{Client, Send, escaped, query};
use crate::exit::Failed;
use std::sync::Arc;
use std::time::Duration;

/// How often the queues are looked at.
const EVERY: Duration = Duration::from_millis(100);

/// Completes when the queues hold nothing to do; never, where nobody asked for that.
///
/// # Errors
/// The server cannot be reached: there is nothing to wait for, as there is for a worker without an end.
pub(super) fn watch(args: &Args) -> Result<impl Future<Output = ()> + use<>, Failed> {
    let states: &'static [&'static str] = match (args.once, args.drain) {
        (_, true) => &["available", "active", "retryable"],
        (true, false) => &["available", "active"],
        (false, false) => &[],
    };
    let look = Look { client: args.server.client()?, queues: args.queues.clone(), types: args.types.clone(), states };
    if !states.is_empty() {
        look.is_idle()?;
    }
    let look = Arc::new(look);
    Ok(async move {
        if look.states.is_empty() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(EVERY).await;
            let look = Arc::clone(&look);
            // A server that does not answer may have work; the worker itself tells that it is away.
            let found = tokio::task::spawn_blocking(move || look.is_idle()).await;
            if matches!(found, Ok(Ok(true))) {
                return;
            }
        }
    })
}

struct Look {
    client: Client,
    queues: Vec<String>,
    /// Only these types count; all where there are none.
    types: Vec<String>,
    /// The states that mean work.
    states: &'static [&'static str],
}

impl Look {
    fn is_idle(&self) -> Result<bool, Failed> {
        for queue in &self.queues {
            let busy = if self.types.is_empty() { self.any(queue)? } else { self.any_of_types(queue)? };
            if busy {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn any(&self, queue: &str) -> Result<bool, Failed> {
        let stats = self.client.ask(Send::Get, &format!("/ojs/v1/queues/{}/stats", escaped(queue)))?;
        Ok(self.states.iter().any(|state| stats["stats"][state].as_u64() != Some(0)))
    }

    fn any_of_types(&self, queue: &str) -> Result<bool, Failed> {
        for kind in &self.types {
            for state in self.states {
                let part = |text: &str| Some(text.to_owned());
                let parts =
                    [("queue", part(queue)), ("state", part(state)), ("type", part(kind)), ("per_page", part("1"))];
                let found = self.client.ask(Send::Get, &format!("/ojs/v1/admin/jobs{}", query(&parts)))?;
                if found["pagination"]["total"].as_u64() != Some(0) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
