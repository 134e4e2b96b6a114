//! Queues and limits.

use crate::api_error::Code::{Conflict, NotFound};
use crate::openapi::operation::{Group, delete, get, post, put};

pub(super) const QUEUES: Group = Group {
    name: "Queues",
    about: "List, count, pause and resume queues.",
    operations: &[
        get("/ojs/v1/queues", "All queues, by name").gives(&[(200, "QueuePage")]),
        delete("/ojs/v1/queues/{name}", "Forget a queue that has no jobs")
            .gives(&[(200, "RemovedQueue")])
            .fails(&[NotFound, Conflict]),
        get("/ojs/v1/queues/{name}/stats", "How many jobs of a queue are in each state").gives(&[(200, "QueueStats")]),
        post("/ojs/v1/queues/{name}/pause", "Pause a queue: its jobs wait")
            .about("A queue that has had no job yet is made; with `\"create\": false` it is refused.")
            .may_take("PauseOrder")
            .gives(&[(200, "SwitchedQueue")])
            .fails(&[NotFound]),
        post("/ojs/v1/queues/{name}/resume", "Resume a queue")
            .may_take("NoMembers")
            .gives(&[(200, "SwitchedQueue")])
            .fails(&[NotFound]),
        get("/ojs/v1/admin/queues", "All queues with their numbers").gives(&[(200, "QueueItems")]),
        get("/ojs/v1/admin/queues/{name}", "A queue with its numbers, and what applies to its jobs")
            .gives(&[(200, "AdminQueue")])
            .fails(&[NotFound]),
        post("/ojs/v1/admin/queues/{name}/pause", "Pause a queue: its jobs wait")
            .may_take("PauseOrder")
            .gives(&[(200, "AdminSwitchedQueue")])
            .fails(&[NotFound]),
        post("/ojs/v1/admin/queues/{name}/resume", "Resume a queue")
            .may_take("NoMembers")
            .gives(&[(200, "AdminSwitchedQueue")])
            .fails(&[NotFound]),
        delete("/ojs/v1/admin/queues/{name}/jobs", "Delete jobs of a queue that have ended")
            .takes("PurgeOrder")
            .gives(&[(200, "PurgeAnswer")]),
    ],
};

pub(super) const LIMITS: Group = Group {
    name: "Limits",
    about: "How many jobs of a queue, a type or a key run at once, and how many start in a time.",
    operations: &[
        get("/ojs/v1/queues/{name}/config", "The configuration of a queue").gives(&[(200, "QueueConfigAnswer")]),
        put("/ojs/v1/queues/{name}/config", "Replace the configuration of a queue")
            .takes("QueueConfig")
            .gives(&[(200, "QueueConfigAnswer")]),
        get("/ojs/v1/rate-limits", "All groups that have limits, and how they stand").gives(&[(200, "StandingItems")]),
        get("/ojs/v1/rate-limits/{key}", "How the limit of a key stands")
            .gives(&[(200, "Standing")])
            .fails(&[NotFound]),
        put("/ojs/v1/rate-limits/{key}", "Set limits for a key, in place of those that its jobs bring")
            .takes("LimitConfig")
            .gives(&[(200, "Standing")])
            .fails(&[NotFound]),
        delete("/ojs/v1/rate-limits/{key}", "Remove what is set for a key").gives(&[(200, "LimitGroup")]),
        get("/ojs/v1/admin/queues/{name}/config", "The configuration of a queue").gives(&[(200, "QueueConfigAnswer")]),
        put("/ojs/v1/admin/queues/{name}/config", "Replace the configuration of a queue")
            .takes("QueueConfig")
            .gives(&[(200, "QueueConfigAnswer")]),
        put("/ojs/v1/admin/queues/{name}/rate-limit", "Set limits for a queue")
            .takes("LimitConfig")
            .gives(&[(200, "Standing")])
            .fails(&[NotFound]),
        get("/ojs/v1/admin/types/{type}/rate-limit", "How the limit of a type of jobs stands")
            .gives(&[(200, "Standing")])
            .fails(&[NotFound]),
        put("/ojs/v1/admin/types/{type}/rate-limit", "Set limits for a type of jobs")
            .about("They apply to jobs that are enqueued from now on.")
            .takes("LimitConfig")
            .gives(&[(200, "Standing")])
            .fails(&[NotFound]),
        delete("/ojs/v1/admin/types/{type}/rate-limit", "Remove what is set for a type of jobs")
            .gives(&[(200, "LimitGroup")]),
    ],
};
