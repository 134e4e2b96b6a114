//! Names that are misspelt.

/// The known name that a misspelt one most likely means.
#[must_use]
pub fn resembling<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '-'], "");
    let wanted = plain(key);
    let near = |name: &str| distance(&wanted, &plain(name));
    known.iter().copied().min_by_key(|name| near(name)).filter(|name| near(name) <= 1 + wanted.len() / 5)
}

/// How many letters must be inserted, removed or replaced to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    // Keys of a hostile length are not worth a suggestion.
    for (i, letter) in a.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::resembling;

    #[test]
    fn a_slip_of_the_hand_is_recognised_and_another_word_is_not() {
        let known = ["queue", "error_type", "dry_run"];
        for (key, meant) in [
            ("qeue", Some("queue")),
            ("queues", Some("queue")),
            ("errorType", Some("error_type")),
            ("dry-run", Some("dry_run")),
            ("colour", None),
        ] {
            assert_eq!(resembling(key, &known), meant, "{key}");
        }
        assert_eq!(resembling("queue", &[]), None);
    }
}
