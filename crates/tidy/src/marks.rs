//! What a work in progress leaves behind: marks, code in comments, paths of one machine.

use crate::repository::{File, Finding, Repository, expect_none, file};

/// Taken apart, so that this file has none of them.
const MARKS: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("dbg", "!("),
    concat!("todo", "!("),
];
/// Folders that exist on one machine only.
const MACHINES: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

fn marks(repository: &Repository) -> Vec<Finding> {
    repository.files.iter().filter(|file| !file.is_data()).flat_map(marks_of).collect()
}

fn marks_of(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        for mark in MARKS.iter().filter(|mark| has_word(line, mark)) {
            found.push(file.finding(number, format!("the mark {mark}"), "finish the work, or say what is missing"));
        }
        for folder in MACHINES.iter().filter(|folder| is_path(line, folder)) {
            let instead = "name it from the root of the repository, or make it a parameter";
            found.push(file.finding(number, format!("a path below {folder}, which is one machine's"), instead));
        }
        if file.kind() == "rs" && is_commented_code(line) {
            found.push(file.finding(number, "code in a comment", "delete it; git remembers it"));
        }
    }
    found
}

/// Whether the mark stands there as a word of its own, with a colon after it, but not the `mktemp …XXXXXX`.
fn has_word(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + mark.len()..].chars().next());
        let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        !is_letter(before) && (mark.ends_with('(') || !is_letter(after))
    })
}

/// Whether an absolute path begins there. In a relative path or an address, something stands before the folder.
fn is_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"._-/}*".contains(before))
    })
}

/// A comment that reads as a statement: a sentence may end in a semicolon, but not with a call before it.
fn is_commented_code(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    if comment.starts_with(['/', '!']) {
        return false;
    }
    let comment = comment.trim();
    let is_statement = comment.ends_with(");") || comment.ends_with("?;") || comment.ends_with("];");
    let is_binding = comment.starts_with("let ") && comment.ends_with(';');
    let is_block = comment.ends_with(" {") || comment == "}" || comment == "});";
    let is_attribute = comment.starts_with("#[") && comment.ends_with(']');
    is_statement || is_binding || is_block || is_attribute
}

#[test]
fn nothing_is_left_over() {
    expect_none(marks);
}

#[test]
fn marks_paths_and_code_in_comments_are_found() {
    let found = |text: &str| !marks_of(&file("a.rs", text)).is_empty();
    for mark in MARKS {
        assert!(found(&format!("// {mark}")), "{mark}");
    }
    for folder in MACHINES {
        assert!(found(&format!("let path = \"{folder}x\";")), "{folder}");
        assert!(!found(&format!("let path = \"docs{folder}x\";")), "{folder}");
    }
    for code in ["// let x = 1;", "// run(1);", "// run()?;", "// if x {", "// }", "// #[test]"] {
        assert!(found(code), "{code}");
    }
    for fine in ["run(1);", "// it runs;", "/// let x = 1;", "// see `run(1);` above", "mktemp redrive.XXXXXX"] {
        assert!(!found(fine), "{fine}");
    }
}
