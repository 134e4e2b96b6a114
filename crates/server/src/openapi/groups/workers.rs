//! Workers: what they call, and what operators see of them.

use crate::api_error::Code::{Conflict, NotFound, RateLimited, ValidationError};
use crate::openapi::operation::{Group, delete, get, post};

pub(super) const PROTOCOL: Group = Group {
    name: "Worker protocol",
    about: "Fetch jobs, keep their leases, report how they ended.",
    operations: &[
        post("/ojs/v1/workers/fetch", "Claim jobs under a lease")
            .about("With `wait_ms` the answer comes when there is a job, or when that time is over.")
            .takes("Fetch")
            .gives(&[(200, "ClaimedJobs")])
            .fails(&[RateLimited]),
        post("/ojs/v1/workers/ack", "Report that an attempt succeeded")
            .takes("Ack")
            .gives(&[(200, "Settled")])
            .fails(&[NotFound, Conflict]),
        post("/ojs/v1/workers/nack", "Report that an attempt failed, or release the job")
            .about("The retry policy decides what happens next, and the answer says what it decided.")
            .takes("Nack")
            .gives(&[(200, "Settled")])
            .fails(&[NotFound, Conflict, ValidationError]),
        post("/ojs/v1/workers/settle", "Report the ends of several attempts")
            .about("Each report is answered for itself, in the order given.")
            .takes("Settlements")
            .gives(&[(200, "SettledMany")]),
        post("/ojs/v1/workers/heartbeat", "Extend the leases of a worker, and learn what it is told")
            .takes("Heartbeat")
            .gives(&[(200, "HeartbeatAnswer")]),
        post("/ojs/v1/workers/beat", "A heartbeat in which a number of jobs needs no ids")
            .takes("Beat")
            .gives(&[(200, "HeartbeatAnswer")]),
        post("/ojs/v1/workers/progress", "Report how far a running job has come, in percent")
            .takes("ProgressPercentage")
            .gives(&[(200, "ReportedProgress")])
            .fails(&[NotFound]),
        get("/ojs/v1/workers/{id}/health", "Whether a worker is alive and gets jobs")
            .about("503 for a worker that gets no jobs, or that was not heard of lately.")
            .gives(&[(200, "WorkerHealth"), (503, "WorkerHealth")])
            .fails(&[NotFound]),
    ],
};

pub(super) const OPERATED: Group = Group {
    name: "Workers",
    about: "Who is alive, what they run, and what they are told.",
    operations: &[
        get("/ojs/v1/admin/workers", "All workers, by name").gives(&[(200, "WorkerPage")]),
        get("/ojs/v1/admin/workers/{id}", "A worker, and the jobs that it runs")
            .gives(&[(200, "ShownWorker")])
            .fails(&[NotFound]),
        delete("/ojs/v1/admin/workers/{id}", "Forget a worker that is gone, and end its attempts as failed")
            .gives(&[(200, "RemovedWorker")])
            .fails(&[NotFound, Conflict]),
        post("/ojs/v1/admin/workers/{id}/quiet", "Tell a worker to fetch no more jobs")
            .may_take("NoMembers")
            .gives(&[(200, "Directed")])
            .fails(&[NotFound]),
        post("/ojs/v1/admin/workers/{id}/terminate", "Tell a worker to end once its jobs have ended")
            .may_take("NoMembers")
            .gives(&[(200, "Directed")])
            .fails(&[NotFound]),
        post("/ojs/v1/admin/workers/{id}/resume", "Cancel what a worker was told")
            .may_take("NoMembers")
            .gives(&[(200, "Directed")])
            .fails(&[NotFound]),
    ],
};
