//! The list of settings: what they are called, what they mean, and what is allowed.

use redrive_policy::Span;
use redrive_policy::dialect::{go_duration, iso_duration};
use redrive_server::Limits;

/// One setting.
pub(super) struct Setting {
    /// Its name in the file and with `--set`; the environment has it in capitals, with `_` for `.`.
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    /// Its value where nobody says otherwise; empty for none.
    pub(super) default: fn() -> String,
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// Text that is never shown.
    Secret,
    /// A whole number between two bounds.
    Count(u64, u64),
    /// A number of bytes between two bounds.
    Bytes(u64, u64),
    /// A length of time, longer than none.
    Duration,
}

const MIB: u64 = 1 << 20;

macro_rules! limit {
    ($field:ident, $kind:expr) => {
        Setting {
            key: concat!("limits.", stringify!($field)),
            kind: $kind,
            default: || Limits::default().$field.to_string(),
        }
    };
    ($field:ident) => {
        Setting {
            key: concat!("limits.", stringify!($field)),
            kind: Kind::Duration,
            default: || format!("{}s", Limits::default().$field.as_secs()),
        }
    };
}

/// All of them, in the order in which they are shown.
pub(super) const SETTINGS: [Setting; 25] = [
    Setting { key: "listen", kind: Kind::Text, default: || "127.0.0.1:8080".to_owned() },
    Setting { key: "data", kind: Kind::Text, default: || "redrive-data".to_owned() },
    Setting { key: "api_key", kind: Kind::Secret, default: String::new },
    Setting { key: "api_key_file", kind: Kind::Text, default: String::new },
    Setting { key: "threads", kind: Kind::Count(1, 256), default: || "2".to_owned() },
    Setting { key: "lease", kind: Kind::Duration, default: || "30m".to_owned() },
    Setting { key: "timeout", kind: Kind::Duration, default: || "30m".to_owned() },
    Setting { key: "releases", kind: Kind::Count(0, 1_000_000), default: || "100".to_owned() },
    Setting { key: "retention.finished", kind: Kind::Duration, default: || "24h".to_owned() },
    Setting { key: "retention.dead", kind: Kind::Duration, default: || "720h".to_owned() },
    limit!(body_bytes, Kind::Bytes(1 << 10, 256 * MIB)),
    limit!(args_bytes, Kind::Bytes(64, 256 * MIB)),
    limit!(error_bytes, Kind::Bytes(1 << 10, MIB)),
    limit!(nesting, Kind::Count(1, 120)),
    limit!(batch, Kind::Count(1, 100_000)),
    limit!(fetch, Kind::Count(1, 100_000)),
    limit!(page, Kind::Count(1, 100_000)),
    limit!(bulk, Kind::Count(1, 10_000_000)),
    limit!(name_bytes, Kind::Count(16, 4_096)),
    limit!(connections, Kind::Count(1, 1_000_000)),
    limit!(long_polls, Kind::Count(0, 1_000_000)),
    limit!(long_poll),
    limit!(header_timeout),
    limit!(body_timeout),
    limit!(drain),
];

impl Setting {
    /// Its name in the environment.
    pub(super) fn env(&self) -> String {
        format!("REDRIVE_{}", self.key.to_uppercase().replace('.', "_"))
    }
}

/// A value that has been checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Read {
    Text(String),
    Number(u64),
    Duration(Span),
}

impl Kind {
    /// Reads a value; `Err` says what is allowed.
    pub(super) fn read(self, text: &str) -> Result<Read, String> {
        match self {
            Self::Text | Self::Secret => Ok(Read::Text(text.to_owned())),
            Self::Count(least, most) => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(number));
                number.map(Read::Number).ok_or_else(|| format!("a whole number from {least} to {most}"))
            }
            Self::Bytes(least, most) => {
                let number = bytes(text).filter(|number| (least..=most).contains(number));
                let allowed = || format!("a number of bytes from {least} to {most}, such as \"64KiB\" or \"2MiB\"");
                number.map(Read::Number).ok_or_else(allowed)
            }
            Self::Duration => {
                let span = go_duration(text).or_else(|| Some(iso_duration(text)?.span));
                let span = span.filter(|span| !span.is_zero());
                let allowed = || "a length of time above zero, such as \"500ms\", \"30s\", \"1h30m\" or \"PT30S\"";
                span.map(Read::Duration).ok_or_else(|| allowed().to_owned())
            }
        }
    }
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
        for setting in &SETTINGS {
            assert!(setting.kind.read(&(setting.default)()).is_ok(), "{}", setting.key);
        }
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(Kind::Bytes(1, 1 << 21).read("2MiB"), Ok(Read::Number(1 << 21)));
        assert!(Kind::Bytes(1, 1 << 20).read("2MiB").is_err());
        assert_eq!(Kind::Duration.read("1h30m"), Ok(Read::Duration(Span::from_secs(5_400))));
        assert_eq!(Kind::Duration.read("PT30S"), Ok(Read::Duration(Span::from_secs(30))));
        assert!(Kind::Duration.read("0s").is_err());
        assert!(Kind::Count(1, 9).read("-1").is_err());
    }
}
