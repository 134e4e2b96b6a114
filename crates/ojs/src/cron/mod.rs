//! Cron: jobs that are enqueued again and again, by a schedule. Each schedule is a run; its program is [`Cron`].

mod answer;
mod calendar;
mod definition;
mod events;
mod expression;
mod field;
mod program;
mod request;
mod schedule;
mod slots;
mod state;
mod zone;

pub use answer::CronJob;
pub use definition::{Definition, Overlap};
pub use program::{Cron, KIND, signals};
pub use request::{MANAGED_MEMBERS, cron_definition};
pub use schedule::Schedule;
pub use slots::Slots;
