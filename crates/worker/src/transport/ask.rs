//! What is asked about workflows, schedules, events, workers and webhooks. The answers are the documents of Open Job
//! Spec.

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
    /// Events under `events`, the oldest first, `cursor`, the id of the last of them, and whether it `has_more`.
    ListEvents { filter: &'a EventFilter, limit: usize },
    /// Workers under `items`, by name, and `pagination.next_cursor` where there are more.
    ListWorkers {
        /// Those behind this name.
        after: Option<String>,
        limit: usize,
    },
    /// One worker, with the jobs that it runs.
    Worker(&'a str),
    /// Something about webhooks.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "an engine in this process refuses all of them"))]
    Webhooks(WebhookAsk<'a>),
}

/// What is asked about webhooks. Subscriptions and deliveries are named by their ids.
#[derive(Debug)]
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "an engine in this process refuses all of them"))]
pub(crate) enum WebhookAsk<'a> {
    /// Subscribe an endpoint.
    Subscribe(Value),
    /// All subscriptions, under `subscriptions`.
    List,
    /// One subscription.
    Get(&'a str),
    /// Change a subscription.
    Update(&'a str, Value),
    /// Replace the secret of a subscription.
    RotateSecret(&'a str),
    /// Send a test event now.
    Test(&'a str),
    /// Delete a subscription.
    Delete(&'a str),
    /// Deliveries, under `deliveries`.
    Deliveries {
        /// Of this subscription.
        subscription: Option<&'a str>,
        /// That stand like this.
        status: Option<&'a str>,
        limit: usize,
    },
    /// One delivery.
    Delivery(&'a str),
    /// Send a delivery again.
    Retry(&'a str),
    /// Drop a delivery.
    Drop(&'a str),
}

/// Which events.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventFilter {
    /// Names or patterns of types; none for all.
    pub(crate) types: Vec<String>,
    pub(crate) channel: Channel,
    /// Those behind the event of this id.
    pub(crate) after: Option<String>,
}

/// What events are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Channel {
    #[default]
    All,
    Queue(String),
    Job(String),
}
