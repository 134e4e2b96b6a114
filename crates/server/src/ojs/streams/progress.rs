//! How far a job has come, as an event.

use super::Words;
use redrive_engine::Progress;
use redrive_ojs::time::rfc3339;
use redrive_store::JobId;
use serde_json::{Value, json};

/// What the event is called.
pub(super) const PROGRESS: &str = "job.progress";

/// The data of the event.
pub(super) fn progress_json(words: Words, event_id: &str, job: JobId, progress: &Progress) -> Value {
    let (time, job) = (rfc3339(progress.at), job.to_string());
    let (mut told, names) = match words {
        Words::Events => {
            let told = json!({
                "specversion": "1.0", "id": event_id, "type": PROGRESS, "event": PROGRESS, "time": time,
                "timestamp": time, "source": "/ojs/v1", "subject": job, "data": { "job_id": job },
            });
            (told, ["progress_percent", "progress_message", "progress_data"])
        }
        Words::Changes => (json!({ "job_id": job, "timestamp": time }), ["progress", "message", "data"]),
    };
    let percent = progress.fraction.map(|fraction| (fraction * 100.0).floor() as u64);
    let data = progress.data.as_ref().and_then(|data| serde_json::from_slice(data).ok());
    let values = [percent.map(Value::from), progress.message.as_deref().map(Value::from), data];
    let members = if words == Words::Events { &mut told["data"] } else { &mut told };
    for (name, value) in names.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))) {
        members[name] = value;
    }
    told
}
