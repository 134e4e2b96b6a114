//! Workflows of Open Job Spec, as a program of the run mechanism: chains, groups, batches with callbacks, graphs by
//! `depends_on`, and each of them inside of another.
//!
//! A workflow is a tree of nodes. A leaf is a job; the others say in which order their parts run and when they are
//! done. Everything that a workflow does is the answer to the end of a job.

mod document;
mod events;
mod given;
mod links;
mod machine;
mod program;
mod request;
mod state;
mod view;

pub use program::{CANCEL, WORKFLOW, Workflows};
pub use request::{WorkflowLimits, WorkflowRequest};
pub use state::WorkflowState;
pub use view::push_workflow;
