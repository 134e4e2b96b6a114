//! What the last failed attempt of a job left behind: the rest of its message, its standard error, its stack trace.

use serde_json::Value;

/// How many lines of each are shown, the last ones.
const LINES: usize = 40;
/// How many characters of a line are shown.
const WIDTH: usize = 400;

/// Where programs put a stack trace: first the field of Open Job Spec, then those of libraries.
const TRACES: [&str; 5] = ["backtrace", "traceback", "stack_trace", "stacktrace", "stack"];

/// The last failed attempt in its own words; empty where it left no more than one line.
pub(super) fn of(job: &Value) -> String {
    let Some(error) = job["errors"].as_array().and_then(|errors| errors.last()) else { return String::new() };
    let details = &error["details"];
    let attempt = &error["attempt"];
    let mut out = String::new();
    let message = error["message"].as_str().filter(|message| message.lines().count() > 1).map(str::to_owned);
    let stderr = details["stderr"].as_str().map(str::to_owned);
    let trace = TRACES.iter().find_map(|key| text(&error[*key]).or_else(|| text(&details[*key])));
    for (name, text) in [("message", message), ("standard error", stderr), ("stack trace", trace)] {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            out.push_str(&format!("\n{name} of failed attempt {attempt}:\n{}", indented(&text)));
        }
    }
    out
}

/// A text, or a list of lines.
fn text(value: &Value) -> Option<String> {
    let lines = value.as_array().map(|lines| lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"));
    value.as_str().map(str::to_owned).or(lines)
}

fn indented(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(LINES);
    let mut out = match left_out {
        0 => String::new(),
        count => format!("    … {count} lines before these; --json shows all\n"),
    };
    for line in &lines[left_out..] {
        match line.char_indices().nth(WIDTH) {
            Some((end, _)) => out.push_str(&format!("    {}…\n", &line[..end])),
            None => out.push_str(&format!("    {line}\n")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::of;
    use serde_json::json;

    #[test]
    fn the_end_of_a_long_standard_error_is_shown() {
        let stderr: Vec<String> = (1..=50).map(|line| format!("line {line}")).collect();
        let error = json!({ "attempt": 2, "message": "line 50", "details": { "stderr": stderr.join("\n") } });
        let shown = of(&json!({ "errors": [{ "message": "older" }, error] }));
        assert!(shown.starts_with("\nstandard error of failed attempt 2:\n    … 10 lines before these"), "{shown}");
        assert!(shown.contains("\n    line 11\n") && shown.ends_with("    line 50\n"), "{shown}");
    }

    #[test]
    fn a_stack_trace_is_found_where_libraries_put_it() {
        for error in [
            json!({ "attempt": 1, "backtrace": ["a.py:1", "b.py:2"] }),
            json!({ "attempt": 1, "details": { "traceback": "a.py:1\nb.py:2\n" } }),
        ] {
            let shown = of(&json!({ "errors": [error] }));
            assert_eq!(shown, "\nstack trace of failed attempt 1:\n    a.py:1\n    b.py:2\n");
        }
        assert_eq!(of(&json!({ "errors": [{ "attempt": 1, "message": "one line" }] })), "");
        assert_eq!(of(&json!({})), "");
    }
}
