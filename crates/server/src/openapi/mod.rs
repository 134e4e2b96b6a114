//! The description of the HTTP interface, in the form of OpenAPI 3.1. Paths, methods and query parameters are those of
//! the registry of endpoints; what an endpoint takes and answers is in a table for each group of endpoints; schemas and
//! parameters are in JSON files beside them. A test compares the tables with the registry, so that an endpoint without
//! a description does not pass.

mod document;
mod groups;
mod operation;
mod page;
mod parameters;
mod schemas;
mod serve;
#[cfg(test)]
mod tests;

pub(crate) use serve::add;

use crate::app::endpoints;
use serde_json::Value;
use std::sync::LazyLock;

/// The description as a JSON document, with an end of line at its end. It is the same for every server of this
/// version.
#[must_use]
pub fn openapi() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let (_, table) = endpoints().finish(crate::ojs::no_such_path);
        // Writing JSON into memory cannot fail.
        let mut text = serde_json::to_string_pretty(&document::of(&table)).unwrap_or_default();
        text.push('\n');
        text
    });
    &TEXT
}

/// A JSON file beside this one. The tests read each of them.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
