//! Operators on values.

use super::ast::Binary;
use super::eval::{Fault, fault};
use super::time::{in_range, timestamp_in_range};
use super::value::{Text, Val};
use std::cmp::Ordering;
use std::rc::Rc;

/// How much work it is to join two strings or lists.
pub(crate) fn joined_len(left: &Val<'_>, right: &Val<'_>) -> usize {
    let length = |value: &Val<'_>| match value {
        Val::String(text) => text.len(),
        Val::Bytes(bytes) => bytes.len(),
        other => other.list_len().unwrap_or(0),
    };
    length(left).saturating_add(length(right))
}

fn unknown<T>(operator: &str, left: &Val<'_>, right: &Val<'_>) -> Result<T, Fault> {
    let (left, right) = (left.type_name(), right.type_name());
    let hint = match (left, right) {
        ("int" | "uint", "double") | ("double", "int" | "uint") => {
            "; numbers of the flow are doubles: write 1.0 for 1, or convert with double()"
        }
        _ => "",
    };
    fault(format!("there is no {left} {operator} {right}{hint}"))
}

fn overflow<T>() -> Result<T, Fault> {
    fault("the result does not fit into 64 bits")
}

pub(crate) fn add<'a>(left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, Fault> {
    Ok(match (&left, &right) {
        (Val::Int(a), Val::Int(b)) => return a.checked_add(*b).map_or_else(overflow, |sum| Ok(Val::Int(sum))),
        (Val::Uint(a), Val::Uint(b)) => return a.checked_add(*b).map_or_else(overflow, |sum| Ok(Val::Uint(sum))),
        (Val::Double(a), Val::Double(b)) => Val::Double(a + b),
        (Val::String(a), Val::String(b)) => Val::String(Text::Shared(Rc::from([&**a, &**b].concat()))),
        (Val::Bytes(a), Val::Bytes(b)) => Val::Bytes(Rc::from([&**a, &**b].concat())),
        (Val::Timestamp(at), Val::Duration(span)) | (Val::Duration(span), Val::Timestamp(at)) => {
            Val::Timestamp(timestamp_in_range(at + span)?)
        }
        (Val::Duration(a), Val::Duration(b)) => Val::Duration(in_range(a + b)?),
        _ => match (left.list_len(), right.list_len()) {
            (Some(a), Some(b)) => {
                let first = (0..a).filter_map(|at| left.element(at));
                let items = first.chain((0..b).filter_map(|at| right.element(at))).collect();
                Val::List(Rc::new(items))
            }
            _ => return unknown("+", &left, &right),
        },
    })
}

/// The result of an operator on two integers of the same type, which have the same methods and no trait in common.
macro_rules! integers {
    ($type:ident, $operator:ident, $a:ident, $b:ident) => {{
        if *$b == 0 && matches!($operator, Binary::Divide | Binary::Remainder) {
            return fault("an integer is divided by zero");
        }
        let result = match $operator {
            Binary::Subtract => $a.checked_sub(*$b),
            Binary::Multiply => $a.checked_mul(*$b),
            Binary::Divide => $a.checked_div(*$b),
            _ => $a.checked_rem(*$b),
        };
        result.map_or_else(overflow, |number| Ok(Val::$type(number)))
    }};
}

pub(crate) fn arithmetic<'a>(operator: Binary, left: &Val<'a>, right: &Val<'a>) -> Result<Val<'a>, Fault> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => integers!(Int, operator, a, b),
        (Val::Uint(a), Val::Uint(b)) => integers!(Uint, operator, a, b),
        (Val::Double(a), Val::Double(b)) => match operator {
            Binary::Subtract => Ok(Val::Double(a - b)),
            Binary::Multiply => Ok(Val::Double(a * b)),
            Binary::Divide => Ok(Val::Double(a / b)),
            _ => unknown("%", left, right),
        },
        (Val::Timestamp(a), Val::Timestamp(b)) if operator == Binary::Subtract => Ok(Val::Duration(in_range(a - b)?)),
        (Val::Timestamp(a), Val::Duration(b)) if operator == Binary::Subtract => {
            Ok(Val::Timestamp(timestamp_in_range(a - b)?))
        }
        (Val::Duration(a), Val::Duration(b)) if operator == Binary::Subtract => Ok(Val::Duration(in_range(a - b)?)),
        _ => unknown(symbol(operator), left, right),
    }
}

pub(crate) fn negate<'a>(value: &Val<'a>) -> Result<Val<'a>, Fault> {
    match value {
        Val::Int(number) => number.checked_neg().map_or_else(overflow, |number| Ok(Val::Int(number))),
        Val::Double(number) => Ok(Val::Double(-number)),
        Val::Duration(span) => Ok(Val::Duration(-span)),
        other => fault(format!("there is no - of a {}", other.type_name())),
    }
}

pub(crate) fn compare<'a>(operator: Binary, left: &Val<'a>, right: &Val<'a>) -> Result<Val<'a>, Fault> {
    let Some(order) = left.order(right) else { return unknown(symbol(operator), left, right) };
    // Nothing is less than, equal to or greater than NaN.
    let holds = order.is_some_and(|order| match operator {
        Binary::Less => order == Ordering::Less,
        Binary::LessOrEqual => order != Ordering::Greater,
        Binary::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    });
    Ok(Val::Bool(holds))
}

const fn symbol(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::In => "in",
    }
}

pub(crate) fn index<'a>(of: &Val<'a>, at: &Val<'a>) -> Result<Val<'a>, Fault> {
    if let Some(length) = of.list_len() {
        let place = match at {
            Val::Int(at) => usize::try_from(*at).ok(),
            Val::Uint(at) => usize::try_from(*at).ok(),
            Val::Double(at) if at.fract() == 0.0 && *at >= 0.0 && *at < 1e15 => Some(*at as usize),
            Val::Double(_) => None,
            other => return fault(format!("the index of a list is a number, not a {}", other.type_name())),
        };
        return match place.and_then(|place| of.element(place)) {
            Some(element) => Ok(element),
            None => fault(format!("the list has {length} elements, and none at this index")),
        };
    }
    if of.map_len().is_none() {
        return fault(format!("a {} has no elements", of.type_name()));
    }
    match at.key().and_then(|key| of.get(&key)) {
        Some(value) => Ok(value),
        None => fault("the map has no such key; \"in\" asks for it"),
    }
}
