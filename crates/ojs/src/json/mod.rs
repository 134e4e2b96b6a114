//! Reading and writing JSON text without building trees.

mod check;
mod members;
mod unknown;
mod write;

pub use check::check_nested;
pub use members::{Members, items, plain, text};
pub use unknown::unknown;
pub use write::{member, push_i64, push_key, push_str, push_time, push_u64};
