//! Durable jobs for Rust programs: a client, a worker, and a queue without a server.

mod args;
mod away;
mod cancel;
mod client;
mod context;
mod dead_letters;
mod error;
mod events;
mod failure;
mod handler;
mod info;
mod job;
mod middleware;
mod new_job;
mod outcome;
mod retry;
mod run;
#[cfg(feature = "embedded")]
pub mod testing;
mod transport;
mod worker;

pub use cancel::Cancelled;
pub use client::Client;
pub use context::Context;
pub use dead_letters::DeadLetters;
pub use error::{ClientError, Refused};
pub use events::Event;
pub use failure::{Failure, ResultExt};
pub use handler::{Handler, Running};
pub use info::JobInfo;
pub use job::Job;
pub use middleware::{Middleware, Next};
pub use new_job::NewJob;
pub use outcome::{IntoOutcome, Outcome};
pub use retry::Retry;
pub use worker::{Builder, Summary, Worker};
