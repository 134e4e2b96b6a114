//! Texts as PostgreSQL can store them: it has no character 0.

use std::borrow::Cow;

/// Writes the character 0 as `U+0001 '0'` and U+0001 as `U+0001 '1'`. No two texts become the same, and
/// their order stays.
pub(super) fn stored(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte > 1) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0"))
}

/// Reads what [`stored`] wrote.
pub(super) fn read(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1}') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_the_statement_stays() {
        let mut texts = ["", "a", "a\0", "a\u{1}", "a\0b", "a\u{1}0", "a\u{2}", "\0", "\u{1}\0", "\0\u{1}1", "é"];
        texts.sort_unstable();
        let stored: Vec<_> = texts.iter().map(|text| super::stored(text)).collect();
        assert!(stored.windows(2).all(|pair| pair[0] < pair[1]), "{stored:?}");
        for (text, stored) in texts.iter().zip(&stored) {
            assert!(!stored.contains('\0'));
            assert_eq!(read(stored), *text);
        }
    }
}
