//! The lab: looking at a policy before production does.

pub mod explain;
pub mod lint;
pub mod picture;
pub mod replay;
pub mod schedule;
pub mod simulate;
