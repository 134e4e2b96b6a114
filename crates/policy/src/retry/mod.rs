//! Run a closure under a policy, async or blocking.
//!
//! Nothing is decided here: every error goes through [`decide`](crate::decide), so that a closure
//! is retried exactly as a job would be, and as the lab foretells.
//!
//! # An async function
//!
//! Any function or closure that returns a future of a `Result` has the method
//! [`retry`](Retryable::retry). What comes back can be set up further, and is awaited:
//!
//! ```
//! use redrive_policy::{Policy, Retryable};
//! use std::time::Duration;
//!
//! #[derive(Debug)]
//! enum FetchError {
//!     Refused,
//!     Busy { retry_after: Duration },
//!     NotFound,
//! }
//!
//! async fn fetch() -> Result<String, FetchError> {
//!     // In a real program, an HTTP call.
//!     # use std::sync::atomic::{AtomicU32, Ordering};
//!     # static CALLS: AtomicU32 = AtomicU32::new(0);
//!     # match CALLS.fetch_add(1, Ordering::Relaxed) {
//!     #     0 => return Err(FetchError::Refused),
//!     #     1 => return Err(FetchError::Busy { retry_after: Duration::from_secs(7) }),
//!     #     _ => {}
//!     # }
//!     Ok("the page".to_owned())
//! }
//!
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::builder()
//!     .exponential(Duration::from_millis(200), 2.0)
//!     .max_delay(Duration::from_secs(30))
//!     .max_attempts(5)
//!     .max_elapsed(Duration::from_secs(60))
//!     .build()?;
//!
//! let page = fetch
//!     .retry(&policy)
//!     .when(|error| !matches!(error, FetchError::NotFound))
//!     .retry_after(|error| match error {
//!         FetchError::Busy { retry_after } => Some(*retry_after),
//!         _ => None,
//!     })
//!     .before_retry(|error, verdict| {
//!         let wait = verdict.delay().unwrap_or_default();
//!         eprintln!("attempt {} failed ({error:?}), next in {wait}", verdict.attempt);
//!     })
//!     .await;
//! assert_eq!(page.ok().as_deref(), Some("the page"));
//! # Ok(())
//! # }
//! ```
//!
//! # A policy that is data
//!
//! The policy may as well come from a file, a database or a colleague. Where its rules match on
//! error types or codes, [`classify`](Retry::classify) says what an error is:
//!
//! ```
//! # #[cfg(feature = "dialects")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use redrive_policy::{Failure, dialect::Dialect, retry_blocking};
//! use serde_json::json;
//!
//! let document = json!({
//!     "max_attempts": 4,
//!     "initial_interval": "PT0.001S",
//!     "non_retryable_errors": ["auth.*"],
//! });
//! let policy = Dialect::Ojs.read(&document)?.policy;
//!
//! let mut answers = ["external.timeout", "auth.expired", "never asked"].into_iter();
//! let result: Result<(), &str> = retry_blocking(&policy, || Err(answers.next().unwrap_or_default()))
//!     .classify(|error| Failure::of_type(error))
//!     # .sleeper(|_| ())
//!     .on_stop(|error, verdict| assert_eq!((*error, verdict.attempt), ("auth.expired", 2)))
//!     .call();
//! assert_eq!(result, Err("auth.expired"));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "dialects"))]
//! # fn main() {}
//! ```
//!
//! # What it costs
//!
//! A call that succeeds the first time reads no clock, unless the policy limits the elapsed time; it draws
//! nothing and allocates nothing. Under a policy of one rule, the loop allocates nothing for a retry
//! either.
//!
//! # Tasks of their own
//!
//! The policy is borrowed. For a task that outlives its maker, move both into it, or keep the
//! policy in a `static`:
//!
//! ```
//! use redrive_policy::{Policy, Retryable};
//! # async fn ping() -> Result<(), std::io::Error> { Ok(()) }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::builder().max_attempts(3).build()?;
//! let task = tokio::spawn(async move { ping.retry(&policy).await });
//! # task.await??;
//! # Ok(())
//! # }
//! ```

mod blocking;
mod classify;
mod delays;
mod future;
mod pause;
mod plan;
mod sleeper;
#[cfg(feature = "tower")]
mod tower;
mod watch;

pub use blocking::{BlockingRetryable, RetryBlocking, retry_blocking};
pub use classify::{Classify, Ordinary, ReportWith, RetryAfter, When};
pub use delays::Delays;
pub use future::{Retry, Retryable, retry};
pub use pause::Pause;
#[cfg(not(feature = "tokio"))]
pub use sleeper::NoSleeper;
#[cfg(feature = "tokio")]
pub use sleeper::TokioSleeper;
pub use sleeper::{DefaultSleeper, SleepOf, Sleeper};
#[cfg(feature = "tower")]
pub use tower::{ByClone, CloneRequest, TowerPolicy};
pub use watch::{BeforeRetry, OnStop, Unwatched, Watch};

/// One after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Both<A, B>(A, B);
