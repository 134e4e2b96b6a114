//! What happens next: the commands of Redrive on a store, with an injected clock and injected
//! randomness. It knows no HTTP and no SQL.

mod admission;
mod backend;
mod claim;
mod decide;
mod deliver;
mod discards;
mod drain;
mod ends;
mod engine;
mod error;
mod events;
mod history;
mod layers;
mod limits;
mod maintenance;
mod notifications;
mod observer;
mod other_events;
mod policies;
mod progress;
mod query;
mod randomness;
mod rejections;
mod run;
mod settle;
mod submit;
mod sweep;
pub mod sweeper;
#[cfg(feature = "testing")]
pub mod testing;
mod throttle;
mod waiting;
mod wall;
mod windows;
mod workers;

pub use backend::Backend;
pub use claim::ClaimRequest;
pub use decide::{FailureReport, KeyHold};
pub use discards::Discarded;
pub use drain::SubmissionDecoder;
pub use ends::AwaitedEnd;
pub use engine::{Engine, Settings};
pub use error::EngineError;
pub use events::{EVENTS_STORED, Event, RecentEvents, Throughput};
pub use history::{Counted, HistoryOf, Period};
pub use layers::{Effective, Layer, Layers, OperatorCap, PolicyDocument};
pub use maintenance::Maintenance;
pub use observer::Observer;
pub use policies::PolicyText;
pub use progress::{Progress, ProgressReport};
pub use randomness::{Randomness, SystemRandomness};
pub use redrive_store::clock::{Clock, ManualClock, Step, SystemClock, Wall};
pub use run::{
    AdvanceNotice, CLOCK_STEPPED, Child, Context, Effect, Input, Program, ProgramStep, RunLimits, RunRequest,
    advance_runs,
};
pub use settle::Ending;
pub use submit::{JobPolicy, Submission};
pub use sweep::Swept;
pub use workers::{HeldRuns, STALE_AFTER, Worker, WorkerRefusal, WorkerReport, WorkerState};
