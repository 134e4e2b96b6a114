//! Programs, interrupted at every write.
#![allow(clippy::expect_used, reason = "tests")]

mod cron;
mod webhooks;
mod workflows;
