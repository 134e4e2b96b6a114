//! JSON in its one canonical form (RFC 8785), with strings in Unicode normalization form C, so that equal values have
//! equal bytes.
//!
//! Whole numbers that a double cannot hold keep their digits: rounded, ids that differ would become the same.

use crate::json::items;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use unicode_normalization::UnicodeNormalization;

/// The largest whole number up to which a double has all.
const EXACT: i64 = 1 << 53;

/// Writes a value that has been checked to be JSON.
pub(super) fn push(out: &mut Vec<u8>, value: &RawValue) {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'[') => push_array(out, &items(value).unwrap_or_default()),
        Some(b'{') => {
            let Object(members) = serde_json::from_str(text).unwrap_or_default();
            push_object(out, members);
        }
        Some(b'"') => match serde_json::from_str::<Cow<'_, str>>(text) {
            Ok(string) => push_string(out, &normalized(&string)),
            Err(_) => out.extend_from_slice(text.as_bytes()),
        },
        Some(b'-' | b'0'..=b'9') => push_number(out, text),
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

/// Writes an object of these members, in the order of their names.
pub(super) fn push_object(out: &mut Vec<u8>, members: Vec<(Cow<'_, str>, &RawValue)>) {
    let named = members.into_iter().map(|(name, value)| {
        let name = normalized(&name);
        (name.encode_utf16().collect::<Vec<u16>>(), name, value)
    });
    let mut members: Vec<_> = named.collect();
    members.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    out.push(b'{');
    for (index, (_, name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_string(out, name);
        out.push(b':');
        push(out, value);
    }
    out.push(b'}');
}

fn push_array(out: &mut Vec<u8>, items: &[&RawValue]) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push(out, item);
    }
    out.push(b']');
}

/// Writes a string that is normalized.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    // Writing into a vector cannot fail.
    let _ = serde_json::to_writer(out, text);
}

fn normalized(text: &str) -> String {
    text.nfc().collect()
}

fn push_number(out: &mut Vec<u8>, text: &str) {
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let number = text.parse::<f64>().unwrap_or(f64::NAN);
    let exact = text.parse::<i64>().is_ok_and(|number| (-EXACT..=EXACT).contains(&number));
    if !number.is_finite() || (is_whole && !exact) {
        out.extend_from_slice(text.as_bytes());
    } else {
        out.extend_from_slice(shortest(number).as_bytes());
    }
}

/// A number as ECMAScript writes it.
fn shortest(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let sign = if number < 0.0 { "-" } else { "" };
    // Where the point is, counted from the first digit.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    match point {
        _ if count <= point && point <= 21 => format!("{sign}{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
            format!("{sign}{whole}.{fraction}")
        }
        -5..=0 => format!("{sign}0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{sign}{first}{dot}{rest}e{}{}", if point > 0 { "+" } else { "-" }, (point - 1).abs())
        }
    }
}

/// An object with any number of members.
#[derive(Default)]
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            all.push((Cow::Owned(name), members.next_value()?));
        }
        Ok(Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        let mut out = Vec::new();
        push(&mut out, serde_json::from_str(text).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_rfc_8785_lists_them() {
        for (number, written) in [
            (0.0, "0"),
            (-0.0, "0"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9007199254740992.0, "9007199254740992"),
            (295147905179352830000.0, "295147905179352830000"),
            (9.999999999999997e22, "9.999999999999997e+22"),
            (1e23, "1e+23"),
            (1e21, "1e+21"),
            (999999999999999700000.0, "999999999999999700000"),
            (1e-5, "0.00001"),
            (0.000001, "0.000001"),
            (1e-7, "1e-7"),
            (333333333.3333333, "333333333.3333333"),
            (-1.5, "-1.5"),
        ] {
            assert_eq!(shortest(number), written);
        }
    }

    #[test]
    fn equal_values_have_equal_bytes() {
        assert_eq!(canonical(r#" { "b" : [ 1.0 , 1e2 , -0 ], "a" : "\u00e9" } "#.trim()), r#"{"a":"é","b":[1,100,0]}"#);
        // Composed and decomposed.
        assert_eq!(canonical("{\"e\u{301}\": \"e\u{301}\"}"), canonical("{\"\u{e9}\": \"\\u00e9\"}"));
        assert_eq!(canonical(r#"["\u000f\n\"\/", null, true]"#), r#"["\u000f\n\"/",null,true]"#);
    }

    #[test]
    fn names_are_sorted_by_utf_16_as_rfc_8785_has_it() {
        let unsorted = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        let sorted = canonical(unsorted);
        // U+FB33 is composed, and has no composed form in normalization form C.
        let values: Vec<char> = sorted.chars().filter(|c| "2345671".contains(*c)).collect();
        assert_eq!(values.len(), 8, "{sorted}");
        assert!(sorted.starts_with("{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7"), "{sorted}");
    }

    #[test]
    fn whole_numbers_beyond_a_double_stay_apart() {
        assert_ne!(canonical("9007199254740993"), canonical("9007199254740992"));
        assert_ne!(canonical("12345678901234567890"), canonical("12345678901234567891"));
        assert_eq!(canonical("12345678901234567890"), "12345678901234567890");
        assert_eq!(canonical("1e400"), "1e400");
    }
}
