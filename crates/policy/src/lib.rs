//! Retry policies as data.

mod backoff;
mod builder;
mod curve;
mod decide;
pub mod dialect;
mod draw;
mod failure;
mod history;
pub mod import;
mod jitter;
pub mod lab;
mod matcher;
mod normal;
mod policy;
mod problem;
pub mod retry;
mod span;
mod verdict;
pub mod wire;

pub use backoff::{Backoff, Cap, CapPlace, Computed, Rounding};
pub use builder::PolicyBuilder;
pub use curve::Curve;
pub use decide::{Bounds, decide};
pub use draw::{Ambient, Draw, Entropy, Seeded};
pub use failure::{Failure, Signal};
pub use history::{Handled, History};
pub use jitter::Jitter;
pub use matcher::{Matcher, Mismatch, Pattern};
pub use policy::{AttemptLimit, Parts, Policy, Rule, Unmatched};
pub use problem::{Problem, Problems};
pub use retry::{BlockingRetryable, Retryable, retry, retry_blocking};
pub use span::{Moment, Span};
pub use verdict::{Disposition, Origin, Outcome, Reason, Verdict};
