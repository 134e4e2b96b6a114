//! Tables of the configuration file.

use redrive_policy::resembling;
use serde_json::Value;

/// A table of the file.
pub(super) struct Table<'v>(Option<&'v serde_json::Map<String, Value>>);

impl<'v> Table<'v> {
    /// A table with known keys; if `known` is empty, with any.
    pub(super) fn of(value: Option<&'v Value>, path: &str, known: &[&str], problems: &mut Vec<String>) -> Self {
        let table = value.and_then(Value::as_object);
        if value.is_some() && table.is_none() {
            problems.push(format!("{path}: found {}; allowed is a table", value.unwrap_or(&Value::Null)));
        }
        for key in table.into_iter().flat_map(serde_json::Map::keys) {
            if !known.is_empty() && !known.contains(&key.as_str()) {
                let meant =
                    resembling(key, known).map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
                problems.push(format!("{path}.{key}: there is no such setting; there are {}{meant}", known.join(", ")));
            }
        }
        Self(table)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'v Value> {
        self.0?.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        self.0.into_iter().flatten()
    }
}
