//! What the configuration file sets for queues, types and the keys of limits.

use super::names;
use redrive_ojs::json::Members;
use redrive_ojs::queues::{LimitConfig, QueueConfig};
use redrive_ojs::{Limits, is_limit_key, is_type};
use redrive_policy::Problem;
use redrive_store::{Group, Setting};
use serde_json::Value;

/// The tables of the file, each with what its entries are.
pub(super) const TABLES: [&str; 3] = ["queues", "types", "keys"];

/// Reads one of the tables. Every problem is listed with its place.
pub(super) fn read(table: &str, value: &Value, problems: &mut Vec<String>) -> Vec<(Group, Setting)> {
    let Some(entries) = value.as_object() else {
        problems.push(format!("{table}: found {value}; allowed is a table, such as [{table}.NAME]"));
        return Vec::new();
    };
    let mut groups = Vec::new();
    for (name, value) in entries {
        match entry(table, name, value) {
            Ok(group) => groups.extend(group),
            Err(found) => problems.extend(found.into_iter().map(|why| format!("{table}.{name}{why}"))),
        }
    }
    groups
}

fn entry(table: &str, name: &str, value: &Value) -> Result<Option<(Group, Setting)>, Vec<String>> {
    let mut found = Vec::new();
    let named = match table {
        "queues" => names::queue(name),
        "types" if is_type(name) => Ok(()),
        "types" => Err(format!("found \"{name}\", which is not a job type; patterns have no limits of their own")),
        _ if is_limit_key(name, &Limits::default()) => Ok(()),
        _ => Err(format!("found \"{name}\", which is not the key of a limit")),
    };
    found.extend(named.err().map(|why| format!(": {why}")));
    let text = value.to_string();
    let members = Members::parse(&text).map_err(|_| vec![format!(": found {value}; allowed is a table")])?;
    let mut problems = Vec::new();
    let (group, setting) = match table {
        "queues" => (Group::Queue(name.into()), QueueConfig::read(&members, &mut problems).setting()),
        "types" => (Group::Kind(name.into()), limits(&members, &mut problems)),
        _ => (Group::Key(name.into()), limits(&members, &mut problems)),
    };
    found
        .extend(problems.into_iter().map(|problem| format!("{}: {}", problem.path.replace('/', "."), problem.message)));
    if found.is_empty() { Ok(setting.map(|setting| (group, setting))) } else { Err(found) }
}

fn limits(members: &Members<'_>, problems: &mut Vec<Problem>) -> Option<Setting> {
    Some(LimitConfig::read(members, problems).setting())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_become_settings() {
        let mut problems = Vec::new();
        let queue = json!({ "mail": { "concurrency": 2, "backpressure": { "max_depth": 9 } }, "idle": {} });
        let read_queues = read("queues", &queue, &mut problems);
        assert_eq!(read_queues.len(), 1, "what is empty sets nothing");
        let (group, setting) = &read_queues[0];
        assert_eq!(
            (group.to_string(), setting.depth, setting.bounds.concurrency),
            ("queue:mail".into(), Some(9), Some(2))
        );
        let rate = json!({ "rate": { "limit": 5, "period": "PT1S" } });
        let groups: Vec<String> = ["types", "keys"]
            .iter()
            .flat_map(|table| read(table, &json!({ "mail.send": rate }), &mut problems))
            .map(|(group, _)| group.to_string())
            .collect();
        assert_eq!(groups, ["type:mail.send", "key:mail.send"]);
        assert_eq!(problems, Vec::<String>::new());
    }

    #[test]
    fn every_problem_has_its_place() {
        let mut problems = Vec::new();
        for (table, value, place) in [
            ("queues", json!({ "My Queue": {} }), "queues.My Queue: "),
            ("queues", json!({ "mail": { "concurency": 1 } }), "queues.mail.concurency: "),
            (
                "queues",
                json!({ "mail": { "backpressure": { "max_depth": -1 } } }),
                "queues.mail.backpressure.max_depth: ",
            ),
            ("queues", json!({ "mail": 5 }), "queues.mail: "),
            ("queues", json!(5), "queues: "),
            ("types", json!({ "mail.*": { "concurrency": 1 } }), "types.mail.*: "),
            ("types", json!({ "mail.send": {} }), "types.mail.send: "),
            ("keys", json!({ "-": { "concurrency": 1 } }), "keys.-: "),
        ] {
            assert!(read(table, &value, &mut problems).is_empty());
            let last = problems.last().cloned().unwrap_or_default();
            assert!(last.starts_with(place), "{last}");
        }
    }
}
