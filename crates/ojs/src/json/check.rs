//! Values that are stored unread are checked once: for repeated keys, nesting, and numbers and escapes that no reader
//! accepts.

use super::members::{Key, plain, twice};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// Checks a value of any shape, down to `deepest` levels; the reader underneath stops at 127.
///
/// # Errors
/// What is wrong with it, in one sentence.
pub fn check_nested(value: &RawValue, deepest: usize) -> Result<(), String> {
    let mut deserializer = serde_json::Deserializer::from_str(value.get());
    Check { left: deepest, deepest }.deserialize(&mut deserializer).map_err(|error| plain(&error))
}

#[derive(Clone, Copy)]
struct Check {
    left: usize,
    deepest: usize,
}

impl Check {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1).ok_or_else(|| {
            E::custom(format!("nested more than {} levels deep; flatten it, or raise limits.nesting", self.deepest))
        })?;
        Ok(Self { left, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Check {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut seen = Seen::default();
        while let Some(Key(key)) = fields.next_key()? {
            if let Some(key) = seen.repeated(key) {
                return Err(de::Error::custom(twice(&key)));
            }
            fields.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// The keys of one object: a list while there are few of them.
#[derive(Default)]
struct Seen<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Seen<'a> {
    /// The key, if it was seen before.
    fn repeated(&mut self, key: Cow<'a, str>) -> Option<Cow<'a, str>> {
        const FEW: usize = 16;
        if self.many.is_empty() {
            if self.few.contains(&key) {
                return Some(key);
            }
            if self.few.len() < FEW {
                self.few.push(key);
                return None;
            }
            self.many.extend(self.few.drain(..));
        }
        if self.many.contains(&key) {
            return Some(key);
        }
        self.many.insert(key);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, deepest: usize) -> Result<(), String> {
        check_nested(serde_json::from_str(text).unwrap(), deepest)
    }

    #[test]
    fn nesting_is_counted_exactly() {
        assert_eq!(check("[[1]]", 2), Ok(()));
        assert!(check("[[[]]]", 2).unwrap_err().contains("more than 2 levels"));
        assert!(check(r#"{"a":[{}]}"#, 2).is_err());
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(check(&deep, 64).unwrap_err().contains("more than 64 levels"));
    }

    #[test]
    fn a_key_that_appears_twice_is_found_among_few_and_many() {
        assert!(check(r#"[{"a":1,"b":{"c":1,"c":2}}]"#, 9).unwrap_err().contains("\"c\" appears twice"));
        let keys: Vec<String> = (0..40).map(|n| format!("\"k{n}\":0")).collect();
        assert_eq!(check(&format!("{{{}}}", keys.join(",")), 9), Ok(()));
        assert!(check(&format!("{{{},\"k3\":1}}", keys.join(",")), 9).unwrap_err().contains("\"k3\""));
    }

    #[test]
    fn what_no_reader_accepts_is_refused() {
        assert!(check("[1e999]", 9).is_err());
        assert!(check(r#"["\ud800"]"#, 9).is_err());
    }
}
