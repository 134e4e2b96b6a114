//! Writing JSON text into a buffer.

use redrive_policy::Moment;

/// Writes the key of a member, after a comma unless it is the first member of its object.
pub fn member(out: &mut Vec<u8>, key: &str) {
    push_comma(out);
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

/// As [`member`], for a key that a caller chose and that may need escapes.
pub fn push_key(out: &mut Vec<u8>, key: &str) {
    push_comma(out);
    push_str(out, key);
    out.push(b':');
}

fn push_comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{') | None) {
        out.push(b',');
    }
}

/// Writes a string, quoted and escaped.
pub fn push_str(out: &mut Vec<u8>, text: &str) {
    // Writing text into a vector cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Writes a whole number.
pub fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a whole number with its sign.
pub fn push_i64(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a moment as a quoted RFC 3339 timestamp in UTC, to the microsecond.
pub fn push_time(out: &mut Vec<u8>, at: Moment) {
    out.push(b'"');
    crate::time::push_rfc3339(out, at);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back() {
        for text in ["plain", "q\"uote", "back\\slash", "line\nfeed\r\ttab", "\u{1}\u{1f}", "ünï🙂", ""] {
            let mut out = Vec::new();
            push_str(&mut out, text);
            let read: String = serde_json::from_slice(&out).unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn numbers_are_written_whole() {
        for number in [0, 9, 10, 1_800_000, u64::MAX] {
            let mut out = Vec::new();
            push_u64(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
        for number in [0, -1, 1_800_000, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            push_i64(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }
}
