//! Documents that are nearly right.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// The placeholder in a document for a number that no JSON tree can represent.
const NUMBER: &str = "@number@";
const NUMBERS: [&str; 8] =
    ["1e999", "-1e999", "1e308", "9223372036854775808", "0.0000001", "-0.0", "1E400", "123456789012345678901234567890"];

/// A document as text: as it is, or broken in one way or several.
pub(crate) fn text(mut document: Value, random: &mut Rng) -> Vec<u8> {
    match random.u8(..20) {
        0..=8 => document.to_string().into_bytes(),
        9..=14 => {
            for _ in 0..random.u8(1..4) {
                change(&mut document, random);
            }
            let number = NUMBERS[random.usize(..NUMBERS.len())];
            document.to_string().replace(&format!("\"{NUMBER}\""), number).into_bytes()
        }
        15 => deep(random),
        16 => Vec::new(),
        17 => vec![b'['; random.usize(..70_000)],
        _ => damaged(document.to_string().into_bytes(), random),
    }
}

/// A value that fits nowhere.
pub(crate) fn strange(random: &mut Rng) -> Value {
    match random.u8(..18) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0),
        4 => json!(u64::MAX),
        5 => json!(NUMBER),
        6 => json!(""),
        7 => json!("\u{0}\u{1b}[31m"),
        8 => json!("x".repeat(random.usize(..40_000))),
        9 => json!([]),
        10 => json!({}),
        11 => json!([[[[[[[[1]]]]]]]]),
        12 => json!("2026-13-45T99:99:99Z"),
        13 => json!("+PT0S"),
        14 => json!("P1Y"),
        15 => json!({ "a": { "b": [null, { "c": 1.5 }] } }),
        16 => json!("0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c"),
        _ => json!("inf"),
    }
}

/// Changes one thing, somewhere in the tree.
fn change(value: &mut Value, random: &mut Rng) {
    match value {
        Value::Object(members) if !members.is_empty() && random.u8(..4) > 0 => {
            let key = members.keys().nth(random.usize(..members.len())).cloned().unwrap_or_default();
            match random.u8(..6) {
                0 => drop(members.remove(&key)),
                1 => rename(members, &key, random),
                2 => drop(
                    members.insert(["extra", "job_id", "queue", "redrive"][random.usize(..4)].into(), strange(random)),
                ),
                _ => change(&mut members[&key], random),
            }
        }
        Value::Array(items) if !items.is_empty() && random.u8(..4) > 0 => {
            let index = random.usize(..items.len());
            match random.u8(..4) {
                0 => drop(items.remove(index)),
                1 => items.push(items[index].clone()),
                _ => change(&mut items[index], random),
            }
        }
        _ => *value = strange(random),
    }
}

/// A name with a letter too many or too few.
fn rename(members: &mut Map<String, Value>, key: &str, random: &mut Rng) {
    let Some(value) = members.remove(key) else { return };
    let mut name = key.to_owned();
    if random.bool() || name.is_empty() {
        name.push('s');
    } else {
        name.pop();
    }
    members.insert(name, value);
}

/// Brackets without end, with or without their other halves.
fn deep(random: &mut Rng) -> Vec<u8> {
    let depth = random.usize(1..20_000);
    let inner = format!("{}{}", "[".repeat(depth), if random.bool() { "]".repeat(depth) } else { String::new() });
    format!("{{\"type\":\"work.do\",\"job_id\":{inner},\"args\":{inner}}}").into_bytes()
}

/// Bytes that were cut, flipped or put in.
pub(crate) fn damaged(mut bytes: Vec<u8>, random: &mut Rng) -> Vec<u8> {
    if bytes.is_empty() {
        return bytes;
    }
    for _ in 0..random.u8(1..5) {
        let at = random.usize(..bytes.len());
        match random.u8(..4) {
            0 => bytes[at] = random.u8(..),
            1 => bytes.insert(at, random.u8(..)),
            2 => bytes[at] ^= 1 << random.u8(..8),
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}
