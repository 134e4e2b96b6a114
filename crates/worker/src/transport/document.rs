//! A new job in the format of Open Job Spec, both for a server and for the engine in this process.

use crate::{NewJob, Retry};
use redrive_ojs::{JobDocument, JobOptions, When};

pub(crate) fn document(job: &NewJob) -> JobDocument<'_> {
    JobDocument {
        kind: &job.kind,
        args: &job.args,
        id: job.id.as_deref(),
        meta: job.meta.as_ref(),
        options: JobOptions {
            queue: job.queue.as_deref(),
            priority: job.priority,
            delay_until: job.delay.map(|delay| When::After(delay.into())),
            expires_at: job.expires_after.map(|time| When::After(time.into())),
            timeout: job.timeout.map(Into::into),
            lease: job.lease.map(Into::into),
            retry: job.retry.as_ref().map(Retry::to_json),
            idempotency_key: job.idempotency_key.as_deref(),
            rate_limit: job.rate_limit.as_ref().and_then(|limit| serde_json::to_value(limit).ok()),
            unique: job.unique.as_ref().and_then(|unique| serde_json::to_value(unique).ok()),
            tags: &job.tags,
            ..JobOptions::default()
        },
    }
}
