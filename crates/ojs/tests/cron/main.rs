//! Schedules: expressions, their slots in all kinds of time zones, and the program.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod driver;
mod expressions;
mod program;
mod slots;

use redrive_ojs::cron::Schedule;
use redrive_ojs::time::{parse_rfc3339, rfc3339};
use redrive_policy::Moment;

fn at(text: &str) -> Moment {
    parse_rfc3339(text).unwrap_or_else(|| panic!("{text} is a timestamp"))
}

/// A moment as the tables have it.
fn shown(at: Moment) -> String {
    rfc3339(at).replace(".000000", "")
}

fn schedule(expression: &str, zone: &str) -> Schedule {
    Schedule::read(expression, zone).unwrap_or_else(|problems| panic!("{expression} in {zone}: {problems:?}"))
}

/// The first slots after a moment.
fn slots(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let (schedule, start) = (schedule(expression, zone), at(after));
    let next = |slot: &Moment| schedule.next(*slot, start);
    std::iter::successors(next(&start), next).take(count).map(shown).collect()
}
