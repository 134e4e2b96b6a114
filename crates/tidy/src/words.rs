//! Words that had a meaning of their own here and were replaced by those of the field: they must not come back.

use crate::repository::{File, Finding, Repository, expect_none, file};

/// What was said, and what is said now. Compared without regard to case, at the beginning of a word.
const OLD_WORDS: [(&str, &str); 52] = [
    ("abreast", "concurrently"),
    ("beater", "heartbeats"),
    ("call off", "cancel"),
    ("called off", "cancelled"),
    ("calling off", "cancelling"),
    ("calls off", "cancels"),
    ("chronicle", "event log"),
    ("crew", "running worker"),
    ("desk", "buffer"),
    ("door", "interface, HTTP or client"),
    ("give back", "release"),
    ("give_back", "release"),
    ("gives back", "releases"),
    ("gives it back", "releases it"),
    ("gives them back", "releases them"),
    ("giving back", "releasing"),
    ("hand in", "enqueue"),
    ("hand out", "claim"),
    ("handing in", "enqueueing"),
    ("handing out", "claiming"),
    ("hands in", "enqueues"),
    ("hands out", "claims"),
    ("happening", "event kind"),
    ("house", "backend"),
    ("in good order", "cleanly"),
    ("judge", "decide"),
    ("lose its point", "expire"),
    ("lose their point", "expire"),
    ("loses its point", "expires"),
    ("lost its point", "expired"),
    ("mend", "repair"),
    ("occurrence", "event"),
    ("pace", "interval, or sweeper"),
    ("papers", "certificates"),
    ("parcel", "batch"),
    ("reviving", "redriving"),
    ("shelf", "index"),
    ("signs of life", "heartbeats"),
    ("spoil", "damage"),
    ("surroundings", "shared state"),
    ("take back", "redrive"),
    ("taken ahead", "prefetched"),
    ("taken back", "redriven"),
    ("takes ahead", "prefetches"),
    ("takes back", "redrives"),
    ("teller", "reporter"),
    ("throw away", "discard"),
    ("thrown away", "discarded"),
    ("throws away", "discards"),
    ("ticket", "commit waiter"),
    ("vault", "transaction"),
    ("where nothing is said", "by default"),
];

fn old_words(repository: &Repository) -> Vec<Finding> {
    let is_checked = |file: &&File| !file.is_data() && file.path != file_of_words();
    repository.files.iter().filter(is_checked).flat_map(|file| old_words_of(file, &OLD_WORDS)).collect()
}

/// This file, which has to name the words.
fn file_of_words() -> &'static str {
    "crates/tidy/src/words.rs"
}

fn old_words_of(file: &File, words: &[(&str, &str)]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        let line = line.to_lowercase();
        for (old, new) in words.iter().filter(|(old, _)| begins_a_word(&line, old)) {
            found.push(file.finding(number, format!("{old:?}, a word with a private meaning"), format!("say {new}")));
        }
    }
    found
}

fn begins_a_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric()))
}

#[test]
fn old_words_do_not_come_back() {
    expect_none(old_words);
}

#[test]
fn an_old_word_is_found() {
    let words = [("sign of life", "heartbeat"), ("chronicle", "event log")];
    let text = "a heartbeat\nA Sign of life\nthe_chronicles\nsynchronicle\n";
    let said: Vec<String> = old_words_of(&file("a.md", text), &words).iter().map(Finding::to_string).collect();
    assert_eq!(
        said,
        [
            "a.md:2: \"sign of life\", a word with a private meaning; say heartbeat",
            "a.md:3: \"chronicle\", a word with a private meaning; say event log"
        ]
    );
}
