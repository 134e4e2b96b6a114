//! The name of the operator, for the records of the server.

use std::env;
use std::fs;

/// The longest name, in characters.
const MAX_CHARS: usize = 100;

/// `user@host`, as far as they are known.
pub(crate) fn name() -> String {
    let known = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let variable = |key: &str| env::var(key).ok().and_then(known);
    let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "unknown".to_owned());
    let host = || fs::read_to_string("/proc/sys/kernel/hostname").ok().and_then(known);
    let name = match variable("HOSTNAME").or_else(host) {
        Some(host) => format!("{user}@{host}"),
        None => user,
    };
    name.chars().take(MAX_CHARS).collect()
}
