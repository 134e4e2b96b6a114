//! Retry policies as data: five dialects, one decision function, and a retry loop you can trust.
//!
//! A [`Policy`] says which failures are worth a retry, how often, and how long to wait. It is plain
//! data: read from a document, built in code, stored with a job, compared, explained, simulated.
//! [`decide`] is the only function that acts on it, and it is pure: the same policy, history,
//! failure, time and draw give the same [`Verdict`], with its explanation.
//!
//! # Reading a policy
//!
//! Five dialects are read ([`dialect::Dialect`]), each exactly as its document says. A policy is
//! checked when it is read, never when it is used; a refusal lists every problem.
//!
//! ```
//! # #[cfg(feature = "dialects")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use redrive_policy::{AttemptLimit, dialect::Dialect};
//! use serde_json::json;
//!
//! let document = json!({ "max_attempts": 5, "non_retryable_errors": ["auth.*"] });
//! let policy = Dialect::Ojs.read(&document)?.policy;
//! assert_eq!(policy.attempts, AttemptLimit::AtMost(5));
//!
//! let broken = json!({ "max_attempts": "5", "jitter": 1, "max_interval": "5m" });
//! let problems = Dialect::Ojs.read(&broken).unwrap_err();
//! let paths: Vec<&str> = problems.0.iter().map(|problem| problem.path.as_str()).collect();
//! assert_eq!(paths, ["/max_attempts", "/max_interval", "/jitter"]);
//!
//! let written = Dialect::TaskHarbor.write(&policy);
//! assert!(!written.lost.is_empty(), "TaskHarbor has no list of error types, and the loss says so");
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "dialects"))]
//! # fn main() {}
//! ```
//!
//! Settings of Temporal, Sidekiq, Celery, BullMQ, Faktory and Oban are read by [`import`].
//!
//! # Deciding
//!
//! The history is small and serialisable: store it with the job, and go on after a restart.
//!
//! ```
//! # #[cfg(feature = "dialects")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use redrive_policy::{Draw, Failure, History, Moment, Outcome, Policy, decide, wire};
//! use std::time::Duration;
//!
//! let policy = Policy::builder()
//!     .exponential(Duration::from_secs(1), 2.0)
//!     .full_jitter()
//!     .max_attempts(3)
//!     .build()?;
//! let mut history = History::new(Moment::ORIGIN);
//! let failure = Failure::of_type("external.timeout");
//! let draw = Draw::try_from(0.5)?;
//!
//! let verdict = decide(&policy, &history, &failure, Moment::ORIGIN, draw);
//! assert_eq!(verdict.delay().map(Duration::from), Some(Duration::from_millis(500)));
//! history.record(&verdict);
//!
//! let stored = serde_json::to_string(&history)?;
//! let mut history: History = wire::from_json(&stored)?;
//! history.record(&decide(&policy, &history, &failure, Moment::ORIGIN, draw));
//!
//! let verdict = decide(&policy, &history, &failure, Moment::ORIGIN, draw);
//! assert!(matches!(verdict.outcome, Outcome::Stop { reason, .. } if reason.name() == "max_attempts"));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "dialects"))]
//! # fn main() {}
//! ```
//!
//! # Retrying a closure
//!
//! Without any server: async on tokio or another runtime, or blocking. See the module
//! [`retry`](mod@retry).
//!
//! ```
//! use redrive_policy::{BlockingRetryable, Policy};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::builder().fixed(Duration::from_millis(1)).max_attempts(4).build()?;
//! let mut runs = 0;
//! let answer = (|| {
//!     runs += 1;
//!     if runs < 3 { Err("busy") } else { Ok(42) }
//! })
//! .retry_blocking(&policy)
//! .call();
//! assert_eq!((answer, runs), (Ok(42), 3));
//! # Ok(())
//! # }
//! ```
//!
//! # Looking before production does
//!
//! The feature `lab` adds what the `redrive policy` command shows: warnings for policies that do not do what
//! they look like, schedules, replays, explanations, and the simulation of an outage.
//!
//! # Features
//!
//! - `tokio` (default): the async loop sleeps on tokio's clock.
//! - `dialects` (default): policies are read from documents and written to them. It brings `serde_json`,
//!   without any of its features that change how other code reads numbers or orders members.
//! - `lab`: warnings, schedules, replays, explanations, simulations and pictures.
//! - `tower`: a policy as a layer of tower services.
//!
//! Without any of them, policies are built in code, decided on, and serialised by serde.

mod backoff;
mod builder;
mod curve;
mod decide;
mod delegation;
#[cfg(feature = "dialects")]
pub mod dialect;
mod draw;
mod failure;
mod history;
#[cfg(feature = "dialects")]
pub mod import;
mod jitter;
#[cfg(feature = "lab")]
pub mod lab;
mod matcher;
#[cfg(feature = "dialects")]
mod normal;
#[cfg(feature = "dialects")]
pub mod notation;
mod policy;
mod problem;
mod resembling;
pub mod retry;
mod span;
mod verdict;
#[cfg(feature = "dialects")]
pub mod wire;

pub use backoff::{Backoff, Cap, CapPlace, Computed, Rounding};
pub use builder::PolicyBuilder;
pub use curve::Curve;
pub use decide::{Bounds, decide};
pub use delegation::Delegation;
pub use draw::{Ambient, Draw, Entropy, Seeded};
pub use failure::{Failure, Signal};
pub use history::{Handled, History};
pub use jitter::Jitter;
pub use matcher::{Matcher, Mismatch, Pattern};
pub use policy::{AttemptLimit, Parts, Policy, Rule, Unmatched};
pub use problem::{Problem, Problems};
pub use resembling::resembling;
pub use retry::{BlockingRetryable, Retryable, retry, retry_blocking};
pub use span::{Moment, Span};
pub use verdict::{Disposition, Origin, Outcome, Reason, Verdict};
