//! For operators: jobs, numbers, maintenance, backups.

use crate::api_error::Code::{Conflict, Duplicate, NotConfigured, NotFound, RateLimited, ValidationError};
use crate::openapi::operation::{Group, delete, get, post};

pub(super) const ADMIN: Group = Group {
    name: "Operation",
    about: "All jobs, numbers, maintenance and backups.",
    operations: &[
        get("/ojs/v1/admin/stats", "The whole server in numbers").gives(&[(200, "Stats")]),
        get("/ojs/v1/admin/stats/history", "Numbers over time").gives(&[(200, "History")]),
        get("/ojs/v1/admin/jobs", "Jobs, the newest first")
            .about("Without arguments, metadata, results and error details, unless `include=payload` asks for them.")
            .gives(&[(200, "JobItems")]),
        get("/ojs/v1/admin/jobs/{id}", "All about a job").gives(&[(200, "AdminJob")]).fails(&[NotFound]),
        post("/ojs/v1/admin/jobs/{id}/cancel", "Cancel a job")
            .may_take("NoMembers")
            .gives(&[(200, "ChangedJob")])
            .fails(&[NotFound, Conflict]),
        post("/ojs/v1/admin/jobs/{id}/retry", "Redrive a job that has ended, dead letter or not")
            .may_take("RedriveOrder")
            .gives(&[(200, "RedrivenJob")])
            .fails(&[NotFound, Conflict, Duplicate, ValidationError]),
        post("/ojs/v1/admin/jobs/bulk/retry", "Redrive many jobs that have ended")
            .takes("BulkOrderEnded")
            .gives(&[(200, "BulkAnswer")]),
        post("/ojs/v1/admin/jobs/bulk/cancel", "Cancel many jobs that have not ended")
            .takes("BulkOrderLive")
            .gives(&[(200, "BulkAnswer")]),
        post("/ojs/v1/admin/jobs/bulk/delete", "Forget many jobs that have ended")
            .takes("BulkOrderEnded")
            .gives(&[(200, "BulkAnswer")]),
        get("/ojs/v1/admin/system/config", "What the server was started with, without secrets")
            .gives(&[(200, "SystemConfig")]),
        get("/ojs/v1/admin/system/maintenance", "Whether there is maintenance").gives(&[(200, "Maintenance")]),
        post("/ojs/v1/admin/system/maintenance", "Begin or end maintenance: no jobs are claimed meanwhile")
            .takes("MaintenanceOrder")
            .gives(&[(200, "Maintenance")])
            .fails(&[Conflict, RateLimited]),
        get("/ojs/v1/admin/keys", "API keys: what they may do, where, and until when").gives(&[(200, "KeyList")]),
        post("/ojs/v1/admin/keys", "Make an API key")
            .about("The secret is in this answer only. The first key closes the server for callers without one.")
            .takes("KeyRequest")
            .gives(&[(201, "KeyWithSecret")])
            .fails(&[Conflict, Duplicate, NotConfigured]),
        post("/ojs/v1/admin/keys/{name}/rotate", "Give an API key a new secret")
            .about("The secret is in this answer only.")
            .may_take("KeyRotation")
            .gives(&[(200, "KeyWithSecret")])
            .fails(&[NotFound, Conflict]),
        delete("/ojs/v1/admin/keys/{name}", "Revoke an API key, also for requests that are open")
            .gives(&[(200, "KeyRevoked")])
            .fails(&[NotFound, Conflict]),
        post("/ojs/v1/admin/backup", "Copy the store into the folder for backups")
            .may_take("BackupOrder")
            .gives(&[(200, "BackupAnswer")])
            .fails(&[Duplicate, NotConfigured, RateLimited]),
    ],
};
