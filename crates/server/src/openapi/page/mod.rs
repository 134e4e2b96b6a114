//! The description as a page for readers: HTML and one style sheet, no script, and nothing from elsewhere.

mod html;
mod operations;
mod shapes;

use super::document::of;
use crate::app::endpoints;
use html::{escape, prose};
use std::fmt::Write as _;
use std::sync::LazyLock;

/// How it looks: light, or dark where the reader has it so; wide, or on a phone.
pub(super) const STYLE: &str = include_str!("style.css");

/// The page. It is the same for every server of this version.
pub(super) fn page() -> &'static str {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        let (_, table) = endpoints().finish(crate::ojs::no_such_path);
        written(&of(&table))
    });
    &PAGE
}

fn written(document: &serde_json::Value) -> String {
    let info = &document["info"];
    let (title, version) = (escape(&info["title"]), escape(&info["version"]));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}: the HTTP interface</title>\n\
         <link rel=\"stylesheet\" href=\"/docs/style.css\">\n</head>\n<body>\n<nav>\n"
    );
    operations::push_index(&mut page, document);
    // Writing into a text cannot fail.
    let _ = write!(
        page,
        "</nav>\n<main>\n<header>\n<h1>The HTTP interface of {title}</h1>\n<p class=\"soft\">Version {version}. \
         The same for programs: <a href=\"/openapi.json\">openapi.json</a>, in the form of OpenAPI 3.1.</p>\n{}</header>\n",
        prose(&info["description"])
    );
    operations::push_all(&mut page, document);
    shapes::push_all(&mut page, document);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}
