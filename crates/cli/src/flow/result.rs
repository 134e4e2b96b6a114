//! Results for people.

use crate::output::word;
use serde_json::Value;

/// A Result: the value of a success, or a failure with those that it followed.
pub(super) fn shown(result: &Value) -> String {
    if result["type"] == "success" {
        return format!("success\n{:#}\n", result["value"]);
    }
    let mut text = String::new();
    let (mut link, mut lead) = (result, "");
    while link.is_object() {
        text.push_str(&format!("{lead}{}\n", failure(link)));
        if !link["details"].is_null() {
            text.push_str(&format!("    details: {}\n", link["details"]));
        }
        link = &link["previous"];
        lead = "  after ";
    }
    text
}

/// A failure in one line.
pub(super) fn failure(failure: &Value) -> String {
    let message = failure["message"].as_str().map_or_else(String::new, |message| format!(": {message}"));
    format!("{} {}{message}", word(&failure["type"]), word(&failure["code"]))
}
