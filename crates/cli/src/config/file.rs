//! The configuration file.

use super::groups;
use super::setting::SETTINGS;
use super::source::{key_of, no_such_setting};
use crate::exit::Failed;
use crate::input::{self, Format};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A configuration file as it was read.
pub(super) struct Document {
    pub(super) path: PathBuf,
    value: Value,
}

/// The table of what applies to namespaces of Exosphere's graphs.
pub(super) const NAMESPACES: &str = "namespaces";

/// Parts that are not plain settings.
pub(super) fn parts() -> impl Iterator<Item = &'static str> {
    ["policies", "caps", NAMESPACES].into_iter().chain(groups::TABLES)
}

pub(super) fn read(path: &Path) -> Result<Document, Failed> {
    let value = input::read(path, Some(Format::Toml))?;
    Ok(Document { path: path.to_owned(), value })
}

impl Document {
    /// A setting as text.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let value = key.split('.').try_fold(&self.value, |value, part| value.get(part))?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    pub(super) fn part(&self, name: &str) -> Option<&Value> {
        self.value.get(name)
    }

    /// Everything in the file that is not a setting.
    pub(super) fn unknown(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (key, value) in self.value.as_object().into_iter().flatten() {
            match value.as_object() {
                _ if parts().any(|part| part == key) => {}
                Some(inner) => {
                    inner.keys().for_each(|name| self.check(&format!("{key}.{name}"), &mut problems));
                }
                None => self.check(key, &mut problems),
            }
        }
        problems
    }

    fn check(&self, key: &str, problems: &mut Vec<String>) {
        if !SETTINGS.iter().any(|setting| setting.key == key) {
            let message = no_such_setting(key, key_of);
            problems.push(format!("file {}: {key}: {message}", self.path.display()));
        }
    }
}
