//! Endpoints, group by group: what each takes, answers and fails with.

use super::html::{escape, escaped, inline, prose, slug};
use super::shapes::{push_members, type_of};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Writes the list of all endpoints, as links.
pub(super) fn push_index(page: &mut String, document: &Value) {
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = escape(&tag["name"]);
        let _ = write!(page, "<a class=\"group\" href=\"#{}\">{name}</a>\n<ul>\n", slug(&name));
        for (_, operation) in of_group(document, &tag["name"]) {
            let (id, summary) = (escape(&operation["operationId"]), inline(text(&operation["summary"])));
            let _ = writeln!(page, "<li><a href=\"#{id}\">{summary}</a></li>");
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<a class=\"group\" href=\"#shapes\">Shapes</a>\n");
}

/// Writes all endpoints.
pub(super) fn push_all(page: &mut String, document: &Value) {
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = escape(&tag["name"]);
        let _ = writeln!(page, "<section id=\"{}\">\n<h2>{name}</h2>\n{}", slug(&name), prose(&tag["description"]));
        for (place, operation) in of_group(document, &tag["name"]) {
            push(page, document, place, operation);
        }
        page.push_str("</section>\n");
    }
}

/// The path and the method of an endpoint.
type Place<'d> = (&'d str, &'d str);

/// The endpoints of a group.
fn of_group<'d>(document: &'d Value, group: &'d Value) -> impl Iterator<Item = (Place<'d>, &'d Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| ((path.as_str(), method.as_str()), operation))
    });
    all.filter(move |(_, operation)| operation["tags"][0] == *group)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Writes an endpoint, closed. What a link leads to is inside, so that browsers open it.
fn push(page: &mut String, document: &Value, (path, method): Place<'_>, operation: &Value) {
    let (id, summary) = (escape(&operation["operationId"]), inline(text(&operation["summary"])));
    let _ = write!(
        page,
        "<details class=\"operation\">\n<summary><span class=\"method {method}\">{}</span> \
         <code class=\"path\">{}</code> <span class=\"what\">{summary}</span></summary>\n<div id=\"{id}\">\n",
        method.to_uppercase(),
        escaped(path),
    );
    if let Some(about) = operation.get("description") {
        page.push_str(&prose(about));
    }
    push_parameters(page, document, operation);
    let json = |content: &'_ Value| content.as_object().and_then(|types| types.values().next()).cloned();
    if let Some(body) = operation.get("requestBody") {
        let may = if body["required"] == true { "" } else { ", which may be left out" };
        let schema = json(&body["content"]).unwrap_or_default()["schema"].clone();
        let _ = writeln!(page, "<h3>Body: {}{may}</h3>", type_of(&schema));
        push_members(page, document, &schema);
    }
    push_answers(page, document, operation["responses"].as_object());
    page.push_str("</div>\n</details>\n");
}

fn push_parameters(page: &mut String, document: &Value, operation: &Value) {
    let listed: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    if listed.is_empty() {
        return;
    }
    page.push_str("<h3>Parameters</h3>\n<dl>\n");
    for parameter in listed {
        let parameter = resolved(document, parameter);
        let (name, place) = (escape(&parameter["name"]), escape(&parameter["in"]));
        let _ = writeln!(
            page,
            "<dt><code>{name}</code> <span class=\"soft\">{place}, {}</span></dt><dd>{}</dd>",
            type_of(&parameter["schema"]),
            inline(text(&parameter["description"])),
        );
    }
    page.push_str("</dl>\n");
}

fn push_answers(page: &mut String, document: &Value, responses: Option<&Map<String, Value>>) {
    let (own, errors): (Vec<_>, Vec<_>) =
        responses.into_iter().flatten().partition(|(_, response)| response.get("$ref").is_none());
    page.push_str("<h3>Answers</h3>\n<dl>\n");
    for (status, response) in own {
        let content = response["content"].as_object().and_then(|types| types.iter().next());
        let body = match content {
            None => "nothing".to_owned(),
            Some((_, content)) if content.get("schema").is_some() => type_of(&content["schema"]),
            Some((media, _)) => format!("<code>{}</code>", escaped(media)),
        };
        let _ = writeln!(page, "<dt><code>{}</code></dt><dd>{body}</dd>", escaped(status));
    }
    page.push_str("</dl>\n<details class=\"errors\">\n<summary>Errors</summary>\n<dl>\n");
    for (status, response) in errors {
        let described = prose(&resolved(document, response)["description"]);
        let _ = writeln!(page, "<dt><code>{}</code></dt><dd>{described}</dd>", escaped(status));
    }
    page.push_str("</dl>\n</details>\n");
}

/// What a reference leads to, or the value itself.
pub(super) fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}
