//! Values while an expression is evaluated. Data of the flow is borrowed and converted where it is looked at.

use super::eval::Fault;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

/// A string: one of the flow's, or one that was made.
#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Rc<[u8]>),
    List(Rc<Vec<Val<'a>>>),
    Map(Rc<BTreeMap<Key, Val<'a>>>),
    JsonList(&'a [Value]),
    JsonMap(&'a Map<String, Value>),
    /// Nanoseconds from the first of January 1970.
    Timestamp(i128),
    /// Nanoseconds.
    Duration(i128),
    Type(&'static str),
}

/// A key of a map. Numbers that are equal are the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    /// In the range of both kinds of integers.
    Integer(i128),
    String(Rc<str>),
}

impl<'a> Val<'a> {
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::String(Text::Shared(Rc::from(text.as_ref())))
    }

    pub(crate) const fn borrowed(text: &'a str) -> Self {
        Self::String(Text::Borrowed(text))
    }

    /// Data of the flow. Every number is a double.
    pub(crate) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Self::borrowed(text),
            Value::Array(items) => Self::JsonList(items),
            Value::Object(members) => Self::JsonMap(members),
        }
    }

    /// The members of one of the roots.
    pub(crate) fn record(members: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        let members = members.into_iter().map(|(name, value)| (Key::String(Rc::from(name)), value));
        Self::Map(Rc::new(members.collect()))
    }

    /// Data that only lives while the expression is evaluated.
    pub(crate) fn owned(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Self::text(text),
            Value::Array(items) => Self::List(Rc::new(items.iter().map(Self::owned).collect())),
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| (Key::String(Rc::from(&**name)), Self::owned(value)));
                Self::Map(Rc::new(members.collect()))
            }
        }
    }

    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) | Self::JsonList(_) => "list",
            Self::Map(_) | Self::JsonMap(_) => "map",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
        }
    }

    /// How many elements a list has.
    pub(crate) fn list_len(&self) -> Option<usize> {
        match self {
            Self::List(items) => Some(items.len()),
            Self::JsonList(items) => Some(items.len()),
            _ => None,
        }
    }

    /// The element of a list.
    pub(crate) fn element(&self, at: usize) -> Option<Self> {
        match self {
            Self::List(items) => items.get(at).cloned(),
            Self::JsonList(items) => items.get(at).map(Self::of),
            _ => None,
        }
    }

    pub(crate) fn map_len(&self) -> Option<usize> {
        match self {
            Self::Map(members) => Some(members.len()),
            Self::JsonMap(members) => Some(members.len()),
            _ => None,
        }
    }

    /// The value of a key; `None` where there is no such key, or this is no map.
    pub(crate) fn get(&self, key: &Key) -> Option<Self> {
        match (self, key) {
            (Self::Map(members), key) => members.get(key).cloned(),
            (Self::JsonMap(members), Key::String(name)) => members.get(&**name).map(Self::of),
            _ => None,
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        match self {
            Self::JsonMap(members) => members.get(name).map(Self::of),
            _ => self.get(&Key::String(Rc::from(name))),
        }
    }

    /// The keys of a map in their order, which does not depend on how the map was made.
    pub(crate) fn keys(&self) -> Option<Vec<Self>> {
        match self {
            Self::Map(members) => Some(members.keys().map(Key::value).collect()),
            Self::JsonMap(members) => {
                let mut names: Vec<&'a str> = members.keys().map(String::as_str).collect();
                names.sort_unstable();
                Some(names.into_iter().map(Self::borrowed).collect())
            }
            _ => None,
        }
    }

    /// As a key of a map.
    pub(crate) fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Bool(flag) => Key::Bool(*flag),
            Self::Int(number) => Key::Integer((*number).into()),
            Self::Uint(number) => Key::Integer((*number).into()),
            Self::Double(number) if number.fract() == 0.0 && number.abs() < 2_f64.powi(64) => {
                Key::Integer(*number as i128)
            }
            Self::String(text) => Key::String(Rc::from(&**text)),
            _ => return None,
        })
    }

    fn number(&self) -> Option<Number> {
        Some(match self {
            Self::Int(number) => Number::Integer((*number).into()),
            Self::Uint(number) => Number::Integer((*number).into()),
            Self::Double(number) => Number::Double(*number),
            _ => return None,
        })
    }

    /// Their order, where they have one. Numbers of different types have.
    pub(crate) fn order(&self, other: &Self) -> Option<Option<Ordering>> {
        if let (Some(left), Some(right)) = (self.number(), other.number()) {
            return Some(left.order(right));
        }
        Some(match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => Some(left.cmp(right)),
            (Self::String(left), Self::String(right)) => Some((**left).cmp(&**right)),
            (Self::Bytes(left), Self::Bytes(right)) => Some(left.cmp(right)),
            (Self::Timestamp(left), Self::Timestamp(right)) | (Self::Duration(left), Self::Duration(right)) => {
                Some(left.cmp(right))
            }
            _ => return None,
        })
    }

    /// Whether they are equal. Values of different types are not, except numbers. `spend` is told of each comparison.
    pub(crate) fn equals(&self, other: &Self, spend: &mut dyn FnMut() -> Result<(), Fault>) -> Result<bool, Fault> {
        spend()?;
        if let (Some(left), Some(right)) = (self.list_len(), other.list_len()) {
            if left != right {
                return Ok(false);
            }
            for at in 0..left {
                let (Some(one), Some(two)) = (self.element(at), other.element(at)) else { return Ok(false) };
                if !one.equals(&two, spend)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let (Some(keys), Some(length)) = (self.keys(), other.map_len()) {
            if keys.len() != length {
                return Ok(false);
            }
            for key in keys.iter().filter_map(Self::key) {
                let (Some(one), Some(two)) = (self.get(&key), other.get(&key)) else { return Ok(false) };
                if !one.equals(&two, spend)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Type(left), Self::Type(right)) => left == right,
            _ => self.order(other) == Some(Some(Ordering::Equal)),
        })
    }
}

impl Key {
    pub(crate) fn value<'a>(&self) -> Val<'a> {
        match self {
            Self::Bool(flag) => Val::Bool(*flag),
            Self::Integer(number) => {
                i64::try_from(*number).map_or_else(|_| Val::Uint(u64::try_from(*number).unwrap_or(u64::MAX)), Val::Int)
            }
            Self::String(text) => Val::String(Text::Shared(Rc::clone(text))),
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Double(f64),
}

impl Number {
    fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => Some(left.cmp(&right)),
            (Self::Double(left), Self::Double(right)) => left.partial_cmp(&right),
            (Self::Double(left), Self::Integer(right)) => against(right, left).map(Ordering::reverse),
            (Self::Integer(left), Self::Double(right)) => against(left, right),
        }
    }
}

/// An integer against a double, exactly.
fn against(integer: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() >= 2_f64.powi(100) {
        return Some(if double > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let whole = double.floor();
    Some(integer.cmp(&(whole as i128)).then(if double > whole { Ordering::Less } else { Ordering::Equal }))
}
