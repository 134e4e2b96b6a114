//! The verbs, each with its statements.

pub(super) mod attempts;
mod bounded;
pub(super) mod claim;
mod due;
pub(super) mod enqueue;
pub(super) mod inbox;
mod limited;
pub(super) mod limits;
pub(super) mod list;
pub(super) mod manage;
pub(super) mod queues;
pub(super) mod remove;
pub(super) mod sweep;
mod unique;
