#![doc = include_str!("../README.md")]

mod cel;
mod chart;
mod json;
mod machine;
mod model;
mod problem;
mod result;
mod schema;
mod template;

pub use machine::{Effect, Message, Start, State, StateError, TRANSITIONS};
pub use model::{Counts, Definition, MAX_DEFINITION};
pub use problem::Problem;
pub use result::{Failure, Outcome};
