//! The program: each slot once, whatever happens to clocks, processes and jobs.

use super::driver::{Driver, definition};
use redrive_ojs::cron::{Overlap, signals};
use serde_json::{Value, json};

const HOURLY: &str = "0 * * * *";
const START: &str = "2026-02-13T09:30:00Z";

/// The full hours of the day on which tests begin.
fn hours(hours: impl IntoIterator<Item = u32>) -> Vec<String> {
    hours.into_iter().map(|hour| format!("2026-02-13T{hour:02}:00:00Z")).collect()
}

fn hourly(overlap: Overlap) -> Driver {
    Driver::new(HOURLY, overlap, START)
}

#[test]
fn each_slot_is_enqueued_once() {
    let mut driver = hourly(Overlap::Allow);
    driver.wait_until("2026-02-13T14:59:59Z");
    assert_eq!(driver.enqueued, hours(10..=14));
    assert_eq!(driver.next(), "2026-02-13T15:00:00.000000Z");
    assert_eq!(driver.shown()["run_count"], 5);
}

#[test]
fn of_slots_that_were_missed_the_last_is_enqueued() {
    let mut driver = hourly(Overlap::Allow);
    driver.sleep_until("2026-02-13T14:20:00Z");
    driver.wait_until("2026-02-13T15:10:00Z");
    assert_eq!(driver.enqueued, hours([14, 15]));
}

#[test]
fn a_clock_that_is_set_forward_is_followed() {
    let mut driver = hourly(Overlap::Allow);
    driver.wait_until("2026-02-13T10:10:00Z");
    driver.step_clock("2026-02-13T13:30:00Z");
    assert_eq!(driver.enqueued, hours([10, 13]), "slots that were passed over count as missed");
    driver.wait_until("2026-02-13T14:10:00Z");
    assert_eq!(driver.enqueued, hours([10, 13, 14]));
    // Not far enough for a slot: the timer is set anew.
    driver.step_clock("2026-02-13T14:50:00Z");
    driver.wait_until("2026-02-13T15:00:00Z");
    assert_eq!(driver.enqueued, hours([10, 13, 14, 15]));
}

#[test]
fn a_clock_that_is_set_back_repeats_no_slot() {
    let mut driver = hourly(Overlap::Allow);
    driver.wait_until("2026-02-13T12:10:00Z");
    driver.step_clock("2026-02-13T10:45:00Z");
    assert_eq!(driver.next(), "2026-02-13T13:00:00.000000Z");
    driver.wait_until("2026-02-13T13:30:00Z");
    assert_eq!(driver.enqueued, hours(10..=13));
}

#[test]
fn a_timer_that_comes_early_waits() {
    let mut driver = hourly(Overlap::Allow);
    driver.wait_until("2026-02-13T12:10:00Z");
    // Nobody has noticed yet that the clock was set back: the timer comes two hours too soon, and is set anew.
    driver.set_clock("2026-02-13T10:10:00Z");
    driver.wait_until("2026-02-13T12:59:59Z");
    assert_eq!(driver.enqueued, hours(10..=12));
    driver.wait_until("2026-02-13T13:00:00Z");
    assert_eq!(driver.enqueued, hours(10..=13));
}

#[test]
fn a_clock_that_was_wrong_by_years_does_not_stop_a_schedule() {
    for expression in [HOURLY, "@every 1h"] {
        let mut driver = Driver::new(expression, Overlap::Allow, START);
        driver.step_clock("2036-02-13T10:10:00Z");
        assert_eq!(driver.enqueued.len(), 1);
        driver.step_clock("2026-02-13T10:10:00Z");
        driver.wait_until("2026-02-13T12:20:00Z");
        assert_eq!(driver.enqueued.len(), 3, "{expression}: {:?}", driver.enqueued);
    }
    let mut driver = Driver::new("@every 1h", Overlap::Allow, "2036-02-13T10:10:00Z");
    driver.step_clock("2026-02-13T10:10:00Z");
    driver.wait_until("2026-02-13T12:10:00Z");
    assert_eq!(driver.enqueued, ["2026-02-13T11:10:00Z", "2026-02-13T12:10:00Z"]);
}

#[test]
fn the_end_of_a_job_is_noticed_whatever_the_time_of_the_registration() {
    let mut driver = Driver::new("@every 1h", Overlap::Skip, "2026-02-13T09:30:07.123456Z");
    driver.wait_until("2026-02-13T11:00:00Z");
    let first = driver.enqueued.clone();
    assert_eq!(first, ["2026-02-13T10:30:07.123000Z"]);
    driver.end(&first[0]);
    driver.wait_until("2026-02-13T12:00:00Z");
    assert_eq!((driver.enqueued.len(), &driver.shown()["skipped_count"]), (2, &json!(0)));
}

#[test]
fn intervals_are_counted_from_the_registration() {
    let mut driver = Driver::new("@every 1h30m", Overlap::Allow, "2026-02-13T09:30:07Z");
    driver.wait_until("2026-02-13T12:31:00Z");
    assert_eq!(driver.enqueued, ["2026-02-13T11:00:07Z", "2026-02-13T12:30:07Z"]);
    driver.sleep_until("2026-02-13T20:00:00Z");
    driver.wait_until("2026-02-13T20:00:00Z");
    assert_eq!(driver.enqueued.last().unwrap(), "2026-02-13T18:30:07Z", "the last that was missed");
    assert_eq!(driver.next(), "2026-02-13T20:00:07.000000Z");
}

#[test]
fn skip_waits_for_the_end_of_all_jobs() {
    let mut driver = hourly(Overlap::Skip);
    driver.wait_until("2026-02-13T12:30:00Z");
    assert_eq!((driver.enqueued.clone(), driver.shown()["skipped_count"].clone()), (hours([10]), json!(2)));
    driver.end("2026-02-13T10:00:00Z");
    driver.wait_until("2026-02-13T13:30:00Z");
    driver.end("2026-02-13T13:00:00Z");
    // An old job that was redriven is a job of the schedule as well.
    driver.redrive("2026-02-13T10:00:00Z");
    driver.wait_until("2026-02-13T14:30:00Z");
    driver.end("2026-02-13T10:00:00Z");
    driver.wait_until("2026-02-13T15:30:00Z");
    assert_eq!(driver.enqueued, hours([10, 13, 15]));
}

#[test]
fn cancel_previous_cancels_once() {
    let mut driver = hourly(Overlap::CancelPrevious);
    driver.wait_until("2026-02-13T11:30:00Z");
    driver.end("2026-02-13T10:00:00Z");
    driver.wait_until("2026-02-13T12:30:00Z");
    driver.end("2026-02-13T11:00:00Z");
    driver.end("2026-02-13T12:00:00Z");
    driver.wait_until("2026-02-13T13:30:00Z");
    assert_eq!((driver.enqueued, driver.cancelled), (hours(10..=13), hours([10, 11])));
}

#[test]
fn enqueue_keeps_the_order_and_a_limit() {
    let mut driver = hourly(Overlap::Enqueue);
    driver.wait_until("2026-02-13T13:30:00Z");
    assert_eq!(driver.enqueued, hours([10]));
    for slot in hours(10..=12) {
        driver.end(&slot);
    }
    assert_eq!(driver.enqueued, hours(10..=13));
    driver.wait_until("2026-02-19T09:30:00Z");
    let shown = driver.shown();
    assert_eq!((&shown["waiting_count"], &shown["skipped_count"]), (&json!(100), &json!(40)));
}

#[test]
fn a_schedule_that_is_changed_drops_what_waits_and_repeats_no_slot() {
    let mut driver = hourly(Overlap::Enqueue);
    driver.wait_until("2026-02-13T12:00:00Z");
    let new = serde_json::to_vec(&definition("0,30 * * * *", Overlap::Allow)).unwrap();
    driver.signal(signals::REPLACE, &new);
    assert_eq!(driver.next(), "2026-02-13T12:30:00.000000Z");
    let shown = driver.shown();
    assert_eq!((&shown["waiting_count"], &shown["skipped_count"]), (&json!(0), &json!(2)));
    driver.end("2026-02-13T10:00:00Z");
    driver.wait_until("2026-02-13T12:30:00Z");
    assert_eq!(driver.enqueued, ["2026-02-13T10:00:00Z", "2026-02-13T12:30:00Z"]);
}

#[test]
fn what_is_disabled_is_not_due_and_catches_nothing_up() {
    let mut driver = hourly(Overlap::Allow);
    driver.signal(signals::DISABLE, b"");
    assert_eq!(driver.next(), Value::Null);
    driver.wait_until("2026-02-13T12:30:00Z");
    driver.step_clock("2026-02-13T12:40:00Z");
    driver.signal(signals::ENABLE, b"");
    driver.wait_until("2026-02-13T13:30:00Z");
    assert_eq!(driver.enqueued, hours([13]));
}

#[test]
fn what_is_deleted_ends_and_stays_so() {
    let mut driver = hourly(Overlap::Enqueue);
    driver.wait_until("2026-02-13T11:30:00Z");
    driver.signal(signals::DELETE, b"");
    assert!(driver.ended);
    driver.end("2026-02-13T10:00:00Z");
    driver.signal(signals::ENABLE, b"");
    driver.step_clock("2026-02-14T11:30:00Z");
    driver.wait_until("2026-02-15T11:30:00Z");
    assert_eq!(driver.enqueued, hours([10]));
}

#[test]
fn jobs_that_are_refused_do_not_stop_a_schedule() {
    for overlap in Overlap::ALL {
        let mut driver = hourly(overlap);
        driver.refuses = true;
        driver.wait_until("2026-02-13T11:30:00Z");
        let shown = driver.shown();
        assert_eq!((&shown["run_count"], &shown["last_error"]["message"]), (&json!(0), &json!("a test")));
        driver.refuses = false;
        driver.wait_until("2026-02-13T12:30:00Z");
        assert_eq!(driver.enqueued, hours([12]));
    }
}

#[test]
fn a_signal_of_a_later_version_changes_nothing() {
    let mut driver = hourly(Overlap::Skip);
    let before = driver.shown();
    driver.signal("something_else", b"{}");
    assert_eq!(driver.shown(), before);
}
