//! Text as HTML.

use serde_json::Value;

/// A text, or nothing where the value is none, with everything escaped that means something in content and in quoted
/// attributes.
pub(super) fn escape(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

/// The same of a text.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A text with code between backticks, and words of weight between pairs of asterisks.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (place, part) in escaped(text).split('`').enumerate() {
        match place % 2 {
            1 => out.push_str(&format!("<code>{part}</code>")),
            _ => {
                for (place, part) in part.split("**").enumerate() {
                    out.push_str(&if place % 2 == 1 { format!("<strong>{part}</strong>") } else { part.to_owned() });
                }
            }
        }
    }
    out
}

/// Paragraphs, which empty lines divide.
pub(super) fn prose(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.split("\n\n").map(|paragraph| format!("<p>{}</p>\n", inline(&paragraph.replace('\n', " ")))).collect()
}

/// A text as a part of an id.
pub(super) fn slug(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text_and_marks_become_markup() {
        assert_eq!(escaped("<a href=\"'&\">"), "&lt;a href=&quot;&#39;&amp;&quot;&gt;");
        assert_eq!(inline("**Keys.** `a<b` and *c*"), "<strong>Keys.</strong> <code>a&lt;b</code> and *c*");
        assert_eq!(prose(&"one\ntwo\n\nthree".into()), "<p>one two</p>\n<p>three</p>\n");
        assert_eq!(slug("Dead letters"), "dead-letters");
    }
}
