//! The shapes that requests and answers have in common, from the files below `schemas/`.

use super::read;
use serde_json::{Map, Value};

const FILES: [&str; 11] = [
    include_str!("schemas/shared.json"),
    include_str!("schemas/jobs.json"),
    include_str!("schemas/workers.json"),
    include_str!("schemas/dead.json"),
    include_str!("schemas/queues.json"),
    include_str!("schemas/runs.json"),
    include_str!("schemas/schedules.json"),
    include_str!("schemas/flows.json"),
    include_str!("schemas/events.json"),
    include_str!("schemas/admin.json"),
    include_str!("schemas/exosphere.json"),
];

/// All of them by name.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    for file in FILES {
        if let Value::Object(file) = read(file) {
            schemas.extend(file);
        }
    }
    schemas.sort_keys();
    schemas
}
