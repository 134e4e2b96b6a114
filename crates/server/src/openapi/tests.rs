//! The description is whole, and the committed copy is current.

use super::document::{find, of};
use super::groups::GROUPS;
use super::parameters::Parameters;
use super::{openapi, schemas};
use crate::app::endpoints;
use crate::endpoints::Table;
use serde_json::Value;
use std::collections::BTreeSet;

fn table() -> Table {
    endpoints().finish(crate::ojs::no_such_path).1
}

#[test]
fn every_endpoint_is_described_and_nothing_else() {
    let table = table();
    let registered: BTreeSet<(&str, &str)> =
        table.entries().iter().map(|entry| (entry.method.as_str(), entry.path)).collect();
    let undescribed: Vec<_> = registered.iter().filter(|(method, path)| find(method, path).is_none()).collect();
    assert!(undescribed.is_empty(), "describe them in crates/server/src/openapi/groups: {undescribed:?}");
    let mut described = BTreeSet::new();
    for operation in GROUPS.iter().flat_map(|group| group.operations) {
        let key = (operation.method, operation.path);
        assert!(registered.contains(&key), "no endpoint has this description: {key:?}");
        assert!(described.insert(key), "described twice: {key:?}");
        assert!(!operation.summary.is_empty() && !operation.answers.is_empty(), "{key:?}");
    }
}

/// Every `$ref` of a document.
fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_nothing_is_unused() {
    let document = of(&table());
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in &found {
        let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
        assert!(target.is_some(), "{reference} leads nowhere");
    }
    for name in schemas::all().keys() {
        let reference = format!("#/components/schemas/{name}");
        assert!(found.contains(&&*reference), "the schema {name} is not used");
    }
    let parameters = document["components"]["parameters"].as_object().unwrap();
    assert_eq!(Parameters::unmatched(parameters), (Vec::new(), Vec::new()), "unused, and missing in parameters.json");
}

#[test]
fn ids_of_operations_differ() {
    let document = of(&table());
    let mut ids = BTreeSet::new();
    let paths = document["paths"].as_object().unwrap().values();
    for operation in paths.flat_map(|path| path.as_object().unwrap().values()) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} stands twice");
    }
}

#[test]
fn the_committed_description_is_current() {
    let written = include_str!("../../../../docs/openapi.json");
    assert!(
        written == openapi(),
        "docs/openapi.json is out of date; generate it again: cargo run --bin redrive -- openapi > docs/openapi.json"
    );
}

#[test]
fn the_page_has_every_endpoint_and_every_shape_and_nothing_from_elsewhere() {
    let (document, page) = (of(&table()), super::page::page());
    let paths = document["paths"].as_object().unwrap().values();
    for operation in paths.flat_map(|path| path.as_object().unwrap().values()) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    let ids: BTreeSet<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for target in page.split(" href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(target), "a link to #{target}, which is not there");
    }
    for foreign in ["<script", "src=", "style=\"", "href=\"http", "@import", "url("] {
        assert!(!page.contains(foreign) && !super::page::STYLE.contains(foreign), "{foreign}");
    }
}
