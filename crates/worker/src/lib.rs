//! Durable jobs for Rust programs: a client, a worker, and a queue without a server.
//!
//! A job is a type, such as `email.send`, and arguments. A client enqueues it, and from then on it is
//! safe: it runs, and if it fails it runs again, as its retry policy says, until it is done or needs
//! attention. This crate is both ends of that: [`Client`] enqueues, [`Worker`] runs. In between is a
//! Redrive server, any other server of Open Job Spec, or just a folder of your program.
//!
//! # A first worker
//!
//! ```
//! use redrive_worker::{Client, Failure, NewJob, Worker};
//! use serde::{Deserialize, Serialize};
//! # use std::time::Duration;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Welcome {
//!     user: String,
//! }
//!
//! async fn welcome(job: Welcome) -> Result<String, Failure> {
//!     Ok(format!("welcome, {}", job.user))
//! }
//!
//! # #[cfg(not(feature = "embedded"))]
//! # fn main() {}
//! # #[cfg(feature = "embedded")]
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("redrive-doc-{}", std::process::id()));
//! // With the feature `embedded`; for a server, Client::http("http://127.0.0.1:8080").
//! let client = Client::open(&folder).await?;
//! let worker = Worker::builder(&client).handle("user.welcome", welcome).build()?;
//!
//! let job = client.enqueue(NewJob::new("user.welcome", Welcome { user: "Ada".into() })?).await?;
//! let (producer, id) = (client.clone(), job.id().to_owned());
//! worker
//!     .run_until(async move {
//!         // In a real program, until Ctrl-C.
//!         let said = producer.result::<String>(&id, Duration::from_secs(10)).await;
//!         assert_eq!(said.unwrap(), "welcome, Ada");
//!     })
//!     .await?;
//! client.close().await?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Handlers
//!
//! A handler is an async function of the arguments, or of the arguments and the [`Context`]. Arguments
//! are anything that serde can read: a struct, a tuple for several, `()` for none. What it returns is
//! stored as the result of the job. [`Builder::handle_all`] takes jobs of every type, as they are.
//!
//! Handlers share a state: [`Worker::with_state`], and [`Context::state`] in the handler.
//! [`Middleware`] runs around each handler.
//!
//! # How a run ends
//!
//! | the handler | the job |
//! | --- | --- |
//! | returns `Ok` | is completed, with the result |
//! | returns an error, through `?` or a [`Failure`] of its own | is retried by its policy, or ends as that says |
//! | returns [`Failure::retry_after`] | the same, with this delay instead of the policy's |
//! | returns [`Failure::unrecoverable`] | goes to the dead letters at once |
//! | returns [`Failure::discard`] | is discarded immediately |
//! | returns [`Outcome::snooze`] | runs again later, as if nothing had happened |
//! | returns [`Outcome::decline`], or there is none for the type | is released for other workers, and spends no attempt |
//! | panics | has failed, with the type `panic` and the message |
//! | takes longer than it may | has failed, with the type `timeout` |
//! | loses its lease | runs elsewhere, or again here; the outcome of this run changes nothing |
//!
//! [`ResultExt`] does the same for any error: `address.parse::<Address>().unrecoverable()?`.
//!
//! # Retry policies
//!
//! A job brings its policy ([`NewJob::retry`]), or the server has one for it. [`Retry`] takes a policy
//! of [`redrive_policy`] or one that is written in any of its five dialects. With
//! [`Retry::by_worker`] a job brings only its limit, and the delays are those of the worker
//! ([`Builder::retry`]), as TaskHarbor has it.
//!
//! # Workflows and schedules
//!
//! Jobs with an order are a [`Workflow`]: a chain, a group, a batch with callbacks or a graph, and each of the first
//! three inside of another. A job that is enqueued again and again belongs to a [`Schedule`]. Both are as durable as
//! jobs, and work without a server too.
//!
//! ```
//! use redrive_worker::{Client, Context, Failure, NewJob, Schedule, Worker, Workflow};
//! # use std::time::Duration;
//!
//! async fn extract(source: String) -> Result<u32, Failure> {
//!     Ok(source.len() as u32)
//! }
//!
//! // The results of the steps before.
//! async fn load(_: (), context: Context) -> Result<u32, Failure> {
//!     let before: Vec<u32> = context.job().member("parent_results").unwrap_or_default();
//!     Ok(before.iter().sum())
//! }
//!
//! # #[cfg(not(feature = "embedded"))]
//! # fn main() {}
//! # #[cfg(feature = "embedded")]
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("redrive-doc-runs-{}", std::process::id()));
//! let client = Client::open(&folder).await?;
//! let nightly = Schedule::new("nightly", "0 3 * * *", NewJob::new("data.extract", "orders")?);
//! client.schedules().replace(nightly.timezone("Europe/Berlin")).await?;
//!
//! let import = Workflow::chain()
//!     .then(NewJob::new("data.extract", "orders")?)
//!     .then(NewJob::new("data.load", ())?)
//!     .name("import");
//! let import = client.workflows().start(import).await?;
//!
//! let worker = Worker::builder(&client).handle("data.extract", extract).handle("data.load", load).build()?;
//! let (producer, id) = (client.clone(), import.id().to_owned());
//! worker
//!     .run_until(async move {
//!         let ended = producer.workflows().wait(&id, Duration::from_secs(10)).await.unwrap();
//!         assert_eq!(ended.state(), "completed");
//!         assert_eq!(ended.steps().last().unwrap().result::<u32>().unwrap(), 6);
//!     })
//!     .await?;
//! client.close().await?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Events, webhooks and workers
//!
//! [`Client::events`] lists what happened lately and follows what happens: a stream resumes after a lost connection,
//! and says where events are missing. [`Client::webhooks`] has a server send events to endpoints, signed and retried.
//! [`Client::workers`] tells who is alive and what they run.
//!
//! # Leases and cancellation
//!
//! A worker holds each job under a lease, and extends it from a task of its own, whatever the
//! handler does. If the lease is lost all the same, because the server could not be reached or the
//! job was cancelled, the handler is notified ([`Context::cancellation`]), and dropped at an await point a
//! second later. The same happens when a run takes too long, and, when [`Worker::run_until`] stops, to
//! handlers that are not done by the deadline; those jobs are released and spend no attempt.
//!
//! A handler that blocks its thread cannot be dropped. Work that blocks belongs on
//! [`tokio::task::spawn_blocking`], and should check [`Context::cancelled`] from time to time.
//!
//! # When the server is unreachable
//!
//! The worker tries again, with delays that grow up to five seconds, and reports it as [`Event::Unreachable`]. Reports
//! that could not be delivered are sent again. A report is tied to its lease: sent twice, it counts
//! once; sent too late, it does not count.
//!
//! # Tests
//!
//! With the feature `embedded`, the module `testing` runs jobs through your handlers without waiting:
//! two hours of back-off take microseconds.
//!
//! # Features
//!
//! - `http` (default): servers of Open Job Spec over HTTP. What a Redrive server does beyond the
//!   specification (long polling, lists of reports, lease tokens) is used where its manifest names it.
//! - `tls`: `https://` for the above, with rustls and ring; `RootCertificates` names authorities beside the system's.
//! - `embedded`: the engine in this process, and the test harness.

#[cfg(not(any(feature = "http", feature = "embedded")))]
compile_error!("redrive-worker needs the feature `http`, `embedded`, or both");

mod args;
mod cancel;
mod client;
mod context;
mod dead_letters;
mod delay;
mod error;
mod event_stream;
mod events;
mod failure;
mod gather;
mod handler;
#[cfg(feature = "http")]
pub mod http;
mod info;
mod job;
mod middleware;
mod new_job;
mod outcome;
mod rate_limit;
mod retry;
#[cfg(feature = "tls")]
mod roots;
mod run;
mod schedule;
mod schedules;
mod server_events;
#[cfg(feature = "embedded")]
pub mod testing;
mod transport;
mod unique;
mod webhook;
mod webhooks;
mod worker;
mod workers;
mod workflow;
mod workflows;

/// The programs of the guides compile.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../docs/guides/workflows.md")]
    mod workflows {}
    #[doc = include_str!("../../../docs/guides/schedules.md")]
    mod schedules {}
    #[doc = include_str!("../../../docs/guides/limits.md")]
    mod limits {}
    #[doc = include_str!("../../../docs/guides/unique-jobs.md")]
    mod unique_jobs {}
    #[doc = include_str!("../../../docs/guides/events.md")]
    mod events {}
    #[doc = include_str!("../../../docs/guides/webhooks.md")]
    mod webhooks {}
}

pub use cancel::Cancelled;
pub use client::Client;
pub use context::Context;
pub use dead_letters::DeadLetters;
pub use error::{ClientError, QueueFull, Refused};
pub use event_stream::{EventGap, EventInfo, EventStream, Followed};
pub use events::Event;
pub use failure::{Failure, ResultExt};
pub use handler::{Handler, Running};
pub use info::JobInfo;
pub use job::Job;
pub use middleware::{Middleware, Next};
pub use new_job::NewJob;
pub use outcome::{IntoOutcome, Outcome};
pub use rate_limit::RateLimit;
pub use retry::Retry;
#[cfg(feature = "tls")]
pub use roots::RootCertificates;
pub use schedule::{Overlap, Schedule};
pub use schedules::{ScheduleInfo, Schedules};
pub use server_events::Events;
pub use unique::{OnConflict, Unique};
pub use webhook::{DeliveryInfo, WebhookInfo, WebhookSettings, WebhookTest};
pub use webhooks::Webhooks;
pub use worker::{Builder, Summary, Worker};
pub use workers::{WorkerInfo, Workers};
pub use workflow::{Batch, Chain, Graph, Group, Step, Workflow, WorkflowKind};
pub use workflows::{StepInfo, WorkflowInfo, Workflows};
