//! Watching a job until it has ended.

use crate::client::Client;
use crate::{exit::Failed, job};
use redrive_policy::Span;
use serde_json::Value;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Polls a job until it has ended; `changed` is called with each new state.
pub(super) fn until_ended(
    client: &Client,
    id: &str,
    longest: Span,
    mut changed: impl FnMut(&Value) -> Result<(), Failed>,
) -> Result<Value, Failed> {
    let deadline = Instant::now() + Duration::from(longest);
    let mut seen = Value::Null;
    let mut pause = FIRST_PAUSE;
    loop {
        let job = job::job(client, id)?;
        if job["state"] != seen {
            changed(&job)?;
            seen = job["state"].clone();
            pause = FIRST_PAUSE;
        }
        if matches!(seen.as_str(), Some("completed" | "cancelled" | "discarded")) {
            return Ok(job);
        }
        if Instant::now() >= deadline {
            return Err(Failed::invalid(format!(
                "job {id} is still {} after {longest}; it goes on without this command",
                seen.as_str().unwrap_or("in no known state")
            )));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
