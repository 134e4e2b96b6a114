//! What is asked about workflows and schedules. The answers are the documents of Open Job Spec.

use serde_json::Value;

/// A request.
#[derive(Debug)]
pub(crate) enum Ask<'a> {
    /// Start a workflow.
    StartWorkflow(Value),
    /// One workflow.
    Workflow(&'a str),
    /// Cancel a workflow.
    CancelWorkflow(&'a str),
    /// Workflows under `workflows`, the newest first, and `next_after` where there may be more.
    ListWorkflows {
        /// Those that have ended, or those that go on.
        ended: Option<bool>,
        /// Those behind this id.
        after: Option<String>,
        limit: usize,
    },
    /// Register a schedule.
    Register(Value),
    /// Register a schedule of this name, or change it.
    Replace(&'a str, Value),
    /// One schedule.
    Schedule(&'a str),
    /// Resume a schedule, or pause it.
    Switch(&'a str, bool),
    /// Delete a schedule.
    DeleteSchedule(&'a str),
    /// Schedules under `cron_jobs`, by name, and `pagination.next_cursor` where there are more.
    ListSchedules {
        /// Those behind this name.
        after: Option<String>,
        limit: usize,
    },
}
