//! The numbers of a JSON text as they are written, from the first to the last.

/// What is left of the text.
pub(super) struct Numbers<'t>(&'t str);

impl<'t> Numbers<'t> {
    /// The numbers of a text. Where it is not JSON, they mean nothing.
    pub(super) const fn of(text: &'t str) -> Self {
        Self(text)
    }
}

impl<'t> Iterator for Numbers<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        loop {
            let start = self.0.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            self.0 = &self.0[start..];
            if let Some(string) = self.0.strip_prefix('"') {
                self.0 = after_string(string)?;
                continue;
            }
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
            let end = self.0.find(|c| !is_part(c)).unwrap_or(self.0.len());
            let (number, rest) = self.0.split_at(end);
            self.0 = rest;
            return Some(number);
        }
    }
}

/// What follows a string whose opening quote is gone.
fn after_string(mut text: &str) -> Option<&str> {
    loop {
        let end = text.find(['"', '\\'])?;
        let escaped = text[end..].starts_with('\\');
        let mut rest = text[end + 1..].chars();
        if !escaped {
            return Some(rest.as_str());
        }
        rest.next()?;
        text = rest.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_between_strings_and_words() {
        let text = r#"{"a\"1": [0, -2.5e+3 ,true, "é\\", 4],"5":6E-7}"#;
        assert_eq!(Numbers::of(text).collect::<Vec<_>>(), ["0", "-2.5e+3", "4", "6E-7"]);
    }
}
