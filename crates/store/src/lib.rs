//! Jobs, their lifecycle, and the stores that hold them.

pub mod clock;
mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
mod depth;
pub mod embedded;
mod enqueued;
mod error;
mod event;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod held;
mod id;
mod inbox;
mod job;
mod lifecycle;
mod limit;
mod listing;
mod memory;
mod observer;
#[cfg(feature = "postgres")]
pub mod postgres;
mod queue;
mod rules;
mod run;
mod standstill;
mod step;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transfer;
mod transition;
mod unique;

pub use depth::QueueFull;
pub use embedded::Embedded;
pub use enqueued::Enqueued;
pub use error::{EnqueueRefusal, Refusal, StoreError};
pub use event::{DELIVERY_EVENT_TYPES, EventBody, JOB_EVENT_TYPES, JobEvent, OtherEvent, RESERVED_QUEUES};
pub use held::Held;
pub use id::{JobId, LeaseToken};
pub use inbox::{Decoder, Drained, InboxEntry};
pub use job::{
    Blob, FailedAttempt, Job, KEPT_FAILURES, KEPT_REVISIONS, Lease, NewJob, Redrive, Revision, Spec, Start, Times,
};
pub use lifecycle::{EventKind, State};
pub use limit::{Bounds, Group, Limits, OnLimit, OwnLimit, Rate, Setting, Standing};
pub use listing::{Entry, Filter, Listed, Page};
pub use memory::Memory;
pub use observer::WriteObserver;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
pub use queue::{Missing, Queue, QueueLoad, QueueRefusal};
pub use run::{
    Advanced, ChildEnd, Interest, Message, MessageBody, NewRun, Parent, PendingRun, PendingRuns, Run, RunEnd,
    RunFilter, RunId, RunKeys, RunRefusal, RunStep, Signal, StartRefusal, Stepped,
};
pub use standstill::Standstill;
pub use step::end_step;
pub use store::{
    AttemptOutcome, Claim, Claimed, Decider, Decision, Full, LeaseRef, Overdue, Retention, Settlement, Store,
    StoreFuture, Token,
};
pub use transition::{JobEnd, Settled, Transition};
pub use unique::{Duplicate, MOST_REPLACED, OnConflict, States, Unique, UniqueKey};
