//! Slots around the changes of daylight saving time.

use super::{at, schedule, shown, slots};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use redrive_policy::Moment;

/// Zone, expression, after, the next slots in UTC.
const TABLE: &[(&str, &str, &str, &[&str])] = &[
    // Europe/Berlin: 02:00 becomes 03:00 on 2026-03-29, 03:00 becomes 02:00 on 2026-10-25.
    ("Europe/Berlin", "30 2 * * *", "2026-03-27T12:00:00Z", &["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"]),
    ("Europe/Berlin", "0 2 * * *", "2026-03-28T12:00:00Z", &["2026-03-30T00:00:00Z"]),
    ("Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z"]),
    ("Europe/Berlin", "0 * * * *", "2026-03-28T23:30:00Z", &["2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"]),
    ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
    ("Europe/Berlin", "0 2,3 * * *", "2026-10-24T12:00:00Z", &["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"]),
    (
        "Europe/Berlin",
        "30 * * * *",
        "2026-10-24T23:45:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"],
    ),
    ("Europe/Berlin", "59 59 2 * * *", "2026-10-24T12:00:00Z", &["2026-10-25T00:59:59Z", "2026-10-26T01:59:59Z"]),
    // America/New_York: 02:00 becomes 03:00 on 2026-03-08, 02:00 becomes 01:00 on 2026-11-01.
    ("America/New_York", "30 2 * * *", "2026-03-07T12:00:00Z", &["2026-03-09T06:30:00Z"]),
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]),
    ("America/New_York", "0 9 * * MON-FRI", "2026-03-06T12:00:00Z", &["2026-03-06T14:00:00Z", "2026-03-09T13:00:00Z"]),
    (
        "America/New_York",
        "*/20 * * * *",
        "2026-11-01T05:39:00Z",
        &["2026-11-01T05:40:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:20:00Z", "2026-11-01T06:40:00Z"],
    ),
    ("America/New_York", "*/20 0-6 * * *", "2026-11-01T05:39:00Z", &["2026-11-01T05:40:00Z", "2026-11-01T07:00:00Z"]),
    // Australia/Lord_Howe: 02:00 becomes 01:30 on 2026-04-05, 02:00 becomes 02:30 on 2026-10-04.
    ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00:00Z", &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"]),
    ("Australia/Lord_Howe", "15 1 * * *", "2026-04-04T00:00:00Z", &["2026-04-04T14:15:00Z"]),
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00:00Z", &["2026-10-04T15:15:00Z"]),
    ("Australia/Lord_Howe", "30 2 * * *", "2026-10-03T00:00:00Z", &["2026-10-03T15:30:00Z"]),
    // America/Santiago: midnight becomes 23:00 on 2026-04-04, midnight becomes 01:00 on 2026-09-06.
    ("America/Santiago", "0 0 * * *", "2026-09-04T12:00:00Z", &["2026-09-05T04:00:00Z", "2026-09-07T03:00:00Z"]),
    ("America/Santiago", "30 23 * * *", "2026-04-04T12:00:00Z", &["2026-04-05T02:30:00Z", "2026-04-06T03:30:00Z"]),
    ("America/Santiago", "0 0 * * *", "2026-04-04T12:00:00Z", &["2026-04-05T04:00:00Z"]),
    // Australia/Sydney: 03:00 becomes 02:00 on 2026-04-05, 02:00 becomes 03:00 on 2026-10-04.
    ("Australia/Sydney", "30 2 * * *", "2026-04-04T12:00:00Z", &["2026-04-04T15:30:00Z", "2026-04-05T16:30:00Z"]),
    ("Australia/Sydney", "30 2 * * *", "2026-10-02T17:00:00Z", &["2026-10-04T15:30:00Z"]),
    // Zones without changes.
    ("Asia/Kolkata", "0 9 * * *", "2026-03-29T00:00:00Z", &["2026-03-29T03:30:00Z", "2026-03-30T03:30:00Z"]),
    ("UTC", "30 2 * * *", "2026-03-28T12:00:00Z", &["2026-03-29T02:30:00Z", "2026-03-30T02:30:00Z"]),
];

#[test]
fn clocks_that_are_set_have_the_slots_of_the_specification() {
    for (zone, expression, after, expected) in TABLE {
        assert_eq!(slots(expression, zone, after, expected.len()), *expected, "{expression} in {zone} after {after}");
    }
}

/// The zones of the table, and one whose clocks change four times a year, by the moon.
const ZONES: [&str; 8] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Australia/Sydney",
    "Asia/Kolkata",
    "UTC",
    "Africa/Casablanca",
];

/// A time is a slot if its minute and hour fit; where the time comes twice, the first, or both for every hour. This is
/// looked up for every minute of two days around each change, and compared.
#[test]
fn every_minute_around_every_change_is_as_the_zone_says() {
    // Expression, and which minutes and hours it has.
    type Fits = fn(i8, i8) -> bool;
    let expressions: [(&str, bool, Fits); 4] = [
        ("*/5 * * * *", true, |minute, _| minute % 5 == 0),
        ("*/15 0-3,23 * * *", false, |minute, hour| minute % 15 == 0 && (hour <= 3 || hour == 23)),
        ("45 1 * * *", false, |minute, hour| (hour, minute) == (1, 45)),
        ("30 2 * * *", false, |minute, hour| (hour, minute) == (2, 30)),
    ];
    let year = at("2026-01-01T00:00:00Z").micros() / 1_000_000;
    for name in ZONES {
        let zone = TimeZone::get(name).unwrap();
        let changes = zone.following(Timestamp::from_second(year).unwrap()).take(8).map(|change| change.timestamp());
        let starts: Vec<i64> = changes.map(Timestamp::as_second).chain([year]).map(|second| second - 86_400).collect();
        for (expression, every_hour, fits) in expressions {
            let schedule = schedule(expression, name);
            for start in &starts {
                let is_slot = |second: &i64| {
                    let instant = Timestamp::from_second(*second).unwrap();
                    let local = zone.to_datetime(instant);
                    let first = zone.to_ambiguous_timestamp(local).earlier().unwrap();
                    fits(local.minute(), local.hour()) && (every_hour || first == instant)
                };
                let expected: Vec<i64> = (1..2_880).map(|minute| start + minute * 60).filter(is_slot).collect();
                let mut slot = Moment::from_micros(start * 1_000_000);
                for second in expected {
                    slot = schedule.next(slot, slot).unwrap();
                    let expected = Moment::from_micros(second * 1_000_000);
                    assert_eq!(shown(slot), shown(expected), "{expression} in {name}");
                }
            }
        }
    }
}

#[test]
fn the_last_of_many_slots_is_found() {
    let first = at("2026-01-01T00:00:00Z");
    for (expression, zone, until, expected) in [
        ("* * * * * *", "UTC", "2036-05-05T12:34:56.789Z", "2036-05-05T12:34:56Z"),
        ("0 0 1 1 *", "UTC", "2036-05-05T12:34:56Z", "2036-01-01T00:00:00Z"),
        ("0 0 1 1 *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("0 0 1 1 *", "UTC", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T23:00:00Z", "2026-03-28T01:30:00Z"),
        ("@every 7s", "UTC", "2026-01-01T00:00:20Z", "2026-01-01T00:00:14Z"),
    ] {
        let last = schedule(expression, zone).last(first, at(until), first);
        assert_eq!(shown(last), expected, "{expression} in {zone} until {until}");
    }
}
