//! Results of expressions as JSON, and the canonical text of JSON (RFC 8785).

use super::eval::Fault;
use super::value::Val;
use crate::json::MAX_DEPTH;
use serde_json::{Map, Number, Value};

/// The largest integer up to which every one is a double.
const EXACT: i128 = 1 << 53;

/// A value of an expression as data of the flow. `spend` is told how much of it there is.
pub(crate) fn to_json(value: &Val<'_>, spend: &mut dyn FnMut(usize) -> Result<(), Fault>) -> Result<Value, Fault> {
    nested(value, spend, 0)
}

fn none<T>(message: &str) -> Result<T, Fault> {
    Err(Fault::Unrepresentable(message.to_owned()))
}

fn nested(value: &Val<'_>, spend: &mut dyn FnMut(usize) -> Result<(), Fault>, depth: usize) -> Result<Value, Fault> {
    spend(1)?;
    if depth > MAX_DEPTH {
        return none(&format!("the value has more than {MAX_DEPTH} arrays and objects inside of each other"));
    }
    if let Some(length) = value.list_len() {
        let items = (0..length).filter_map(|at| value.element(at)).map(|item| nested(&item, spend, depth + 1));
        return Ok(Value::Array(items.collect::<Result<_, _>>()?));
    }
    if let Some(keys) = value.keys() {
        let mut members = Map::new();
        for key in keys {
            let Val::String(name) = &key else {
                return none(&format!("a map with a key of type {} is no JSON object; use string()", key.type_name()));
            };
            spend(name.len())?;
            let member = value.member(name).unwrap_or(Val::Null);
            members.insert(name.to_string(), nested(&member, spend, depth + 1)?);
        }
        return Ok(Value::Object(members));
    }
    match value {
        Val::Null => Ok(Value::Null),
        Val::Bool(flag) => Ok(Value::Bool(*flag)),
        Val::Int(number) => integer((*number).into()),
        Val::Uint(number) => integer((*number).into()),
        Val::Double(number) => double(*number),
        Val::String(text) => {
            spend(text.len())?;
            Ok(Value::String(text.to_string()))
        }
        Val::Bytes(_) => none("bytes are no value of JSON; convert them with string()"),
        Val::Timestamp(_) => none("a timestamp is no value of JSON; convert it with string()"),
        Val::Duration(_) => none("a duration is no value of JSON; convert it with durationToIso8601()"),
        other => none(&format!("a {} is no value of JSON", other.type_name())),
    }
}

fn integer(number: i128) -> Result<Value, Fault> {
    match i64::try_from(number) {
        Ok(number) if i128::from(number).abs() <= EXACT => Ok(Value::from(number)),
        _ => none("an integer beyond 2^53 loses digits in JSON; convert it with string() or double()"),
    }
}

fn double(number: f64) -> Result<Value, Fault> {
    if number.fract() == 0.0 && number.abs() <= EXACT as f64 {
        // 5 and 5.0 are the same value, and -0 is 0.
        return Ok(Value::from(number as i64));
    }
    match Number::from_f64(number) {
        Some(number) => Ok(Value::Number(number)),
        None => none("a number that is not finite is no value of JSON"),
    }
}

/// The canonical text: members sorted by the UTF-16 units of their names, numbers as ECMAScript writes them.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(found) => out.push_str(&number(found.as_f64().unwrap_or(0.0))),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_by(|left, right| left.encode_utf16().cmp(right.encode_utf16()));
            out.push('{');
            for (at, name) in names.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(&Value::String(name.clone()), out);
                out.push(':');
                write(&members[name], out);
            }
            out.push('}');
        }
        // Strings are escaped as little as possible here too, with the same short escapes.
        other => out.push_str(&other.to_string()),
    }
}

/// A finite number as ECMAScript writes it.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let sign = if value < 0.0 { "-" } else { "" };
    let text = if (0..21).contains(&exponent) {
        if count <= exponent + 1 {
            digits.clone() + &"0".repeat(usize::try_from(exponent + 1 - count).unwrap_or(0))
        } else {
            let (whole, fraction) = digits.split_at(usize::try_from(exponent + 1).unwrap_or(0));
            format!("{whole}.{fraction}")
        }
    } else if (-6..0).contains(&exponent) {
        format!("0.{}{digits}", "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0)))
    } else {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let plus = if exponent > 0 { "+" } else { "" };
        format!("{first}{point}{rest}e{plus}{exponent}")
    };
    format!("{sign}{text}")
}
