//! Reading requests and writing answers without building trees.

mod check;
mod members;
mod unknown;
mod write;

pub(crate) use check::check_nested;
pub(crate) use members::{Members, items, plain, text};
pub(crate) use unknown::unknown;
pub(crate) use write::{member, push_i64, push_key, push_str, push_time, push_u64};
