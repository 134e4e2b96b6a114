//! Durable jobs for Rust programs: a client, a worker, and a queue without a server.

mod args;
mod away;
mod cancel;
mod client;
mod context;
mod error;
mod events;
mod failure;
mod handler;
mod job;
mod middleware;
mod new_job;
mod outcome;
mod retry;
mod run;
mod transport;
mod worker;

pub use cancel::Cancelled;
pub use client::{Client, JobInfo};
pub use context::Context;
pub use error::{ClientError, Refused};
pub use events::Event;
pub use failure::{Failure, ResultExt};
pub use handler::{Handler, Running};
pub use job::Job;
pub use middleware::{Middleware, Next};
pub use new_job::NewJob;
pub use outcome::{IntoOutcome, Outcome};
pub use retry::Retry;
pub use worker::{Builder, Summary, Worker};
