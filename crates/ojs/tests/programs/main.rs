//! Programs, interrupted at every write, and at their bounds.
#![allow(clippy::expect_used, reason = "tests")]

mod cron;
mod webhook_bounds;
mod webhooks;
mod workflows;
