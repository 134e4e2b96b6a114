//! Runs of graphs, as a program of the run mechanism.
//!
//! A run has a row for each state: which node it is, which row it comes after, and how far it is. A row whose node has
//! something to do has a job. Everything that a run does is the answer to the end of a job.

mod document;
mod machine;
mod program;
mod resolve;
mod state;
mod unite;

pub use document::{Leases, STATE};
pub(crate) use program::{Executed, message};
pub use program::{Manual, RETRY, RUN, Runs};
pub use state::{Row, RunState, Status};
