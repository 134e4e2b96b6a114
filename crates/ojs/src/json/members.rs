//! An object of a request, member by member. Problems are collected, so that a refusal lists all of them.

use super::unknown;
use redrive_policy::Problem;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

/// The most members of one object. Members are found by a linear search.
const MOST_MEMBERS: usize = 500;

/// One object: its members in the order in which they came, each as the text that was sent.
#[derive(Debug, Default)]
pub struct Members<'a> {
    /// The place of the object in the request, as a JSON Pointer.
    at: &'static str,
    list: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Members<'a> {
    /// Reads an object that is a whole document.
    ///
    /// # Errors
    /// The text is not JSON, not an object, or has a key twice.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value under `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.list.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// Whether there is a value under `key`.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// All members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Cow<'a, str>, &'a RawValue)> {
        self.list.iter().map(|(key, value)| (key, *value))
    }

    /// Refuses every member that is not known: what is misspelt would otherwise be passed over.
    pub fn only(&self, known: &[&str], problems: &mut Vec<Problem>) {
        for (key, _) in self.iter().filter(|(key, _)| !known.contains(&&***key)) {
            self.add_problem(key, Problem::with_message("", unknown("field", key, known)), problems);
        }
    }

    /// Adds a problem with the value under `key`.
    pub fn add_problem(&self, key: &str, problem: Problem, problems: &mut Vec<Problem>) {
        problems.push(Problem { path: format!("{}/{key}{}", self.at, problem.path), ..problem });
    }

    /// Adds the problem that the value under `key` is not allowed, or is missing.
    pub fn wrong(&self, key: &str, allowed: &str, problems: &mut Vec<Problem>) {
        let path = format!("{}/{key}", self.at);
        problems.push(match self.get(key) {
            Some(value) => Problem::new(path, shown(value), allowed),
            None => Problem::with_message(path, format!("missing; {allowed} is required")),
        });
    }

    /// The value under `key` as `read` understands it; where it does not, a problem is added.
    pub fn read<T>(
        &self,
        key: &str,
        allowed: &str,
        problems: &mut Vec<Problem>,
        read: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Option<T> {
        let value = read(self.get(key)?);
        if value.is_none() {
            self.wrong(key, allowed, problems);
        }
        value
    }

    /// A string.
    pub fn text(&self, key: &str, problems: &mut Vec<Problem>) -> Option<Cow<'a, str>> {
        self.read(key, "a string", problems, text)
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &str, problems: &mut Vec<Problem>) -> Option<bool> {
        self.read(key, "true or false", problems, |value| match value.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    /// A whole number; `3.0` is one, `2.5` and `"3"` are not.
    pub fn whole(&self, key: &str, range: RangeInclusive<i64>, problems: &mut Vec<Problem>) -> Option<i64> {
        let value = self.get(key)?;
        let number = whole(value).filter(|number| range.contains(number));
        if number.is_none() {
            self.wrong(key, &format!("a whole number from {} to {}", range.start(), range.end()), problems);
        }
        number
    }

    /// The object under `key`; `at` is its place in the request.
    pub fn object(&self, key: &str, at: &'static str, problems: &mut Vec<Problem>) -> Option<Self> {
        let text = self.get(key)?.get();
        match Self::parse(text) {
            Ok(members) => Some(Self { at, ..members }),
            Err(error) if text.starts_with('{') => {
                problems.push(Problem::with_message(at, plain(&error)));
                None
            }
            Err(_) => {
                self.wrong(key, "an object", problems);
                None
            }
        }
    }

    /// The strings of the array under `key`.
    pub fn texts(&self, key: &str, problems: &mut Vec<Problem>) -> Option<Vec<Cow<'a, str>>> {
        self.read(key, "an array of strings", problems, |value| items(value)?.into_iter().map(text).collect())
    }
}

/// The items of an array; `None` where it is none.
pub fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The text of a string; `None` where it is none.
pub fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = value.get();
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(quoted).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// The message of an error without the place in the text, which means nothing for a part of it.
pub fn plain(error: &serde_json::Error) -> String {
    let full = error.to_string();
    full.rsplit_once(" at line ").map_or(full.as_str(), |(message, _)| message).to_owned()
}

fn whole(value: &RawValue) -> Option<i64> {
    let text = value.get();
    text.parse().ok().or_else(|| {
        // Exact as long as a double can tell whole numbers apart.
        let number = text.parse::<f64>().ok()?;
        (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
    })
}

/// A value as it is shown in a message.
fn shown(value: &RawValue) -> String {
    const LONGEST: usize = 60;
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'[') => "an array".to_owned(),
        Some(b'{') => "an object".to_owned(),
        _ if text.chars().nth(LONGEST).is_none() => text.to_owned(),
        _ => text.chars().take(LONGEST).chain(['…']).collect(),
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut members = Members { at: "", list: Vec::with_capacity(8) };
        while let Some(Key(key)) = fields.next_key()? {
            if members.has(&key) {
                return Err(de::Error::custom(twice(&key)));
            }
            if members.list.len() == MOST_MEMBERS {
                return Err(de::Error::custom(format!("an object with more than {MOST_MEMBERS} members")));
            }
            members.list.push((key, fields.next_value()?));
        }
        Ok(members)
    }
}

/// The message about a key that appears twice.
pub(super) fn twice(key: &str) -> String {
    format!("the key \"{key}\" appears twice in one object; keep one of them")
}

/// A key, borrowed from the text where it holds no escapes.
pub(super) struct Key<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Borrowed(key)))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Owned(key.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_text() {
        let members = Members::parse(r#"{"a": [1,  2], "b\u0063": "x\n", "n": 3.0}"#).unwrap();
        assert_eq!(members.get("a").unwrap().get(), "[1,  2]");
        let mut problems = Vec::new();
        assert_eq!(members.text("bc", &mut problems).unwrap(), "x\n");
        assert_eq!(members.whole("n", 0..=5, &mut problems), Some(3));
        assert!(problems.is_empty());
        assert_eq!(members.whole("n", 0..=2, &mut problems), None);
        assert_eq!(problems[0].message, "found 3.0; allowed is a whole number from 0 to 2");
    }

    #[test]
    fn a_key_that_appears_twice_is_refused() {
        let error = Members::parse(r#"{"a": 1, "\u0061": 2}"#).unwrap_err();
        assert!(plain(&error).contains("\"a\" appears twice"), "{error}");
    }
}
