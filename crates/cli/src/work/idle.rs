//! Detects when the queues are empty, for `--once` and `--drain`, and which queues are paused.

use super::args::Args;
use super::reporter::Reporter;
use crate::client::{Client, Send, escaped};
use crate::exit::Failed;
use crate::pages::List;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Jobs of a type are counted one by one, up to this number.
const MAX_COUNT: usize = 500;
/// How often the queues are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Completes when the queues are empty, and returns what is left in paused queues; never without `--once` and
/// `--drain`. Paused queues are reported; without these flags, only at the start.
///
/// # Errors
/// The server cannot be reached, and `--once` or `--drain` is set: there is nothing to wait for.
pub(super) fn watch(args: &Args, reporter: &Arc<Reporter>) -> Result<impl Future<Output = HeldQueues> + use<>, Failed> {
    let states: &'static [&'static str] = if args.once { &["available"] } else { &["available", "retryable"] };
    let check =
        QueueCheck { client: args.server.client()?, queues: args.queues.clone(), types: args.types.clone(), states };
    let ends = args.once || args.drain;
    if ends {
        check.run()?;
    }
    let (check, reporter) = (Arc::new(check), Arc::clone(reporter));
    Ok(async move {
        loop {
            let check = Arc::clone(&check);
            // A server that does not answer may have jobs; the worker itself reports that it is unreachable.
            if let Ok(Ok(found)) = tokio::task::spawn_blocking(move || check.run()).await {
                reporter.held(&found.held);
                if ends && !found.busy {
                    return found.held;
                }
            }
            if !ends {
                return std::future::pending().await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
}

/// Paused queues, and how many jobs wait in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldQueues(pub(super) Vec<(String, u64)>);

impl fmt::Display for HeldQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (queue, count)) in self.0.iter().enumerate() {
            let (lead, jobs) = (if index > 0 { "; " } else { "" }, if *count == 1 { "job waits" } else { "jobs wait" });
            let least = if *count >= MAX_COUNT as u64 { "at least " } else { "" };
            write!(f, "{lead}the queue {queue} is paused, and {least}{count} {jobs} there: ")?;
            write!(f, "`redrive queues resume {queue}`")?;
        }
        Ok(())
    }
}

struct QueueCheck {
    client: Client,
    queues: Vec<String>,
    /// Only these types count; all if this is empty.
    types: Vec<String>,
    /// The states, besides active, of jobs that will run.
    states: &'static [&'static str],
}

/// The state of the queues.
struct Found {
    /// Whether any job is running, or will run without further action.
    busy: bool,
    held: HeldQueues,
}

impl QueueCheck {
    fn run(&self) -> Result<Found, Failed> {
        let mut found = Found { busy: false, held: HeldQueues::default() };
        for queue in &self.queues {
            let stats = self.client.ask(Send::Get, &format!("/ojs/v1/queues/{}/stats", escaped(queue)))?;
            let count = |state: &str| {
                if self.types.is_empty() {
                    // A missing count may be any number.
                    return Ok(stats["stats"][state].as_u64().unwrap_or(1));
                }
                self.types.iter().try_fold(0, |sum, kind| Ok::<u64, Failed>(sum + self.of_type(queue, state, kind)?))
            };
            let waiting = self.states.iter().try_fold(0, |sum, state| Ok::<u64, Failed>(sum + count(state)?))?;
            let paused = stats["status"] == "paused";
            if paused && waiting > 0 {
                found.held.0.push((queue.clone(), waiting));
            }
            found.busy |= count("active")? > 0 || (waiting > 0 && !paused);
        }
        Ok(found)
    }

    /// How many jobs of a type are in a state, counted up to [`MAX_COUNT`].
    fn of_type(&self, queue: &str, state: &str, kind: &str) -> Result<u64, Failed> {
        let part = |text: &str| Some(text.to_owned());
        let filter = vec![("queue", part(queue)), ("state", part(state)), ("type", part(kind))];
        let list = List { path: "/ojs/v1/admin/jobs", entries: "items", limit: "per_page", filter };
        Ok(list.read(&self.client, MAX_COUNT)?.entries.len() as u64)
    }
}
