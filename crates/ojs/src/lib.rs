//! Open Job Spec as Redrive reads and writes it: jobs as they are enqueued, the body that is stored of them, and
//! the envelopes that callers and workers are answered. It knows no HTTP and reads no clock.
//!
//! Without the feature `store` only what a client needs is here: the document of a job to be enqueued, the rules of
//! names, and timestamps. The feature `engine` adds the conversion of a request into what the engine takes, and what
//! callers do with schedules and workflows, and workers as they are listed.

#[cfg(feature = "engine")]
pub mod cron;
mod document;
#[cfg(feature = "store")]
pub mod events;
mod invalid;
#[cfg(feature = "store")]
mod jobs;
pub mod json;
mod limits;
mod names;
#[cfg(feature = "store")]
pub mod queues;
#[cfg(feature = "engine")]
pub mod runs;
pub mod time;
mod trace;
#[cfg(feature = "engine")]
pub mod webhooks;
#[cfg(feature = "engine")]
pub mod workers;
#[cfg(feature = "engine")]
pub mod workflows;

pub use document::{JobDocument, JobOptions, When};
pub use invalid::{Invalid, listed};
#[cfg(feature = "store")]
pub use jobs::*;
pub use limits::Limits;
pub use names::{QUEUE_ALLOWED, is_queue, is_type, queue_word};
pub use trace::{TRACEPARENT, TRACESTATE, TraceContext};
