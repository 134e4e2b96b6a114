//! Schemas, as lists of members.

use super::html::{escaped, inline};
use super::operations::resolved;
use serde_json::Value;
use std::fmt::Write as _;

/// Writes all shapes that have a name.
pub(super) fn push_all(page: &mut String, document: &Value) {
    page.push_str("<section id=\"shapes\">\n<h2>Shapes</h2>\n");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let name = escaped(name);
        let _ = writeln!(page, "<article id=\"shape-{name}\">\n<h3>{name}</h3>");
        if let Some(about) = schema["description"].as_str() {
            let _ = writeln!(page, "<p>{}</p>", inline(about));
        }
        if schema.get("properties").is_none() {
            let _ = writeln!(page, "<p class=\"soft\">{}</p>", type_of(schema));
        }
        push_members(page, document, schema);
        page.push_str("</article>\n");
    }
    page.push_str("</section>\n");
}

/// Writes the members of an object; of one that is made of several, those that have no name of their own.
pub(super) fn push_members(page: &mut String, document: &Value, schema: &Value) {
    let schema = resolved(document, schema);
    for part in schema["allOf"].as_array().into_iter().flatten().filter(|part| part.get("$ref").is_none()) {
        push_members(page, document, part);
    }
    let Some(members) = schema["properties"].as_object().filter(|members| !members.is_empty()) else { return };
    page.push_str("<dl>\n");
    for (name, member) in members {
        let is_required = schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
        let required = if is_required { " <span class=\"required\">required</span>" } else { "" };
        let about = member["description"].as_str().map(inline).unwrap_or_default();
        let _ = write!(
            page,
            "<dt><code>{}</code> <span class=\"soft\">{}</span>{required}</dt><dd>{about}",
            escaped(name),
            type_of(member)
        );
        let inner = if member["type"] == "array" { &member["items"] } else { member };
        if inner.get("$ref").is_none() {
            push_members(page, document, inner);
        }
        page.push_str("</dd>\n");
    }
    page.push_str("</dl>\n");
}

/// A schema in a few words, with links to those that have a name.
pub(super) fn type_of(schema: &Value) -> String {
    let joined = |parts: &Value, word: &str| -> String {
        let parts: Vec<String> = parts.as_array().into_iter().flatten().map(type_of).collect();
        parts.join(word)
    };
    let has = |key: &str| schema.get(key).is_some();
    match () {
        () if has("$ref") => {
            let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            format!("<a href=\"#shape-{0}\">{0}</a>", escaped(name))
        }
        () if has("enum") => {
            let values: Vec<String> = schema["enum"].as_array().into_iter().flatten().map(Value::to_string).collect();
            values.iter().map(|value| format!("<code>{}</code>", escaped(value))).collect::<Vec<_>>().join(" or ")
        }
        () if has("anyOf") => joined(&schema["anyOf"], " or "),
        () if has("allOf") => joined(&schema["allOf"], " with "),
        () if schema["type"] == "array" => format!("array of {}", type_of(&schema["items"])),
        () => simple(schema),
    }
}

fn simple(schema: &Value) -> String {
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any value".to_owned(),
    };
    let bound = |key: &str, word: &str| {
        schema.get(key).filter(|bound| **bound != 0).map(|bound| format!(" {word} {bound}")).unwrap_or_default()
    };
    let least = bound("minimum", "from");
    let most = bound("maximum", if least.is_empty() { "up to" } else { "to" });
    let format = schema["format"].as_str().map(|format| format!(" ({format})")).unwrap_or_default();
    escaped(&format!("{name}{least}{most}{format}"))
}
