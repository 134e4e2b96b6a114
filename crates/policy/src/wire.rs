//! Text into values, strictly and exactly: what JSON leaves open is refused here, and a number is the
//! nearest `f64` to its digits, whichever features of `serde_json` a program is built with.

mod numbers;

use numbers::Numbers;
use serde::de::{self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
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
    /// The line, from 1; 0 where the position is unknown.
    pub line: usize,
    /// The column, from 1; 0 where the position is unknown.
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
/// The first position at which the text is not JSON, repeats a key, nests deeper than 128 levels or
/// holds a number that no `f64` can carry; or that it is longer than [`MAX_BYTES`].
pub fn parse_json(text: &str) -> Result<Value, SyntaxError> {
    if text.len() > MAX_BYTES {
        return Err(too_large(text.len()));
    }
    let numbers = RefCell::new(Numbers::of(text));
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = StrictVisitor { numbers: Some(&numbers) }.deserialize(&mut deserializer);
    value.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| syntax_error(&error))
}

/// Reads a policy, a history or a verdict from its JSON, bit for bit as it was written.
///
/// `serde_json::from_str` does the same with its feature `float_roundtrip`. Without it, a number of 16 or 17
/// digits, such as a delay with jitter, can come back one unit in the last place off.
///
/// # Errors
/// As for [`parse_json`]; or what is missing or wrong in the document, without a line and a column.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, SyntaxError> {
    serde_json::from_value(parse_json(text)?).map_err(|error| syntax_error(&error))
}

fn syntax_error(error: &serde_json::Error) -> SyntaxError {
    let full = error.to_string();
    let (line, column) = (error.line(), error.column());
    // The message of serde_json ends with the position, which has fields of its own here.
    let position = format!(" at line {line} column {column}");
    let message = full.strip_suffix(&position).unwrap_or(&full).to_owned();
    SyntaxError { line, column, message }
}

/// The refusal of a document of `bytes` bytes.
#[must_use]
pub fn too_large(bytes: usize) -> SyntaxError {
    let message = format!("the document has {bytes} bytes; at most {MAX_BYTES} are allowed for a policy");
    SyntaxError { line: 0, column: 0, message }
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StrictVisitor { numbers: None }.deserialize(deserializer).map(Self)
    }
}

/// Builds the value. Where the text is at hand, its numbers are read from there.
#[derive(Clone, Copy)]
struct StrictVisitor<'t> {
    numbers: Option<&'t RefCell<Numbers<'t>>>,
}

impl StrictVisitor<'_> {
    /// The digits of the number that is being visited.
    fn digits(&self) -> Option<&str> {
        self.numbers?.borrow_mut().next()
    }
}

impl<'de> DeserializeSeed<'de> for StrictVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a boolean, a number, a string, an array or an object")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        self.digits();
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        self.digits();
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let value = self.digits().and_then(|digits| digits.parse().ok()).unwrap_or(value);
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
        while let Some(item) = items.next_element_seed(self)? {
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
            object.insert(key, fields.next_value_seed(self)?);
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

    /// Draws with jitter have 16 or 17 digits, of which a reader that rounds twice gets every few wrong.
    #[test]
    fn a_number_of_many_digits_is_read_bit_for_bit() {
        let mut rng = fastrand::Rng::with_seed(11);
        for _ in 0..10_000 {
            let number = rng.f64() * 10_f64.powi(rng.i32(-8..14));
            let text = format!("{{\"\\\"7.5\": [-1, {{\"a1\": \"2\", \"b\": {number:?}}}, 3e2], \"c\": {number:?} }}");
            let value = parse_json(&text).unwrap();
            let found = [&value["\"7.5"][1]["b"], &value["c"], &value["\"7.5"][2]].map(|found| found.as_f64().unwrap());
            assert_eq!(found.map(f64::to_bits), [number, number, 300.0].map(f64::to_bits), "{text}");
        }
    }

    #[test]
    fn what_follows_a_document_is_refused() {
        assert!(parse_json("{} {}").unwrap_err().message.contains("trailing"));
        let error = from_json::<crate::Span>("\"a\"").unwrap_err();
        assert_eq!((error.line, error.column), (0, 0));
        assert!(error.message.contains("expected f64"), "{error}");
    }
}
