//! Servers whose clocks are off, are set, or stand still, as real processes under libfaketime.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../harness/mod.rs"]
mod harness;

#[path = "../../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "these tests do not share their database")]
mod cluster;

mod nodes;
mod skewed_server;
mod standstill;
mod steps;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The library under which a process has a clock that is off.
fn faketime() -> &'static str {
    static LIBRARY: LazyLock<String> = LazyLock::new(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/faketime");
        let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "scripts/faketime found no library; see above for why");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    });
    &LIBRARY
}

/// A moment in seconds, however it is written.
fn seconds(moment: &str) -> i64 {
    date(&["--date", moment, "+%s"]).parse().unwrap()
}

/// A moment as servers write it.
fn written(moment: &str) -> String {
    date(&["--utc", "--date", moment, "+%FT%T.%6NZ"])
}

fn date(args: &[&str]) -> String {
    let output = Command::new("date").args(args).output().unwrap();
    assert!(output.status.success(), "date {args:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Asserts that this time is about now, on a busy machine.
fn assert_now(job: &Value, pointer: &str) {
    assert_about(job, pointer, "");
}

/// That this moment is so far from now, such as `-1 hour`.
fn assert_about(job: &Value, pointer: &str, off: &str) {
    let found = job.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {job}"));
    let (from, to) = (written(&format!("{off} -5 minutes")), written(&format!("{off} +5 minutes")));
    assert!(*from < *found && *found < *to, "{pointer} is {found}, not between {from} and {to}");
}
