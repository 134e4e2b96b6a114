//! JSON with positions: definitions are read from it, so that a problem can name its line and column.

use serde_json::{Map, Number, Value};
use std::collections::HashSet;

/// How deep arrays and objects may nest. Everything that walks a document relies on it.
pub(crate) const MAX_DEPTH: usize = 64;

/// A value and where it starts in the text.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) value: Node,
}

impl Node {
    /// The value without its positions.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::String(text) => Value::String(text.clone()),
            Kind::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Object(members) => {
                let members = members.iter().map(|member| (member.name.clone(), member.value.to_value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// What it is, for messages: short values as they are written, others by their kind.
    pub(crate) fn shown(&self) -> String {
        match &self.kind {
            Kind::Array(items) if items.is_empty() => "an empty array".to_owned(),
            Kind::Array(_) => "an array".to_owned(),
            Kind::Object(members) if members.is_empty() => "an empty object".to_owned(),
            Kind::Object(_) => "an object".to_owned(),
            Kind::String(text) if text.chars().count() > 60 => "a long string".to_owned(),
            _ => self.to_value().to_string(),
        }
    }
}

/// What keeps a text from being JSON, and where.
#[derive(Debug, PartialEq)]
pub(crate) struct Malformed {
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// A document, and every name that an object has twice.
pub(crate) fn parse(text: &str) -> Result<(Node, Vec<Malformed>), Malformed> {
    let mut parser = Parser { text, at: 0, depth: 0, duplicates: Vec::new() };
    let node = parser.value()?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(parser.fault("the document has ended before this; remove what follows"));
    }
    Ok((node, parser.duplicates))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    duplicates: Vec<Malformed>,
}

impl Parser<'_> {
    fn fault(&self, message: impl Into<String>) -> Malformed {
        Malformed { at: self.at, message: message.into() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Node, Malformed> {
        self.blanks();
        let at = self.at;
        let kind = match self.peek() {
            None => return Err(self.fault("the document ends where a value is expected")),
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => self.word()?,
        };
        Ok(Node { at, kind })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Kind, Malformed>) -> Result<Kind, Malformed> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(format!("more than {MAX_DEPTH} arrays and objects are inside of each other")));
        }
        self.depth += 1;
        self.at += 1;
        let kind = read(self);
        self.depth -= 1;
        kind
    }

    /// Whether the closing character comes next, which is then read.
    fn closes(&mut self, close: u8) -> bool {
        self.blanks();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// After an element: whether another one follows.
    fn continues(&mut self, close: u8) -> Result<bool, Malformed> {
        if self.closes(close) {
            return Ok(false);
        }
        if self.peek() != Some(b',') {
            return Err(self.fault(format!("a comma or {:?} is expected", char::from(close))));
        }
        self.at += 1;
        Ok(true)
    }

    fn array(&mut self) -> Result<Kind, Malformed> {
        let mut items = Vec::new();
        if self.closes(b']') {
            return Ok(Kind::Array(items));
        }
        loop {
            items.push(self.value()?);
            if !self.continues(b']')? {
                return Ok(Kind::Array(items));
            }
        }
    }

    fn object(&mut self) -> Result<Kind, Malformed> {
        let (mut members, mut names) = (Vec::new(), HashSet::new());
        if self.closes(b'}') {
            return Ok(Kind::Object(members));
        }
        loop {
            self.blanks();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fault("the name of a member is expected, in double quotes"));
            }
            let name = self.string()?;
            if !names.insert(name.clone()) {
                let message = format!("the object has the member {name:?} already; a name is allowed once");
                self.duplicates.push(Malformed { at, message });
            }
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.fault("a colon is expected after the name of a member"));
            }
            self.at += 1;
            let value = self.value()?;
            members.push(Member { name, at, value });
            if !self.continues(b'}')? {
                return Ok(Kind::Object(members));
            }
        }
    }

    fn string(&mut self) -> Result<String, Malformed> {
        let start = self.at;
        let mut at = start + 1;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at) {
                None => return Err(self.fault("the string has no closing quote")),
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
            }
        }
        let token = self.text.get(start..=at).ok_or_else(|| self.fault("the string is malformed"))?;
        let text = serde_json::from_str(token).map_err(|_| {
            self.fault("the string has a control character or an unknown escape; use \\n, \\t or \\u0000")
        })?;
        self.at = at + 1;
        Ok(text)
    }

    fn number(&mut self) -> Result<Kind, Malformed> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let number: Number = serde_json::from_str(&rest[..end])
            .map_err(|_| self.fault(format!("{} is not a number that JSON allows", &rest[..end])))?;
        self.at += end;
        Ok(Kind::Number(number))
    }

    fn word(&mut self) -> Result<Kind, Malformed> {
        let rest = &self.text[self.at..];
        for (word, kind) in [("null", Kind::Null), ("true", Kind::Bool(true)), ("false", Kind::Bool(false))] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(kind);
            }
        }
        let found = rest.chars().next().unwrap_or(' ');
        Err(self.fault(format!("a value is expected, and {found:?} starts none")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_that_were_written() {
        let text = r#" {"a": [1, -2.5e3, "x\né\"", true, false, null], "b": {}, "c": []} "#;
        let (node, duplicates) = parse(text).unwrap_or_else(|fault| panic!("{fault:?}"));
        assert_eq!(node.to_value(), serde_json::from_str::<Value>(text).unwrap_or_default());
        assert!(duplicates.is_empty());
    }

    #[test]
    fn a_fault_names_its_place() {
        for (text, at) in [
            ("", 0),
            ("{", 1),
            ("{a: 1}", 1),
            ("[1 2]", 3),
            ("[1,]", 3),
            ("{\"a\" 1}", 5),
            ("\"abc", 0),
            ("\"\\q\"", 0),
            ("01", 0),
            ("nil", 0),
            ("1 1", 2),
        ] {
            assert_eq!(parse(text).map(|_| ()).map_err(|fault| fault.at), Err(at), "{text}");
        }
    }

    #[test]
    fn names_that_occur_twice_are_all_reported() {
        let (_, duplicates) = parse(r#"{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}"#).unwrap_or_else(|f| panic!("{f:?}"));
        assert_eq!(duplicates.iter().map(|fault| fault.at).collect::<Vec<_>>(), [23, 32]);
    }

    #[test]
    fn deep_documents_are_refused_and_do_not_overflow() {
        let text = "[".repeat(100_000);
        assert_eq!(parse(&text).map(|_| ()).map_err(|fault| fault.at), Err(MAX_DEPTH));
    }
}
