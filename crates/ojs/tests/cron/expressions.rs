//! Which expressions there are, and what is said about those that are not valid.

use super::{schedule, slots};
use redrive_ojs::cron::Schedule;

/// Expression, after, the next slots; all in UTC. 2026-01-01 is a Thursday.
const SLOTS: &[(&str, &str, &[&str])] = &[
    ("* * * * *", "2026-01-01T00:00:30Z", &["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]),
    ("* * * * *", "2026-01-01T00:01:00Z", &["2026-01-01T00:02:00Z"]),
    ("*/15 * * * * *", "2026-01-01T00:00:40Z", &["2026-01-01T00:00:45Z", "2026-01-01T00:01:00Z"]),
    ("5,10-12 * * * *", "2026-01-01T00:06:00Z", &["2026-01-01T00:10:00Z", "2026-01-01T00:11:00Z"]),
    (
        "10-30/10 3 * * *",
        "2026-01-01T03:10:00Z",
        &["2026-01-01T03:20:00Z", "2026-01-01T03:30:00Z", "2026-01-02T03:10:00Z"],
    ),
    (
        "40/10 3 * * *",
        "2026-01-01T00:00:00Z",
        &["2026-01-01T03:40:00Z", "2026-01-01T03:50:00Z", "2026-01-02T03:40:00Z"],
    ),
    ("59 23 31 12 *", "2026-12-31T23:58:59Z", &["2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"]),
    ("0 9 * * MON-FRI", "2026-01-02T09:00:00Z", &["2026-01-05T09:00:00Z"]),
    ("0 9 * * mon,Sat", "2026-01-01T00:00:00Z", &["2026-01-03T09:00:00Z", "2026-01-05T09:00:00Z"]),
    ("0 0 * * 0", "2026-01-01T00:00:00Z", &["2026-01-04T00:00:00Z"]),
    ("0 0 * * 7", "2026-01-01T00:00:00Z", &["2026-01-04T00:00:00Z"]),
    (
        "0 0 * * SAT-SUN",
        "2026-01-01T00:00:00Z",
        &["2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z", "2026-01-10T00:00:00Z"],
    ),
    ("0 0 * * 6-7", "2026-01-01T00:00:00Z", &["2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z", "2026-01-10T00:00:00Z"]),
    ("0 0 1 feb,Apr *", "2026-01-01T00:00:00Z", &["2026-02-01T00:00:00Z", "2026-04-01T00:00:00Z"]),
    ("0 0 31 * *", "2026-01-31T00:00:00Z", &["2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"]),
    ("0 0 29 2 *", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
    ("0 0 29 2 *", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]),
    // Either field is enough where both are given; with a star in one of them, both have to fit.
    ("0 0 13 * FRI", "2026-01-01T00:00:00Z", &["2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"]),
    ("0 0 */10 * FRI", "2026-01-01T00:00:00Z", &["2026-05-01T00:00:00Z"]),
    // The last day, the nearest weekday, the nth day.
    ("0 23 L * *", "2026-01-31T23:00:00Z", &["2026-02-28T23:00:00Z", "2026-03-31T23:00:00Z"]),
    ("0 0 l 2 *", "2028-01-01T00:00:00Z", &["2028-02-29T00:00:00Z"]),
    ("0 0 15W * *", "2026-02-01T00:00:00Z", &["2026-02-16T00:00:00Z", "2026-03-16T00:00:00Z", "2026-04-15T00:00:00Z"]),
    ("0 0 15w 8 *", "2026-01-01T00:00:00Z", &["2026-08-14T00:00:00Z"]),
    ("0 0 1W 8 *", "2026-01-01T00:00:00Z", &["2026-08-03T00:00:00Z"]),
    ("0 0 31W 5 *", "2026-01-01T00:00:00Z", &["2026-05-29T00:00:00Z"]),
    ("0 0 31W 2-5 *", "2026-04-01T00:00:00Z", &["2026-05-29T00:00:00Z"]),
    ("0 0 * * 5#3", "2026-01-01T00:00:00Z", &["2026-01-16T00:00:00Z", "2026-02-20T00:00:00Z"]),
    ("0 0 * * FRI#5", "2026-01-01T00:00:00Z", &["2026-01-30T00:00:00Z", "2026-05-29T00:00:00Z"]),
    ("0 0 * * 5L", "2026-01-01T00:00:00Z", &["2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"]),
    ("0 0 * * 7L", "2026-01-01T00:00:00Z", &["2026-01-25T00:00:00Z"]),
    ("0 0 * 2 MON#5", "2026-01-01T00:00:00Z", &["2044-02-29T00:00:00Z"]),
    // Names.
    ("@yearly", "2026-01-01T00:00:00Z", &["2027-01-01T00:00:00Z"]),
    ("@annually", "2026-06-01T00:00:00Z", &["2027-01-01T00:00:00Z"]),
    ("@monthly", "2026-01-01T00:00:00Z", &["2026-02-01T00:00:00Z"]),
    ("@weekly", "2026-01-01T00:00:00Z", &["2026-01-04T00:00:00Z"]),
    ("@daily", "2026-01-01T00:00:00Z", &["2026-01-02T00:00:00Z"]),
    ("@midnight", "2026-01-01T12:00:00Z", &["2026-01-02T00:00:00Z"]),
    ("@hourly", "2026-01-01T00:00:00Z", &["2026-01-01T01:00:00Z"]),
    // Intervals are counted from an anchor, here the time given.
    ("@every 45s", "2026-01-01T00:00:07Z", &["2026-01-01T00:00:52Z", "2026-01-01T00:01:37Z"]),
    ("@every 1h30m", "2026-01-01T00:00:07Z", &["2026-01-01T01:30:07Z", "2026-01-01T03:00:07Z"]),
    ("@every 1s500ms", "2026-01-01T00:00:00Z", &["2026-01-01T00:00:01.500000Z", "2026-01-01T00:00:03Z"]),
    ("  0   9 * * *  ", "2026-01-01T00:00:00Z", &["2026-01-01T09:00:00Z"]),
];

#[test]
fn expressions_have_their_slots() {
    for (expression, after, expected) in SLOTS {
        assert_eq!(slots(expression, "UTC", after, expected.len()), *expected, "{expression} after {after}");
    }
}

/// What is not valid, and a part of each message about it.
const INVALID: &[(&str, &[&str])] = &[
    ("", &["which has 0 fields"]),
    ("not a valid cron", &["which has 4 fields"]),
    ("0 0 0 0 0 0 0", &["which has 7 fields"]),
    (
        "99 25 32 13 8",
        &[
            "the minute: found \"99\"; allowed is 0 to 59,",
            "the hour: found \"25\"; allowed is 0 to 23,",
            "the day of the month: found \"32\"; allowed is 1 to 31,",
            "the day of the week: found \"8\"; allowed is 0 to 7, SUN to SAT,",
            "the month: found \"13\"; allowed is 1 to 12, JAN to DEC,",
        ],
    ),
    ("60 * * * * *", &["the second: found \"60\""]),
    ("*/0 * * * *", &["the minute: found \"*/0\"; allowed is a step from 1 to 59"]),
    ("*/60 * * * *", &["a step from 1 to 59"]),
    ("* 22-2 * * *", &["a range that ascends; write \"22-23,0-2\""]),
    ("* * 0 * *", &["the day of the month: found \"0\""]),
    ("1,,2 * * * *", &["the minute: found \"\""]),
    ("1- * * * *", &["found \"1-\""]),
    ("-1 * * * *", &["found \"-1\""]),
    ("+1 * * * *", &["found \"+1\""]),
    ("1.5 * * * *", &["found \"1.5\""]),
    ("? * * * *", &["found \"?\""]),
    ("* * * * L", &["L behind a day, such as 5L"]),
    ("* * * * 5#6", &["# with a number from 1 to 5"]),
    ("* * * * 5#0", &["# with a number from 1 to 5"]),
    ("* * 32W * *", &["found \"32W\""]),
    ("* * W * *", &["found \"W\""]),
    ("* L * * *", &["the hour: found \"L\""]),
    ("MON * * * *", &["the minute: found \"MON\""]),
    ("* * * JANUARY *", &["the month: found \"JANUARY\""]),
    ("@reboot", &["found \"@reboot\"; allowed is @yearly"]),
    ("@Daily", &["found \"@Daily\""]),
    ("@every", &["@every and a duration"]),
    ("@every30m", &["@every and a duration"]),
    ("@every 500ms", &["from 1s to ten years"]),
    ("@every 5", &["@every and a duration"]),
    ("@every 5d", &["@every and a duration"]),
    ("@every -5m", &["@every and a duration"]),
    ("@every 99999999h", &["from 1s to ten years"]),
    ("@every 99999999999999999999h", &["from 1s to ten years"]),
];

#[test]
fn every_problem_is_listed_with_what_is_allowed() {
    for (expression, parts) in INVALID {
        let (problems, zone) = Schedule::read(expression, "UTC").expect_err(expression);
        assert_eq!((problems.len(), zone.len()), (parts.len(), 0), "{expression}: {problems:?}");
        for (problem, part) in problems.iter().zip(*parts) {
            assert!(problem.message.contains(part), "{expression}: {}", problem.message);
        }
    }
    let long = format!("{} * * * *", "1,".repeat(300));
    assert!(Schedule::read(&long, "UTC").expect_err("too long").0[0].message.contains("at most 500 bytes"));
}

#[test]
fn zones_have_names_of_the_database() {
    for zone in ["UTC", "Etc/UTC", "America/New_York", "Asia/Kolkata", "America/Argentina/Buenos_Aires"] {
        schedule("@daily", zone);
    }
    for zone in
        ["", "+05:00", "UTC+5", "EST", "PST", "CET", "EST5EDT", "utc", "Mars/Olympus", "../etc/passwd", "/", "a/b"]
    {
        let (expression, problems) = Schedule::read("@daily", zone).expect_err(zone);
        assert!(expression.is_empty() && problems[0].message.contains("such as \"Europe/Berlin\""), "{problems:?}");
    }
    let (expression, zone) = Schedule::read("nonsense", "EST").expect_err("two problems");
    assert_eq!((expression.len(), zone.len()), (1, 1));
}

#[test]
fn what_is_never_due_has_no_slots() {
    for (expression, zone) in [
        ("0 0 30 2 *", "UTC"),
        ("0 0 31 4,6,9,11 *", "Europe/Berlin"),
        // The second Sunday of March is when clocks there pass this time over.
        ("30 2 * 3 SUN#2", "America/New_York"),
    ] {
        let start = super::at("2026-01-01T00:00:00Z");
        assert_eq!(schedule(expression, zone).next(start, start), None, "{expression} in {zone}");
    }
}
