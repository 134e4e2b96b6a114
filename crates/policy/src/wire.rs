//! Text into values, strictly: what JSON leaves open is refused here.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The largest document that is read, in bytes. A policy of this size is a mistake, or an attack.
pub const MAX_BYTES: usize = 1 << 20;

/// A JSON value whose objects have no key twice and whose numbers are finite.
///
/// It deserializes from any self-describing format, so that YAML and TOML obey the same rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Strict(pub Value);

/// A document that is not well-formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, from 1; 0 where no place can be named.
    pub line: usize,
    /// The column, from 1; 0 where no place can be named.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.message);
        }
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for SyntaxError {}

/// Reads a JSON document.
///
/// # Errors
/// The first place at which the text is not JSON, repeats a key, nests deeper than 128 levels or
/// holds a number that no `f64` can carry; or that it is longer than [`MAX_BYTES`].
pub fn parse_json(text: &str) -> Result<Value, SyntaxError> {
    if text.len() > MAX_BYTES {
        return Err(too_large(text.len()));
    }
    serde_json::from_str::<Strict>(text).map(|strict| strict.0).map_err(|error| {
        let full = error.to_string();
        let (line, column) = (error.line(), error.column());
        // The message of serde_json ends with the place, which stands in fields of its own here.
        let place = format!(" at line {line} column {column}");
        let message = full.strip_suffix(&place).unwrap_or(&full).to_owned();
        SyntaxError { line, column, message }
    })
}

/// The refusal of a document of `bytes` bytes.
#[must_use]
pub fn too_large(bytes: usize) -> SyntaxError {
    let message = format!("the document has {bytes} bytes; at most {MAX_BYTES} are allowed for a policy");
    SyntaxError { line: 0, column: 0, message }
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a boolean, a number, a string, an array or an object")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom(format!("found {value}; only finite numbers are allowed")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom(format!(
                    "the key \"{key}\" stands twice in one object; keep one of them"
                )));
            }
            let Strict(value) = fields.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_error_has_line_and_column() {
        let error = parse_json("{\n  \"a\": 1,,\n}").unwrap_err();
        assert_eq!((error.line, error.column), (2, 10));
        assert!(!error.message.contains("at line"), "{error}");
    }

    #[test]
    fn a_repeated_key_is_refused_at_any_depth() {
        let error = parse_json(r#"{"a": [{"b": 1, "b": 2}]}"#).unwrap_err();
        assert!(error.message.contains("\"b\" stands twice"), "{error}");
        let error = parse_json(r#"{"look at line 1": 1, "look at line 1": 2}"#).unwrap_err();
        assert!(error.message.starts_with("the key \"look at line 1\" stands twice"), "{error}");
    }

    #[test]
    fn numbers_beyond_f64_deep_nesting_and_huge_documents_are_refused() {
        assert!(parse_json("1e400").unwrap_err().message.contains("out of range"));
        assert!(parse_json(&"[".repeat(10_000)).unwrap_err().message.contains("recursion"));
        let huge = " ".repeat(MAX_BYTES + 1);
        assert!(parse_json(&huge).unwrap_err().message.contains("at most"));
    }
}
