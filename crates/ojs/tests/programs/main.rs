//! Programs, interrupted at every write.

mod cron;
mod workflows;
