//! Parameters of paths and queries, and headers of requests, from `parameters.json`.

use super::read;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// By name; or by the last word of the path before it and its name, where one name means several things.
static KNOWN: LazyLock<Value> = LazyLock::new(|| read(include_str!("parameters.json")));

/// Parameters as the components of the document have them, by the names under which endpoints refer to them.
#[derive(Debug, Default)]
pub(super) struct Parameters(Map<String, Value>);

impl Parameters {
    /// All that were referred to, by name.
    pub(super) fn into_components(mut self) -> Map<String, Value> {
        self.0.sort_keys();
        self.0
    }

    /// References to all parameters of a path.
    pub(super) fn of_path<'p>(&'p mut self, path: &'p str) -> impl Iterator<Item = Value> + 'p {
        let mut before = "";
        path.split('/').filter_map(move |word| match word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
            Some(name) => Some(self.refer("path", before, name)),
            None => {
                before = word;
                None
            }
        })
    }

    /// A reference to a parameter of the query of a path.
    pub(super) fn of_query(&mut self, path: &str, name: &str) -> Value {
        let last = path.split('/').rfind(|word| !word.starts_with('{')).unwrap_or_default();
        self.refer("query", last, name)
    }

    /// A reference to a header.
    pub(super) fn header(&mut self, name: &str) -> Value {
        self.refer("header", "", name)
    }

    fn refer(&mut self, place: &str, word: &str, name: &str) -> Value {
        let special = format!("{word}.{name}");
        let (key, known) = match KNOWN[place].get(&special) {
            Some(known) => (special.as_str(), known),
            None => (name, &KNOWN[place][name]),
        };
        let key = format!("{place}.{key}");
        let reference = json!({ "$ref": format!("#/components/parameters/{key}") });
        self.0.entry(key).or_insert_with(|| {
            let mut parameter = json!({ "name": name, "in": place, "description": known["description"] });
            if place == "path" {
                parameter["required"] = true.into();
            }
            parameter["schema"] = known["schema"].clone();
            parameter
        });
        reference
    }

    /// The names of `parameters.json` that nothing refers to, and those referred to that are not in it.
    #[cfg(test)]
    pub(super) fn unmatched(components: &Map<String, Value>) -> (Vec<String>, Vec<String>) {
        let places = KNOWN.as_object().into_iter().flatten();
        let known = places.flat_map(|(place, names)| {
            names.as_object().into_iter().flatten().map(move |(name, _)| format!("{place}.{name}"))
        });
        let unused = known.filter(|key| !components.contains_key(key)).collect();
        let missing = components.iter().filter(|(_, value)| value["schema"].is_null());
        (unused, missing.map(|(key, _)| key.clone()).collect())
    }
}
