//! The formats that are asserted. Others are annotations, as JSON Schema has it.

use crate::cel::time::{parse_iso, parse_timestamp};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether a string has the format, where it is one that is asserted.
pub(crate) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" => parse_timestamp(text).is_some(),
        "date" => text.len() == 10 && parse_timestamp(&format!("{text}T00:00:00Z")).is_some(),
        "time" => parse_timestamp(&format!("2000-01-01T{text}")).is_some(),
        "duration" => parse_iso(text).is_some(),
        "uuid" => uuid(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "regex" => regex::Regex::new(text).is_ok(),
        _ => true,
    }
}

fn uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
