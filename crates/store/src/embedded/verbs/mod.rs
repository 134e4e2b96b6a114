//! The verbs on the state. The rules for a single job are in `crate::rules`; these files decide to which jobs they
//! apply, and in which order.

mod enqueue;
mod limited;
pub(super) mod list;
mod manage;
mod restore;
mod runs;
mod sweep;
mod work;
