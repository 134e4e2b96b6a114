#![doc = include_str!("../README.md")]

mod cel;
mod chart;
mod json;
mod machine;
mod model;
mod problem;
mod providers;
mod result;
#[cfg(feature = "engine")]
pub mod runs;
mod schema;
mod template;

pub use machine::{
    Answer, Brief, Decided, Decision, Dispatch, Effect, Message, Note, Notes, Position, Provider, Start, State,
    StateError, TRANSITIONS, Traced, Waits, What,
};
pub use model::{Counts, Definition, MAX_DEFINITION};
pub use problem::Problem;
pub use result::{Failure, Outcome};
