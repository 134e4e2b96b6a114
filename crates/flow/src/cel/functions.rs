//! The functions of core CEL, and those that MWL adds.

use super::eval::{Evaluation, Fault, fault};
use super::json::{canonical, to_json};
use super::parser::compiled;
use super::time;
use super::value::{Text, Val};
use regex::Regex;
use std::rc::Rc;

/// Whether it is called on a value, and with how many arguments.
struct Signature {
    name: &'static str,
    on_value: &'static [usize],
    alone: &'static [usize],
}

const fn alone(name: &'static str, counts: &'static [usize]) -> Signature {
    Signature { name, on_value: &[], alone: counts }
}

const fn method(name: &'static str, counts: &'static [usize]) -> Signature {
    Signature { name, on_value: counts, alone: &[] }
}

/// Every function. The guide lists them, and a test goes through the list.
const FUNCTIONS: [Signature; 33] = [
    Signature { name: "size", on_value: &[0], alone: &[1] },
    Signature { name: "matches", on_value: &[1], alone: &[2] },
    method("contains", &[1]),
    method("startsWith", &[1]),
    method("endsWith", &[1]),
    alone("bool", &[1]),
    alone("bytes", &[1]),
    alone("double", &[1]),
    alone("duration", &[1]),
    alone("dyn", &[1]),
    alone("int", &[1]),
    alone("string", &[1]),
    alone("timestamp", &[1]),
    alone("type", &[1]),
    alone("uint", &[1]),
    method("getFullYear", &[0, 1]),
    method("getMonth", &[0, 1]),
    method("getDate", &[0, 1]),
    method("getDayOfMonth", &[0, 1]),
    method("getDayOfWeek", &[0, 1]),
    method("getDayOfYear", &[0, 1]),
    method("getHours", &[0, 1]),
    method("getMinutes", &[0, 1]),
    method("getSeconds", &[0, 1]),
    method("getMilliseconds", &[0, 1]),
    alone("toJson", &[1]),
    alone("fromJson", &[1]),
    alone("durationToIso8601", &[1]),
    alone("durationFromIso8601", &[1]),
    alone("now", &[0]),
    alone("wallTime", &[0]),
    // Macros; the parser takes them before it looks here.
    alone("has", &[1]),
    method("existsOne", &[2]),
];

/// Whether there is such a function. Expressions that call another are refused when they are read.
pub(crate) fn is_function(name: &str, on_value: bool, arguments: usize) -> bool {
    FUNCTIONS
        .iter()
        .any(|known| known.name == name && if on_value { known.on_value } else { known.alone }.contains(&arguments))
}

/// Calls a function. Where it is called on a value, that one is the first of the arguments.
pub(crate) fn call<'a>(
    evaluation: &mut Evaluation<'a, '_>,
    name: &str,
    arguments: Vec<Val<'a>>,
    pattern: Option<&Regex>,
) -> Result<Val<'a>, Fault> {
    let mut arguments = arguments.into_iter();
    let Some(first) = arguments.next() else {
        return Ok(Val::Timestamp(time::of_moment(match name {
            "now" => evaluation.roots.pin,
            _ => evaluation.roots.now,
        })));
    };
    let second = arguments.next();
    match name {
        "size" => size(&first),
        "contains" | "startsWith" | "endsWith" => in_string(evaluation, name, &first, second.as_ref()),
        "matches" => matches(evaluation, &first, second.as_ref(), pattern),
        "dyn" => Ok(first),
        "type" => Ok(Val::Type(first.type_name())),
        "bool" => to_bool(&first),
        "int" => to_int(&first),
        "uint" => to_uint(&first),
        "double" => to_double(&first),
        "bytes" => match first {
            Val::String(text) => Ok(Val::Bytes(Rc::from(text.as_bytes()))),
            Val::Bytes(_) => Ok(first),
            other => cannot("bytes", &other),
        },
        "string" => to_string(&first),
        "duration" => match &first {
            Val::Duration(_) => Ok(first),
            Val::String(text) => from_text(text, time::parse_go(text).map(Val::Duration), "a duration such as 1h30m"),
            other => cannot("duration", other),
        },
        "timestamp" => match &first {
            Val::Timestamp(_) => Ok(first),
            Val::Int(seconds) => Ok(Val::Timestamp(time::timestamp_in_range(i128::from(*seconds) * 1_000_000_000)?)),
            Val::String(text) => {
                from_text(text, time::parse_timestamp(text).map(Val::Timestamp), "an RFC 3339 timestamp")
            }
            other => cannot("timestamp", other),
        },
        "durationFromIso8601" => match &first {
            Val::String(text) => from_text(text, time::parse_iso(text).map(Val::Duration), "an ISO 8601 duration"),
            other => cannot("durationFromIso8601", other),
        },
        "durationToIso8601" => match first {
            Val::Duration(nanos) => Ok(Val::text(time::to_iso(nanos))),
            other => cannot("durationToIso8601", &other),
        },
        "toJson" => {
            let value = to_json(&first, &mut |cost| evaluation.spend(cost))?;
            let text = canonical(&value);
            evaluation.spend(text.len())?;
            Ok(Val::text(text))
        }
        "fromJson" => match &first {
            Val::String(text) => {
                evaluation.spend(text.len())?;
                let value = redrive_policy::wire::parse_json(text)
                    .or_else(|error| fault(format!("fromJson() cannot read the text: {}", error.message)))?;
                Ok(Val::owned(&value))
            }
            other => cannot("fromJson", other),
        },
        part => part_of_time(part, &first, second.as_ref()),
    }
}

fn cannot<T>(function: &str, value: &Val<'_>) -> Result<T, Fault> {
    fault(format!("{function}() does not take a {}", value.type_name()))
}

fn from_text<'a>(text: &str, value: Option<Val<'a>>, allowed: &str) -> Result<Val<'a>, Fault> {
    value.map_or_else(|| fault(format!("{text:?} is not {allowed}")), Ok)
}

fn size<'a>(value: &Val<'a>) -> Result<Val<'a>, Fault> {
    let size = match value {
        Val::String(text) => text.chars().count(),
        Val::Bytes(bytes) => bytes.len(),
        other => match other.list_len().or_else(|| other.map_len()) {
            Some(size) => size,
            None => return cannot("size", other),
        },
    };
    Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn in_string<'a>(
    evaluation: &mut Evaluation<'a, '_>,
    name: &str,
    on: &Val<'a>,
    wanted: Option<&Val<'a>>,
) -> Result<Val<'a>, Fault> {
    let (Val::String(text), Some(Val::String(wanted))) = (on, wanted) else {
        return fault(format!("{name}() is a function of a string with a string"));
    };
    evaluation.spend(text.len())?;
    Ok(Val::Bool(match name {
        "contains" => text.contains(&**wanted),
        "startsWith" => text.starts_with(&**wanted),
        _ => text.ends_with(&**wanted),
    }))
}

fn matches<'a>(
    evaluation: &mut Evaluation<'a, '_>,
    on: &Val<'a>,
    wanted: Option<&Val<'a>>,
    pattern: Option<&Regex>,
) -> Result<Val<'a>, Fault> {
    let (Val::String(text), Some(Val::String(wanted))) = (on, wanted) else {
        return fault("matches() is a function of a string with a string");
    };
    evaluation.spend(text.len())?;
    if let Some(pattern) = pattern {
        return Ok(Val::Bool(pattern.is_match(text)));
    }
    // A pattern that is computed is compiled each time, which takes as long as thousands of operations.
    evaluation.spend(10_000 + wanted.len() * 10)?;
    let pattern = compiled(wanted).or_else(fault)?;
    Ok(Val::Bool(pattern.is_match(text)))
}

fn to_bool<'a>(value: &Val<'a>) -> Result<Val<'a>, Fault> {
    match value {
        Val::Bool(flag) => Ok(Val::Bool(*flag)),
        Val::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            other => fault(format!("{other:?} is neither true nor false")),
        },
        other => cannot("bool", other),
    }
}

fn to_int<'a>(value: &Val<'a>) -> Result<Val<'a>, Fault> {
    let number = match value {
        Val::Int(number) => Some(*number),
        Val::Uint(number) => i64::try_from(*number).ok(),
        // The limits themselves are not among the doubles that are safe.
        Val::Double(number) if number.abs() < 2_f64.powi(63) => Some(*number as i64),
        Val::Double(_) => None,
        Val::String(text) => text.parse().ok(),
        Val::Timestamp(nanos) => i64::try_from(nanos.div_euclid(1_000_000_000)).ok(),
        other => return cannot("int", other),
    };
    number.map_or_else(|| fault("the value is no integer of 64 bits"), |number| Ok(Val::Int(number)))
}

fn to_uint<'a>(value: &Val<'a>) -> Result<Val<'a>, Fault> {
    let number = match value {
        Val::Uint(number) => Some(*number),
        Val::Int(number) => u64::try_from(*number).ok(),
        Val::Double(number) if *number > -1.0 && *number < 2_f64.powi(64) => Some(*number as u64),
        Val::Double(_) => None,
        Val::String(text) => text.parse().ok(),
        other => return cannot("uint", other),
    };
    number.map_or_else(|| fault("the value is no unsigned integer of 64 bits"), |number| Ok(Val::Uint(number)))
}

fn to_double<'a>(value: &Val<'a>) -> Result<Val<'a>, Fault> {
    Ok(Val::Double(match value {
        Val::Double(number) => *number,
        Val::Int(number) => *number as f64,
        Val::Uint(number) => *number as f64,
        Val::String(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return fault(format!("{:?} is not a number", &**text)),
        },
        other => return cannot("double", other),
    }))
}

fn to_string<'a>(value: &Val<'a>) -> Result<Val<'a>, Fault> {
    Ok(match value {
        Val::String(text) => Val::String(text.clone()),
        Val::Bool(flag) => Val::borrowed(if *flag { "true" } else { "false" }),
        Val::Int(number) => Val::text(number.to_string()),
        Val::Uint(number) => Val::text(number.to_string()),
        Val::Double(number) if number.is_nan() => Val::borrowed("NaN"),
        Val::Double(number) if number.is_infinite() => Val::borrowed(if *number > 0.0 { "+Inf" } else { "-Inf" }),
        Val::Double(number) => Val::text(super::json::number(*number)),
        Val::Timestamp(nanos) => Val::text(time::shown_timestamp(*nanos)),
        Val::Duration(nanos) => Val::text(time::shown_duration(*nanos)),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Val::String(Text::Shared(Rc::from(text))),
            Err(_) => return fault("the bytes are not UTF-8 text"),
        },
        other => return cannot("string", other),
    })
}

fn part_of_time<'a>(name: &str, on: &Val<'a>, zone: Option<&Val<'a>>) -> Result<Val<'a>, Fault> {
    let zone = match zone {
        None => None,
        Some(Val::String(zone)) => Some(&**zone),
        Some(other) => return fault(format!("the time zone of {name}() is a string, not a {}", other.type_name())),
    };
    match (on, zone) {
        (Val::Timestamp(nanos), zone) => time::part(*nanos, zone, name).map(Val::Int),
        (Val::Duration(nanos), None) => match time::part_of_duration(*nanos, name) {
            Some(number) => Ok(Val::Int(number)),
            None => cannot(name, on),
        },
        _ => cannot(name, on),
    }
}
