//! Workflows and schedules.

use crate::api_error::Code::{Conflict, Duplicate, NotFound, RateLimited, ValidationError};
use crate::openapi::operation::{Group, delete, get, patch, post, put};

pub(super) const WORKFLOWS: Group = Group {
    name: "Workflows",
    about: "Chains, groups, batches and graphs of jobs.",
    operations: &[
        get("/ojs/v1/workflows", "Workflows, the newest first").gives(&[(200, "WorkflowPage")]),
        post("/ojs/v1/workflows", "Start a workflow").takes("NewWorkflow").gives(&[(201, "ShownWorkflow")]).fails(&[
            Duplicate,
            Conflict,
            ValidationError,
        ]),
        get("/ojs/v1/workflows/{id}", "A workflow with its steps").gives(&[(200, "ShownWorkflow")]).fails(&[NotFound]),
        delete("/ojs/v1/workflows/{id}", "Cancel a workflow and its jobs").gives(&[(200, "ShownWorkflow")]).fails(&[
            NotFound,
            Conflict,
            RateLimited,
        ]),
        get("/ojs/v1/admin/workflows", "Workflows by numbered pages").gives(&[(200, "WorkflowItems")]),
    ],
};

pub(super) const SCHEDULES: Group = Group {
    name: "Schedules",
    about: "Jobs by a cron expression, in any time zone.",
    operations: &[
        get("/ojs/v1/cron", "Schedules, by name").gives(&[(200, "SchedulePage")]),
        post("/ojs/v1/cron", "Register a schedule under a name that is free")
            .takes("NewSchedule")
            .gives(&[(201, "ShownSchedule")])
            .fails(&[Conflict, Duplicate, ValidationError]),
        get("/ojs/v1/cron/{name}", "A schedule").gives(&[(200, "ShownSchedule")]).fails(&[NotFound]),
        put("/ojs/v1/cron/{name}", "Register a schedule, or change the one that has the name")
            .takes("ScheduleBody")
            .gives(&[(200, "ShownSchedule"), (201, "ShownSchedule")])
            .fails(&[Conflict, Duplicate, ValidationError, RateLimited]),
        patch("/ojs/v1/cron/{name}", "Switch a schedule on or off")
            .takes("ScheduleSwitch")
            .gives(&[(200, "ShownSchedule")])
            .fails(&[NotFound, Conflict, RateLimited]),
        delete("/ojs/v1/cron/{name}", "Delete a schedule")
            .about("Jobs that it has enqueued stay.")
            .gives(&[(200, "DeletedSchedule")])
            .fails(&[NotFound, Conflict, RateLimited]),
        get("/ojs/v1/admin/crons", "Schedules by numbered pages").gives(&[(200, "ScheduleItems")]),
    ],
};
