//! Where values come from.

use super::Flags;
use super::file::{self, Document};
use super::setting::{SETTINGS, Setting};
use crate::exit::Failed;
use redrive_policy::resembling;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(String),
    Environment(String),
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "flag {flag}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => write!(f, "default"),
        }
    }
}

/// The text of a setting, and where it came from.
struct SettingValue {
    text: String,
    origin: Origin,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Problems {
    pub(super) list: Vec<String>,
    /// Whether the command line is wrong, or a file that it needs cannot be read; not only the contents of the file or
    /// the environment.
    pub(super) is_usage: bool,
}

impl Problems {
    pub(super) fn push_usage(&mut self, problem: String) {
        self.list.push(problem);
        self.is_usage = true;
    }
}

/// All values as text, each with its origin.
pub(crate) struct Sources {
    values: Vec<(&'static Setting, SettingValue)>,
    /// The problems so far: unknown settings.
    pub(super) problems: Problems,
    file: Option<Document>,
}

impl Sources {
    /// Gathers all values: flags first, then the environment, then the file, then the defaults.
    pub(crate) fn gather(flags: &Flags) -> Result<Self, Failed> {
        let named = flags.config.clone().or_else(|| std::env::var_os("REDRIVE_CONFIG").map(PathBuf::from));
        let file = match named {
            Some(path) => Some(file::read(&path)?),
            None if Path::new("redrive.toml").exists() => Some(file::read(Path::new("redrive.toml"))?),
            None => None,
        };
        let mut problems = Problems::default();
        let by_flag = by_flag(flags, &mut problems);
        problems.list.extend(file.iter().flat_map(Document::unknown));
        problems.list.extend(unknown_in_environment());
        let values = SETTINGS.iter().map(|setting| {
            let flag = by_flag.iter().rev().find(|(key, _, _)| key == setting.key);
            let flag =
                flag.map(|(_, text, flag)| SettingValue { text: text.clone(), origin: Origin::Flag(flag.clone()) });
            let value = flag.or_else(|| of_environment(setting)).or_else(|| {
                let document = file.as_ref()?;
                Some(SettingValue { text: document.text(setting.key)?, origin: Origin::File(document.path.clone()) })
            });
            (setting, value.unwrap_or_else(|| SettingValue { text: (setting.default)(), origin: Origin::Default }))
        });
        Ok(Self { values: values.collect(), problems, file })
    }

    /// The value of a setting as text, and where it came from.
    pub(super) fn get(&self, key: &str) -> Option<(&'static Setting, &str, &Origin)> {
        let (setting, value) = self.values.iter().find(|(setting, _)| setting.key == key)?;
        Some((setting, &value.text, &value.origin))
    }

    /// All settings with their values as text, and where they came from.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&'static Setting, &str, &Origin)> {
        self.values.iter().map(|(setting, value)| (*setting, value.text.as_str(), &value.origin))
    }

    pub(super) fn file_name(&self) -> Option<String> {
        Some(self.file.as_ref()?.path.display().to_string())
    }

    /// A part of the file that is not a plain setting, as it is written there.
    pub(super) fn part(&self, name: &str) -> Option<&Value> {
        self.file.as_ref()?.part(name)
    }
}

/// The flag of a setting.
pub(super) fn flag_of(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

/// The settings of the flags: key, value, and the flag itself.
fn by_flag(flags: &Flags, problems: &mut Problems) -> Vec<(String, String, String)> {
    let own = flags.own().into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?, flag_of(key))));
    let mut values: Vec<_> = Vec::new();
    for pair in &flags.set {
        match pair.split_once('=') {
            Some(("api_key", _)) => {
                let message = "--set api_key: other users can see keys on the command line; use api_key_file";
                problems.push_usage(message.to_owned());
            }
            Some((key, value)) if SETTINGS.iter().any(|setting| setting.key == key) => {
                values.push((key.to_owned(), value.to_owned(), format!("--set {key}")));
            }
            Some((key, _)) => problems.push_usage(format!("--set {key}: {}", no_such_setting(key, key_of))),
            None => problems.push_usage(format!("--set {pair}: found no \"=\"; allowed is KEY=VALUE")),
        }
    }
    // A flag of its own takes precedence over `--set`: the last entry counts.
    values.extend(own);
    values
}

fn of_environment(setting: &Setting) -> Option<SettingValue> {
    let name = setting.env();
    let text = std::env::var(&name).ok()?;
    Some(SettingValue { text, origin: Origin::Environment(name) })
}

fn unknown_in_environment() -> impl Iterator<Item = String> {
    // The last ones are for client commands, which may share the environment of the server.
    const OTHERS: [&str; 3] = ["REDRIVE_CONFIG", "REDRIVE_SERVER", "REDRIVE_CA"];
    /// Variables that `redrive work` sets for its commands; a server may be one of them.
    const OF_A_JOB: &str = "REDRIVE_JOB_";
    let known = |name: &str| {
        OTHERS.contains(&name) || name.starts_with(OF_A_JOB) || SETTINGS.iter().any(|setting| setting.env() == name)
    };
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter_map(move |name| {
        let key = name.strip_prefix("REDRIVE_").filter(|_| !known(&name))?;
        Some(format!("environment {name}: {}", no_such_setting(&key.to_lowercase(), Setting::env)))
    })
}

/// The problem with a name that is not a setting: suggests the one that was probably meant, or lists all of them.
pub(super) fn no_such_setting(name: &str, shown: fn(&Setting) -> String) -> String {
    let hint = match meant(name) {
        Some(setting) => format!("did you mean \"{}\"?", shown(setting)),
        None => format!("there are {}", SETTINGS.iter().map(shown).collect::<Vec<_>>().join(", ")),
    };
    format!("there is no such setting; {hint}")
}

/// The setting that was probably meant by a wrong name: one in another notation, in a table, or misspelt.
fn meant(name: &str) -> Option<&'static Setting> {
    let plain = |name: &str| name.to_lowercase().replace(['.', '-'], "_");
    let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    let find = |wanted: &dyn Fn(&str) -> bool| SETTINGS.iter().find(|setting| wanted(setting.key));
    find(&|key| plain(key) == plain(name))
        .or_else(|| find(&|key| key.rsplit('.').next() == Some(name)))
        .or_else(|| resembling(name, &keys).and_then(|near| find(&|key| key == near)))
}

pub(super) fn key_of(setting: &Setting) -> String {
    setting.key.to_owned()
}
