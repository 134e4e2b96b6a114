//! What the verbs do with the ledger. The rules of single jobs are those of the reference model; what
//! is found here is which jobs they meet, in which order.

mod enqueue;
pub(super) mod list;
mod manage;
mod restore;
mod sweep;
mod work;
