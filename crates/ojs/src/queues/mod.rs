//! What operators set for queues, types and the keys of limits.

mod config;
mod standing;

pub use config::{LimitConfig, QueueConfig};
pub use standing::{group_json, standing_json};
