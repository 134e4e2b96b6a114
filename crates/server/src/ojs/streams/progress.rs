//! How far a job has come, as an event.

use super::Words;
use redrive_engine::Progress;
use redrive_ojs::events::{progress_envelope, progress_parts};
use redrive_ojs::time::rfc3339;
use redrive_store::JobId;
use serde_json::{Value, json};

/// The data of the event.
pub(super) fn progress_json(words: Words, event_id: &str, job: JobId, progress: &Progress) -> Value {
    let progress = redrive_ojs::Progress {
        fraction: progress.fraction,
        message: progress.message.as_deref(),
        data: progress.data.as_deref(),
        at: progress.at,
    };
    match words {
        Words::Events => progress_envelope(event_id, job, &progress),
        Words::Changes => {
            let mut told = json!({ "job_id": job.to_string(), "timestamp": rfc3339(progress.at) });
            for (part, value) in progress_parts(&progress) {
                told[if part == "percent" { "progress" } else { part }] = value;
            }
            told
        }
    }
}
