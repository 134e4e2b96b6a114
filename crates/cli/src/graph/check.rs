//! `redrive graph check`.

use crate::input::Document;
use crate::policy;
use crate::{exit::Failed, output};
use redrive_exosphere::{Template, check, read_template};
use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

pub(super) fn run(document: &Document, json: bool) -> Result<(), Failed> {
    let value = document.read()?;
    let template = match read_template(&value) {
        Ok((template, _)) => template,
        Err(errors) => {
            let problems = errors.iter().map(|error| (error.pointer(), error.message().to_owned()));
            return Err(refused(problems.collect(), json));
        }
    };
    let reasons = check(&template);
    if !reasons.is_empty() {
        return Err(refused(reasons.into_iter().map(|reason| (String::new(), reason)).collect(), json));
    }
    let retry = Value::Object(template.retry_policy.clone());
    let policy = policy::check::Checked::of(Dialect::Exosphere, &retry).map_err(Failed::invalid)?;
    if json {
        return output::json(&json!({
            "valid": true, "nodes": template.nodes.len(), "triggers": template.triggers.len(),
            "policy": policy.policy, "warnings": policy.warnings,
        }));
    }
    output::text(&format!("{}retries: {}", headline(&template), policy.text()))
}

fn headline(template: &Template) -> String {
    let count = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let mut text = format!("valid graph: {}", count(template.nodes.len(), "node", "nodes"));
    if let Some(root) = template.root() {
        text.push_str(&format!(", the first is \"{}\"", template.nodes[root].identifier));
    }
    let unites = template.nodes.iter().filter(|node| node.unites.is_some()).count();
    for (number, one, many) in
        [(unites, "unites others", "unite others"), (template.triggers.len(), "cron trigger", "cron triggers")]
    {
        if number > 0 {
            text.push_str(&format!(", {}", count(number, one, many)));
        }
    }
    text + "\n"
}

/// Reports everything that is wrong, each with its place.
fn refused(problems: Vec<(String, String)>, json: bool) -> Failed {
    if json {
        let errors: Vec<Value> =
            problems.iter().map(|(path, message)| json!({ "path": path, "message": message })).collect();
        let answer = json!({ "valid": false, "errors": errors });
        return output::json(&answer).err().unwrap_or(Failed::already_reported());
    }
    let count = if problems.len() == 1 { "one problem".to_owned() } else { format!("{} problems", problems.len()) };
    let line = |(path, message): &(String, String)| match path.is_empty() {
        true => format!("\n  {message}"),
        false => format!("\n  {path}: {message}"),
    };
    let lines: String = problems.iter().map(line).collect();
    Failed::invalid(format!("not a valid graph, {count}:{lines}"))
}
