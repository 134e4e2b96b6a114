//! The list of settings: what they are called, what they mean, and what is allowed.

use redrive_engine::EVENTS_STORED;
use redrive_policy::Span;
use redrive_policy::dialect::{go_duration, iso_duration};
use redrive_server::{AzollaSettings, Limits};

/// One setting.
pub(super) struct Setting {
    /// Its name in the file and with `--set`; the environment has it in capitals, with `_` for `.`.
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    /// The default value; empty for none.
    pub(super) default: fn() -> String,
    /// What it means, for people.
    pub(super) what: &'static str,
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// Text of a certain form: what is allowed, for people. It is checked by its user.
    Named(&'static str),
    /// Text that is never shown.
    Secret,
    /// A whole number between two bounds.
    Count(u64, u64),
    /// A number of bytes between two bounds.
    Bytes(u64, u64),
    /// A length of time above zero.
    Duration,
    /// The time between two events; zero if there are none.
    Interval,
    /// Yes or no.
    Flag,
}

const MIB: u64 = 1 << 20;

pub(super) const LOG_LEVEL: &str =
    "error, warn, info, debug, trace or off; also by module, such as \"info,redrive_server=debug\"";
pub(super) const LOG_FORMAT: &str = "text, or json for an object on each line";

macro_rules! limit {
    ($field:ident, $kind:expr, $what:literal) => {
        Setting {
            key: concat!("limits.", stringify!($field)),
            kind: $kind,
            default: || Limits::default().$field.to_string(),
            what: $what,
        }
    };
    ($field:ident, $what:literal) => {
        Setting {
            key: concat!("limits.", stringify!($field)),
            kind: Kind::Duration,
            default: || format!("{}s", Limits::default().$field.as_secs()),
            what: $what,
        }
    };
}

macro_rules! azolla {
    ($field:ident, $what:literal) => {
        Setting {
            key: concat!("azolla.", stringify!($field)),
            kind: Kind::Duration,
            default: || format!("{}s", AzollaSettings::default().$field.as_secs()),
            what: $what,
        }
    };
}

macro_rules! setting {
    ($key:literal, $kind:expr, $default:literal, $what:literal) => {
        Setting { key: $key, kind: $kind, default: || $default.to_owned(), what: $what }
    };
}

/// All of them, in the order in which they are shown.
pub(super) const SETTINGS: &[Setting] = &[
    setting!(
        "listen",
        Kind::Named("an address with a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\""),
        "127.0.0.1:8080",
        "the address to listen on"
    ),
    setting!(
        "azolla_listen",
        Kind::Named("an address with a port, such as \"127.0.0.1:52710\""),
        "",
        "the address for Azolla's protocol (gRPC); without it there is none"
    ),
    setting!("data", Kind::Named("a folder, which is created if missing"), "redrive-data", "the folder of the store"),
    setting!("store", Kind::Secret, "", "the database, instead of a folder: postgres://user:password@host/database"),
    setting!("backups", Kind::Text, "", "the folder for backups, those of callers and those by schedule"),
    setting!("backup.every", Kind::Interval, "0", "the time from one backup by schedule to the next; 0 for none"),
    setting!(
        "backup.keep",
        Kind::Count(1, 10_000),
        "7",
        "how many backups by schedule are kept; the oldest are deleted"
    ),
    setting!("api_key", Kind::Secret, "", "an API key for callers; best set in the environment"),
    setting!("api_key_file", Kind::Named("a file"), "", "a file with API keys, one on each line"),
    setting!(
        "anyone_may_call",
        Kind::Flag,
        "false",
        "whether everyone who reaches the server may call it, without any key"
    ),
    setting!(
        "secrets_key_file",
        Kind::Named("a file"),
        "",
        "a file with keys that encrypt secrets of graphs, one on each line"
    ),
    setting!("hosts", Kind::Text, "", "names of the server, separated by commas, besides localhost and the address"),
    setting!(
        "allow_test_directives",
        Kind::Flag,
        "false",
        "whether a job may stop its worker, for tests of the protocol"
    ),
    setting!("webhooks.allow_private", Kind::Flag, "false", "whether events may be sent to private addresses"),
    setting!("webhooks.allow_http", Kind::Flag, "false", "whether events may be sent without encryption"),
    azolla!(lease, "how long an Azolla shepherd may say nothing before its tasks are given to others"),
    azolla!(reconnect, "how long the tasks of a shepherd wait for it after its connection has broken"),
    azolla!(
        timeout,
        "how long an attempt of an Azolla task may take; more than the shepherd's time-out of its workers"
    ),
    Setting {
        key: "azolla.concurrency",
        kind: Kind::Count(0, 1_000_000_000),
        default: || AzollaSettings::default().concurrency.to_string(),
        what: "how many tasks of an Azolla domain run at once, unless its key has a limit; 0 for any number",
    },
    setting!("azolla.dead_letters", Kind::Flag, "false", "whether Azolla tasks that fail for good are dead letters"),
    setting!("default_policy", Kind::Text, "", "a file with the retry policy of jobs that have no other"),
    setting!("threads", Kind::Count(1, 256), "2", "threads that answer requests"),
    setting!("lease", Kind::Duration, "30m", "the lease of a run, unless the job or the worker sets one"),
    setting!("timeout", Kind::Duration, "30m", "how long a run may take, unless the job says"),
    setting!("releases", Kind::Count(0, 1_000_000), "100", "how often in a row a job may be released"),
    setting!(
        "max_depth",
        Kind::Count(0, 1_000_000_000_000),
        "0",
        "how many jobs may wait in a queue for which nothing else is configured; 0 for any number"
    ),
    setting!(
        "exosphere.lease",
        Kind::Named("a length of time above zero, such as \"2h\", or nothing for no lease"),
        "",
        "after how long a state of a graph is taken from a runtime that has not reported it"
    ),
    setting!("log.level", Kind::Named(LOG_LEVEL), "info", "which events are logged"),
    setting!("log.format", Kind::Named(LOG_FORMAT), "text", "the format of the log"),
    setting!("retention.finished", Kind::Duration, "24h", "how long ended jobs are retained"),
    setting!("retention.dead", Kind::Duration, "720h", "how long dead letters are retained"),
    limit!(body_bytes, Kind::Bytes(1 << 10, 256 * MIB), "the longest body of a request"),
    limit!(args_bytes, Kind::Bytes(64, 256 * MIB), "the longest args of a job"),
    limit!(error_bytes, Kind::Bytes(1 << 10, MIB), "the longest error that is stored unabridged"),
    limit!(nesting, Kind::Count(1, 120), "how deep values may nest"),
    limit!(batch, Kind::Count(1, 100_000), "jobs in a batch, reports in a settlement"),
    limit!(workflow, Kind::Count(1, 10_000), "jobs in a workflow, callbacks included"),
    limit!(fetch, Kind::Count(1, 100_000), "jobs in one fetch"),
    limit!(page, Kind::Count(1, 100_000), "entries on one page of a list"),
    limit!(answer_bytes, Kind::Bytes(1 << 10, 1_024 * MIB), "the longest answer with several jobs"),
    limit!(bulk, Kind::Count(1, 10_000_000), "dead letters changed by one request"),
    limit!(name_bytes, Kind::Count(16, 4_096), "the longest name of a queue, type or worker"),
    limit!(connections, Kind::Count(1, 1_000_000), "open connections; at the limit, a new one replaces an idle one"),
    limit!(
        connections_per_address,
        Kind::Count(0, 1_000_000),
        "open connections of one address without a valid key; 0 for no limit"
    ),
    limit!(long_polls, Kind::Count(0, 1_000_000), "fetches that wait for a job at once"),
    limit!(long_poll, "how long a fetch may wait for a job"),
    limit!(streams, Kind::Count(0, 1_000_000), "event streams that are open at once"),
    limit!(
        stream_events,
        Kind::Count(1, EVENTS_STORED as u64),
        "how many events a stream may be behind; older ones are left out, and the stream says so"
    ),
    limit!(stream_heartbeat, "after how long a stream without events gets a heartbeat"),
    limit!(stream_idle, "after how long a stream without events is ended"),
    limit!(
        metric_labels,
        Kind::Count(1, 10_000),
        "queues, pairs of queue and type, and errors that have metrics of their own; others are counted as one"
    ),
    limit!(header_timeout, "how long a client may take to send the head of a request, and a connection be idle"),
    limit!(body_timeout, "how long a client may take to send the body of a request"),
    limit!(write_timeout, "how long a client may take to read its answer, or 16 KiB of a long one"),
    limit!(drain, "how long a stop waits for running requests"),
];

impl Setting {
    /// Its name in the environment.
    pub(super) fn env(&self) -> String {
        format!("REDRIVE_{}", self.key.to_uppercase().replace('.', "_"))
    }
}

/// A setting as a line of the file.
pub(super) fn in_toml(setting: &Setting, text: &str) -> String {
    let number = matches!(setting.kind, Kind::Count(..) | Kind::Bytes(..)) && text.parse::<u64>().is_ok();
    match setting.kind {
        Kind::Secret if text.is_empty() => format!("# {} is not set", setting.key),
        Kind::Secret => format!("# {} is set, and not shown", setting.key),
        Kind::Flag => format!("{} = {text}", setting.key),
        _ if number => format!("{} = {text}", setting.key),
        // TOML knows all escapes of JSON.
        _ => format!("{} = {}", setting.key, serde_json::Value::from(text)),
    }
}

/// A value that has been checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TypedValue {
    Text(String),
    Number(u64),
    Duration(Span),
    Flag(bool),
}

impl Kind {
    /// Reads a value; `Err` says what is allowed.
    pub(super) fn read(self, text: &str) -> Result<TypedValue, String> {
        let read = match self {
            Self::Text | Self::Named(_) | Self::Secret => Some(TypedValue::Text(text.to_owned())),
            Self::Count(least, most) => {
                text.parse().ok().filter(|number| (least..=most).contains(number)).map(TypedValue::Number)
            }
            Self::Bytes(least, most) => {
                bytes(text).filter(|number| (least..=most).contains(number)).map(TypedValue::Number)
            }
            Self::Flag => text.parse().ok().map(TypedValue::Flag),
            Self::Duration => duration(text).filter(|span| !span.is_zero()).map(TypedValue::Duration),
            Self::Interval if text == "0" => Some(TypedValue::Duration(Span::ZERO)),
            Self::Interval => duration(text).filter(|span| *span >= SHORTEST_INTERVAL).map(TypedValue::Duration),
        };
        read.ok_or_else(|| self.allowed())
    }

    /// What is allowed, for people.
    pub(super) fn allowed(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Named(allowed) => allowed.to_owned(),
            Self::Secret => "text, which is never shown".to_owned(),
            Self::Count(least, most) => format!("a whole number from {least} to {most}"),
            Self::Bytes(least, most) => {
                format!("a number of bytes from {least} to {most}, such as \"64KiB\" or \"2MiB\"")
            }
            Self::Flag => "true or false".to_owned(),
            Self::Duration => {
                "a length of time above zero, such as \"500ms\", \"30s\", \"1h30m\" or \"PT30S\"".to_owned()
            }
            Self::Interval => "0, or a length of time from one second, such as \"30m\" or \"24h\"".to_owned(),
        }
    }
}

/// The shortest interval.
const SHORTEST_INTERVAL: Span = Span::from_secs(1);

fn duration(text: &str) -> Option<Span> {
    go_duration(text).or_else(|| Some(iso_duration(text)?.span))
}

fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let unit = units.iter().find_map(|(name, factor)| Some((text.strip_suffix(name)?, *factor)));
    let (number, factor) = unit.unwrap_or((text, 1));
    number.trim().parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_allowed() {
        for setting in SETTINGS {
            assert!(setting.kind.read(&(setting.default)()).is_ok(), "{}", setting.key);
        }
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(Kind::Bytes(1, 1 << 21).read("2MiB"), Ok(TypedValue::Number(1 << 21)));
        assert!(Kind::Bytes(1, 1 << 20).read("2MiB").is_err());
        assert_eq!(Kind::Duration.read("1h30m"), Ok(TypedValue::Duration(Span::from_secs(5_400))));
        assert_eq!(Kind::Duration.read("PT30S"), Ok(TypedValue::Duration(Span::from_secs(30))));
        assert!(Kind::Duration.read("0s").is_err());
        assert_eq!(Kind::Interval.read("0"), Ok(TypedValue::Duration(Span::ZERO)));
        assert_eq!(Kind::Interval.read("24h"), Ok(TypedValue::Duration(Span::from_secs(86_400))));
        assert!(Kind::Interval.read("1ms").is_err() && Kind::Interval.read("daily").is_err());
        assert!(Kind::Count(1, 9).read("-1").is_err());
    }
}
