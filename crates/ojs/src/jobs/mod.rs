//! Jobs between callers and a store: read as they are enqueued, stored as a body, answered as envelopes.

mod attempt_error;
pub mod body;
mod canonical;
mod enqueue;
mod envelope;
mod explanation;
mod policy;
mod progress;
pub(crate) mod rate_limit;
mod repeat;
mod revise;
mod schedule;
#[cfg(feature = "engine")]
mod submission;
mod unique;

pub use attempt_error::AttemptError;
pub use enqueue::JobRequest;
#[cfg(feature = "engine")]
pub(crate) use enqueue::MANAGED;
pub use envelope::{Envelopes, push_id, push_moment, push_ms, stopped_by_failure};
pub use explanation::{has_cleared_expiry, push_explanation, push_redriven};
pub use policy::{PolicyOrigin, max_attempts, policy_document};
pub use progress::Progress;
pub use rate_limit::is_limit_key;
pub use repeat::{is_same, key_reused};
pub use revise::Override;
pub use schedule::{lease, span_of_seconds};
#[cfg(feature = "engine")]
pub use submission::{policy_text, submission, submission_in};
