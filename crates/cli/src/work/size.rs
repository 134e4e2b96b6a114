//! Sizes on the command line.

/// A number of bytes as people write it: `64K`, `1M`, `2G`; powers of 1,024.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, shift) = match upper.as_bytes().last() {
        Some(b'K') => (&upper[..upper.len() - 1], 10),
        Some(b'M') => (&upper[..upper.len() - 1], 20),
        Some(b'G') => (&upper[..upper.len() - 1], 30),
        _ => (upper, 0),
    };
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0);
    number.and_then(|number| number.checked_mul(1 << shift)).ok_or_else(|| {
        format!("\"{text}\" is not a size; allowed is a whole number of bytes above 0, optionally with K, M or G")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, size) in [("1", 1), ("64K", 65_536), ("64kib", 65_536), ("2M", 2 << 20), ("1GB", 1 << 30)] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "K", "0", "-1", "1.5M", "1T", "99999999999G", "ü"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
