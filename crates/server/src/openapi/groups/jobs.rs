//! Jobs: enqueue, look up, cancel.

use crate::api_error::Code::{Conflict, Duplicate, NotFound, QueueFull, ValidationError};
use crate::openapi::operation::{Group, delete, get, post, put};

pub(super) const JOBS: Group = Group {
    name: "Jobs",
    about: "Enqueue jobs, look them up, cancel them.",
    operations: &[
        post("/ojs/v1/jobs", "Enqueue a job")
            .about(
                "201 for a new job, 200 where a job with the same idempotency key, or the same unique key, is there \
                 already. With the header Idempotency-Key the request may be sent again.",
            )
            .reads(&["Idempotency-Key", "traceparent", "tracestate"])
            .takes("NewJob")
            .gives(&[(201, "EnqueuedJob"), (200, "EnqueuedJob")])
            .fails(&[Duplicate, Conflict, ValidationError, QueueFull]),
        post("/ojs/v1/jobs/batch", "Enqueue many jobs: all of them, or none")
            .reads(&["Idempotency-Key", "traceparent", "tracestate"])
            .takes("NewBatch")
            .gives(&[(201, "EnqueuedBatch")])
            .fails(&[Duplicate, Conflict, ValidationError, QueueFull]),
        get("/ojs/v1/jobs/{id}", "A job, and why each of its attempts was retried or not")
            .about("`redrive.failures` has the verdict on each failed attempt, with its reasons.")
            .gives(&[(200, "ShownJob")])
            .fails(&[NotFound]),
        delete("/ojs/v1/jobs/{id}", "Cancel a job")
            .about("A worker that runs it learns of it with its next heartbeat.")
            .gives(&[(200, "ChangedJob")])
            .fails(&[NotFound, Conflict]),
        post("/ojs/v1/jobs/{id}/activate", "Make a pending job available")
            .gives(&[(200, "ChangedJob")])
            .fails(&[NotFound, Conflict]),
        get("/ojs/v1/jobs/{id}/progress", "How far a running job has come")
            .gives(&[(200, "Progress")])
            .fails(&[NotFound]),
        put("/ojs/v1/jobs/{id}/progress", "Report how far a running job has come, as a fraction")
            .takes("ProgressFraction")
            .gives(&[(200, "ReportedProgress")])
            .fails(&[NotFound]),
    ],
};
