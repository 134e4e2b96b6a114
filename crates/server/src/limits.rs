//! Limits on everything that grows.

use std::time::Duration;

/// The limits of a server. Each can be set by the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest body of a request, in bytes.
    pub body_bytes: usize,
    /// The longest `args` of one job, in bytes of JSON.
    pub args_bytes: usize,
    /// The longest error of one failed attempt that is stored whole, in bytes of JSON.
    pub error_bytes: usize,
    /// How deep `args`, `meta` and other values may nest; at most 120.
    pub nesting: usize,
    /// How many jobs one batch, or one request to settle, may hold.
    pub batch: usize,
    /// How many jobs one workflow may have, callbacks included.
    pub workflow: usize,
    /// How many jobs one fetch answers.
    pub fetch: usize,
    /// How many jobs one page of a list holds.
    pub page: usize,
    /// About how many bytes one answer with several jobs has; a single job is always answered whole.
    pub answer_bytes: usize,
    /// How many dead letters one bulk request changes.
    pub bulk: usize,
    /// The longest name of a queue, of a job type, and of a worker, in bytes.
    pub name_bytes: usize,
    /// How many connections are open at once. For a new one, one that waits for its client is closed.
    pub connections: usize,
    /// How many connections one address may have open, not counting those that have shown a key; zero for no
    /// limit but that of all.
    pub connections_per_address: usize,
    /// How long a client may take to send the head of a request, and how long a connection may be idle.
    pub header_timeout: Duration,
    /// How long a client may take to send the body of a request.
    pub body_timeout: Duration,
    /// How long a client may take to take an answer, or the next part of a long one.
    pub write_timeout: Duration,
    /// How long one fetch may wait for a job.
    pub long_poll: Duration,
    /// How many fetches may wait at once.
    pub long_polls: usize,
    /// How many event streams may be open at once.
    pub streams: usize,
    /// How many events a stream may be behind. What lies further back is left out, and the stream says so.
    pub stream_events: usize,
    /// After how long a stream without events gets a heartbeat.
    pub stream_heartbeat: Duration,
    /// After how long a stream without events is ended.
    pub stream_idle: Duration,
    /// How many queues, pairs of queue and type, and types of errors have metrics of their own; further ones are
    /// counted together.
    pub metric_labels: usize,
    /// How long running requests may take to end when the server stops.
    pub drain: Duration,
}

impl Limits {
    /// Those on a single job.
    pub(crate) const fn of_jobs(&self) -> redrive_ojs::Limits {
        let Self { args_bytes, error_bytes, nesting, name_bytes, .. } = *self;
        redrive_ojs::Limits { args_bytes, error_bytes, nesting, name_bytes }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let redrive_ojs::Limits { args_bytes, error_bytes, nesting, name_bytes } = redrive_ojs::Limits::default();
        Self {
            body_bytes: 1 << 20,
            args_bytes,
            error_bytes,
            nesting,
            batch: 1_000,
            workflow: redrive_ojs::workflows::WorkflowLimits::JOBS,
            fetch: 1_000,
            page: 1_000,
            answer_bytes: 8 << 20,
            bulk: 10_000,
            name_bytes,
            connections: 1_000,
            connections_per_address: 0,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            long_poll: Duration::from_secs(60),
            long_polls: 500,
            streams: 100,
            stream_events: 10_000,
            stream_heartbeat: Duration::from_secs(15),
            stream_idle: Duration::from_secs(3_600),
            metric_labels: 200,
            drain: Duration::from_secs(10),
        }
    }
}
