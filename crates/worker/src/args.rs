//! Rust values as the positional arguments of a job, and back.
//!
//! Arguments are an array (OJS). A tuple or a sequence is the array itself, nothing is the empty one,
//! and anything else, a struct above all, is its only element.

use serde::Serialize;
use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde_json::value::RawValue;

/// Writes arguments.
///
/// # Errors
/// The value cannot be written as JSON.
pub(crate) fn write(args: &impl Serialize) -> Result<Box<RawValue>, serde_json::Error> {
    let text = serde_json::to_string(args)?;
    match text.as_bytes() {
        [b'[', ..] => RawValue::from_string(text),
        b"null" => RawValue::from_string("[]".to_owned()),
        _ => RawValue::from_string(format!("[{text}]")),
    }
}

/// Reads arguments from the text of an array.
///
/// # Errors
/// They are not what the type needs.
pub(crate) fn read<A: DeserializeOwned>(text: &str) -> Result<A, serde_json::Error> {
    A::deserialize(Args(text))
}

/// The array, which becomes its only element for a type that is neither a tuple nor a sequence.
struct Args<'a>(&'a str);

impl<'a> Args<'a> {
    fn sole(&self) -> Result<&'a RawValue, serde_json::Error> {
        let items: Vec<&RawValue> = serde_json::from_str(self.0)?;
        match items[..] {
            [only] => Ok(only),
            _ => Err(de::Error::custom(format_args!(
                "{} arguments found; this handler takes one, or a tuple of several",
                items.len()
            ))),
        }
    }
}

macro_rules! sole {
    ($($method:ident($($name:ident: $kind:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, Self::Error> {
            let text = self.sole()?.get();
            serde_json::Deserializer::from_str(text).$method($($name,)* visitor)
        }
    )*};
}

macro_rules! whole {
    ($($method:ident($($name:ident: $kind:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, Self::Error> {
            let mut deserializer = serde_json::Deserializer::from_str(self.0);
            let value = deserializer.$method($($name,)* visitor)?;
            deserializer.end()?;
            Ok(value)
        }
    )*};
}

impl<'de> Deserializer<'de> for Args<'de> {
    type Error = serde_json::Error;

    whole! {
        deserialize_any()
        deserialize_seq()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_ignored_any()
    }

    sole! {
        deserialize_bool() deserialize_char() deserialize_str() deserialize_string()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_bytes() deserialize_byte_buf()
        deserialize_map() deserialize_identifier()
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    /// A handler without arguments accepts any.
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let items: Vec<&RawValue> = serde_json::from_str(self.0)?;
        if items.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Email {
        to: String,
        copies: Vec<u32>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Ids(Vec<u32>);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Dot,
        Circle(f64),
    }

    #[track_caller]
    fn both_ways<A: Serialize + DeserializeOwned + PartialEq + Debug>(args: A, text: &str) {
        let written = write(&args).unwrap();
        assert_eq!(written.get(), text);
        assert_eq!(read::<A>(text).unwrap(), args);
    }

    #[test]
    fn values_survive_the_round_trip_through_an_array() {
        both_ways(Email { to: "a".into(), copies: vec![1] }, r#"[{"to":"a","copies":[1]}]"#);
        both_ways((1_u8, "two".to_owned()), r#"[1,"two"]"#);
        both_ways(vec![1, 2, 3], "[1,2,3]");
        both_ways(Ids(vec![7, 8]), "[7,8]");
        both_ways("hello".to_owned(), r#"["hello"]"#);
        both_ways((), "[]");
        both_ways(Some(5), "[5]");
        both_ways(None::<u8>, "[]");
        both_ways(Shape::Dot, r#"["Dot"]"#);
        both_ways(Shape::Circle(1.5), r#"[{"Circle":1.5}]"#);
        both_ways(BTreeMap::from([("k".to_owned(), 1)]), r#"[{"k":1}]"#);
        both_ways(json!([1, {"a": null}]), r#"[1,{"a":null}]"#);
    }

    #[test]
    fn arguments_that_do_not_fit_are_reported() {
        let error = read::<Email>("[1,2]").unwrap_err();
        assert!(error.to_string().starts_with("2 arguments found; this handler takes one"), "{error}");
        assert!(read::<Email>(r#"[{"to":1}]"#).is_err());
        assert!(read::<(u8, u8)>("[1]").is_err());
        assert!(read::<(u8, u8)>("[1,2,3]").is_err());
        assert_eq!(read::<()>("[1,2]").unwrap(), ());
        assert_eq!(read::<Value>("[1]").unwrap(), json!([1]));
    }
}
