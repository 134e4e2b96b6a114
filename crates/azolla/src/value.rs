//! Values of the protocol as JSON, and JSON as values.

use crate::common::AnyValue;
use crate::common::any_value::Value;
use redrive_ojs::json::check_nested;
use serde_json::json;
use serde_json::value::RawValue;

/// A value as JSON text. A number that is not finite becomes 0, as clients know it; text that is no JSON, nests too
/// deep or has a number that no double can be becomes a string.
#[must_use]
pub fn json_of(value: Option<AnyValue>, nesting: usize) -> String {
    match value.and_then(|value| value.value) {
        None => "null".to_owned(),
        Some(Value::StringValue(text)) => json!(text).to_string(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::UintValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) if number.is_finite() => json!(number).to_string(),
        Some(Value::DoubleValue(_)) => "0.0".to_owned(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        Some(Value::JsonValue(text)) => json_text(&text, nesting).unwrap_or_else(|| json!(text).to_string()),
    }
}

/// A text where it is JSON that is not nested too deep, without blanks around it.
pub(crate) fn json_text(text: &str, nesting: usize) -> Option<String> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    check_nested(raw, nesting).ok().map(|()| raw.get().to_owned())
}

/// JSON text as a value: strings, flags and numbers have fields of their own, as far as all clients know them.
pub(crate) fn value_of(text: &str) -> AnyValue {
    let number = || text.parse().map(Value::IntValue).ok();
    let value = match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).ok().map(Value::StringValue),
        Some(b't') => Some(Value::BoolValue(true)),
        Some(b'f') => Some(Value::BoolValue(false)),
        Some(b'-' | b'0'..=b'9') => number().or_else(|| double_of(text)),
        _ => None,
    };
    AnyValue { value: Some(value.unwrap_or_else(|| Value::JsonValue(text.to_owned()))) }
}

/// A number with a fraction or an exponent. A whole number that is too large for its field stays JSON text: as a double
/// it would lose digits, and clients do not know the field for large ones.
fn double_of(text: &str) -> Option<Value> {
    let is_whole = text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    text.parse().ok().filter(|number: &f64| !is_whole && number.is_finite()).map(Value::DoubleValue)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(value: Value) -> Value {
        value_of(&json_of(Some(AnyValue { value: Some(value) }), 64)).value.unwrap()
    }

    #[test]
    fn section_5_words_and_numbers_come_back_in_their_fields_and_all_else_as_json() {
        for value in [
            Value::StringValue("a \"b\" é\n".to_owned()),
            Value::IntValue(i64::MIN),
            Value::IntValue(i64::MAX),
            Value::DoubleValue(0.1),
            Value::DoubleValue(-1e300),
            Value::DoubleValue(3.0),
            Value::BoolValue(true),
            Value::BoolValue(false),
            Value::JsonValue("null".to_owned()),
            Value::JsonValue("[1,2.50]".to_owned()),
            Value::JsonValue("{\"b\":1,\"a\":2}".to_owned()),
        ] {
            assert_eq!(round(value.clone()), value);
        }
        assert_eq!(round(Value::JsonValue(" \"text\" ".to_owned())), Value::StringValue("text".to_owned()));
        assert_eq!(json_of(None, 64), "null");
        assert_eq!(json_of(Some(AnyValue { value: None }), 64), "null");
        assert_eq!(round(Value::DoubleValue(f64::NAN)), Value::DoubleValue(0.0));
    }

    #[test]
    fn section_14_numbers_that_clients_have_no_field_for_are_json() {
        assert_eq!(round(Value::UintValue(7)), Value::IntValue(7));
        let large = u64::MAX.to_string();
        assert_eq!(round(Value::UintValue(u64::MAX)), Value::JsonValue(large.clone()));
        assert_eq!(round(Value::JsonValue(format!("-{large}0"))), Value::JsonValue(format!("-{large}0")));
    }

    #[test]
    fn text_that_is_no_json_becomes_a_string() {
        for text in ["", "{", "[1", "nul", "{'a':1}", "1e999"] {
            assert_eq!(round(Value::JsonValue(text.to_owned())), Value::StringValue(text.to_owned()));
        }
        let deep = "[".repeat(70) + &"]".repeat(70);
        assert_eq!(round(Value::JsonValue(deep.clone())), Value::StringValue(deep));
    }
}
