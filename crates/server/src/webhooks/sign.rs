//! Signatures: HMAC-SHA256 over the time and the body.

use ring::hmac;
use std::fmt::Write as _;

/// The signature of a body at a time, in seconds since 1970.
pub(crate) fn signature(secret: &str, timestamp: i64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
    context.update(format!("{timestamp}.").as_bytes());
    context.update(body);
    let mut text = String::from("sha256=");
    for byte in context.sign().as_ref() {
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with the hmac module of Python.
    #[test]
    fn a_signature_is_that_of_another_implementation() {
        let body = br#"{"specversion":"1.0","type":"webhook.test"}"#;
        assert_eq!(
            signature("whsec_test", 1_708_030_665, body),
            "sha256=0daddd6206ab2c18ad32e1f118b67ee2c11b85d46b3f940162062983d3a94be3"
        );
    }
}
