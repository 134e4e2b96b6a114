//! The log: lines on standard error, each with its time and its level.

use crate::output;
use redrive_ojs::time;
use redrive_policy::Moment;
use redrive_server::Level;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn info(line: impl fmt::Display) {
    write(Level::Info, &line.to_string());
}

pub(crate) fn warn(line: impl fmt::Display) {
    write(Level::Warn, &line.to_string());
}

pub(crate) fn error(line: impl fmt::Display) {
    write(Level::Error, &line.to_string());
}

/// Writes one line. A reader that is gone does not stop the work.
pub(crate) fn write(level: Level, line: &str) {
    let line = one_line(line);
    let line = if to_journal() {
        format!("<{}>{line}\n", priority(level))
    } else {
        format!("{} {level} {line}\n", time::rfc3339(now()))
    };
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// A line cannot start another line, or control a terminal.
fn one_line(line: &str) -> String {
    output::plain(line).replace('\n', "\\n")
}

/// Whether standard error goes to the journal of systemd, which has times of its own. It says which stream
/// that is, because standard error may have been sent elsewhere since.
fn to_journal() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let journal = std::env::var("JOURNAL_STREAM").ok();
        journal.is_some() && journal == stream_of_stderr()
    })
}

fn stream_of_stderr() -> Option<String> {
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?);
    let metadata = stderr.metadata().ok()?;
    Some(format!("{}:{}", metadata.dev(), metadata.ino()))
}

/// The level as the journal reads it at the start of a line.
const fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line_and_says_nothing_to_a_terminal() {
        assert_eq!(one_line("a\nb \u{1b}[31mred é"), "a\\nb \\u{1b}[31mred é");
    }
}
