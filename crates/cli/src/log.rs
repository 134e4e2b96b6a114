//! The log: events of all crates as lines on standard error, each with its time and its level.

use crate::output;
use redrive_ojs::time;
use redrive_policy::Moment;
use serde_json::{Map, Value};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, registry};

/// What a log looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// A line for people.
    #[default]
    Text,
    /// An object on each line, with the fields of the event.
    Json,
}

impl FromStr for Format {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(()),
        }
    }
}

/// Reads a filter: a level, or several parts separated by commas, of which all but one name a module. Absent if a part
/// is neither: it would count as the name of a module, and silence everything else.
pub(crate) fn filter(text: &str) -> Option<Targets> {
    let level = |name: &str| match name {
        "off" => Some(LevelFilter::OFF),
        "error" => Some(LevelFilter::ERROR),
        "warn" => Some(LevelFilter::WARN),
        "info" => Some(LevelFilter::INFO),
        "debug" => Some(LevelFilter::DEBUG),
        "trace" => Some(LevelFilter::TRACE),
        _ => None,
    };
    text.split(',').try_fold(Targets::new(), |filter, part| match part.split_once('=') {
        Some((target, name)) if !target.is_empty() => Some(filter.with_target(target, level(name)?)),
        Some(_) => None,
        None => Some(filter.with_default(level(part)?)),
    })
}

/// Which events are written, and how.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) format: Format,
    pub(crate) filter: Targets,
}

impl Settings {
    /// The default settings, without the events of one crate, which the command itself prints.
    pub(crate) fn without(target: &'static str) -> Self {
        let Self { format, filter } = Self::default();
        Self { format, filter: filter.with_target(target, LevelFilter::OFF) }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { format: Format::Text, filter: Targets::new().with_default(Level::INFO) }
    }
}

/// Starts the log of the process. Events before this call are dropped.
pub(crate) fn start(settings: Settings) {
    let lines = Lines { format: settings.format };
    let subscriber = registry().with(lines.with_filter(settings.filter));
    // Fails only if the process has a log already, which then stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Writes each event as a line.
struct Lines {
    format: Format,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut record = Record::default();
        event.record(&mut record);
        let line = match self.format {
            Format::Json => record.json(now(), *metadata.level(), metadata.target()),
            Format::Text if to_journal() => {
                format!("<{}>{}", priority(*metadata.level()), record.text(metadata.target()))
            }
            Format::Text => {
                format!("{} {} {}", time::rfc3339(now()), name(*metadata.level()), record.text(metadata.target()))
            }
        };
        // One call for the whole line. A closed pipe does not stop the work.
        let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
    }
}

/// An event: its message, and its fields in their order.
#[derive(Default)]
struct Record {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl Record {
    /// The message; for events of other crates, also the fields.
    fn text(&self, target: &str) -> String {
        if target.starts_with("redrive") {
            return one_line(&self.message);
        }
        let mut line = format!("{target}: {}", self.message);
        for (key, value) in &self.fields {
            line.push_str(&format!(" {key}={value}"));
        }
        one_line(&line)
    }

    fn json(self, at: Moment, level: Level, target: &str) -> String {
        let mut line = Map::new();
        line.insert("at".to_owned(), time::rfc3339(at).into());
        line.insert("level".to_owned(), name(level).into());
        line.insert("target".to_owned(), target.into());
        line.insert("message".to_owned(), self.message.into());
        line.extend(self.fields.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Value::Object(line).to_string()
    }

    fn push(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (key, value) => self.fields.push((key, value)),
        }
    }
}

impl Visit for Record {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, format!("{value:?}").into());
    }
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Escapes line breaks and control characters.
fn one_line(line: &str) -> String {
    output::plain(line).replace('\n', "\\n")
}

/// Whether standard error goes to the journal of systemd, which adds the time itself. The variable names the
/// stream, because standard error may have been redirected since.
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

const fn name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// The level as the journal reads it at the start of a line.
const fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(message: &str) -> Record {
        Record { message: message.to_owned(), fields: vec![("queue", "a\nb".into()), ("jobs", 3.into())] }
    }

    #[test]
    fn a_line_stays_one_line_without_control_characters() {
        assert_eq!(one_line("a\nb \u{1b}[31mred é"), "a\\nb \\u{1b}[31mred é");
        let line = record("first\nsecond").json(Moment::ORIGIN, Level::WARN, "redrive_server::queues");
        assert!(!line.contains('\n'), "{line}");
    }

    #[test]
    fn a_misspelt_level_silences_nothing() {
        for text in ["info", "off", "warn,redrive_server=debug", "redrive_engine=trace,error"] {
            assert!(filter(text).is_some(), "{text}");
        }
        for text in ["", "inof", "info,", "redrive_server=loud", "=info", "info;debug", "INFO"] {
            assert!(filter(text).is_none(), "{text}");
        }
        let both = filter("warn,redrive_server=debug").unwrap();
        assert!(both.would_enable("redrive_server::ojs", &Level::DEBUG) && !both.would_enable("hyper", &Level::INFO));
    }

    #[test]
    fn fields_are_written_for_programs_and_for_foreign_events() {
        assert_eq!(record("queue closed").text("redrive_server::ojs"), "queue closed");
        assert_eq!(record("closed").text("hyper"), "hyper: closed queue=\"a\\nb\" jobs=3");
        let line = record("queue closed").json(Moment::ORIGIN, Level::WARN, "redrive_server");
        let expected = r#""level":"warn","target":"redrive_server","message":"queue closed","queue":"a\nb","jobs":3}"#;
        assert!(line.starts_with(r#"{"at":"1970-01-01T00:00:00"#) && line.ends_with(expected), "{line}");
    }
}
