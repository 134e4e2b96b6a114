//! Widths, blanks at ends of lines, ends of files, and sizes of files.

use crate::repository::{File, Finding, Repository, expect_none, file};

/// That of rustfmt.toml, for what rustfmt leaves alone: comments, pages, scripts.
const WIDTH: usize = 120;
/// A line with a text in quotes may be this wide: a message in one piece is found by searching for it.
const WIDTH_WITH_TEXT: usize = 160;
/// The most lines of a source file.
const LINES: usize = 400;
/// Source files that may have more lines, each with its reason.
const LONG_FILES: [(&str, &str); 1] =
    [("crates/store/tests/memory/flawed.rs", "a list of flaws, and one place for each of them")];

fn long_lines(repository: &Repository) -> Vec<Finding> {
    repository.files.iter().filter(|file| !file.is_data()).flat_map(long_lines_of).collect()
}

fn long_lines_of(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in file.lines() {
        let trimmed = line.trim_start();
        if file.kind() == "md" && trimmed.starts_with("```") {
            fenced = !fenced;
        }
        let comment = trimmed.trim_start_matches(['/', '!', '#']).trim_start();
        let is_whole = comment.starts_with('|') || trimmed.starts_with("![");
        let is_text = line.contains(['"', '\'']) || line.ends_with('\\');
        let is_prose = file.kind() == "md" || trimmed.starts_with("//") || trimmed.starts_with("# ");
        let allowed = match () {
            () if is_whole || fenced => usize::MAX,
            () if !is_prose && is_text => WIDTH_WITH_TEXT,
            () => WIDTH,
        };
        let width = line.chars().count();
        if width > allowed {
            let said = format!("a line of {width} characters");
            found.push(file.finding(number, said, format!("break it at {allowed}")));
        }
    }
    found
}

fn blank_ends(repository: &Repository) -> Vec<Finding> {
    repository.files.iter().filter(|file| !file.is_data()).flat_map(blank_ends_of).collect()
}

fn blank_ends_of(file: &File) -> Vec<Finding> {
    // By line feeds: `lines` would take a carriage return for a part of the end.
    let mut found: Vec<Finding> = (1..)
        .zip(file.text.split('\n'))
        .filter(|(_, line)| line.ends_with([' ', '\t', '\r']))
        .map(|(number, _)| file.finding(number, "blanks at the end of the line", "delete them"))
        .collect();
    let last = file.text.lines().count();
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        found.push(file.finding(last, "no end of line at the end of the file", "add one"));
    }
    if file.text.ends_with("\n\n") {
        found.push(file.finding(last, "an empty line at the end of the file", "delete it"));
    }
    found
}

fn long_files(repository: &Repository) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in repository.files.iter().filter(|file| file.kind() == "rs" && !file.is_data()) {
        let lines = file.text.lines().count();
        let may_be_long = LONG_FILES.iter().any(|(path, _)| *path == file.path);
        if lines > LINES && !may_be_long {
            let instead = format!("split it where it changes the subject, or add it to {} with a reason", file!());
            found.push(file.finding(LINES, format!("{lines} lines in one file, allowed are {LINES}"), instead));
        }
        if lines <= LINES && may_be_long {
            found.push(file.finding(1, "a short file in the list of long ones", format!("take it out of {}", file!())));
        }
    }
    found
}

#[test]
fn lines_fit_the_width() {
    expect_none(long_lines);
}

#[test]
fn lines_and_files_end_without_blanks() {
    expect_none(blank_ends);
}

#[test]
fn source_files_are_short() {
    expect_none(long_files);
}

#[test]
fn a_long_line_is_found_unless_it_is_a_table_a_fence_or_a_text() {
    let (prose, cell) = ("word ".repeat(25), format!("| {} |", "word ".repeat(25)));
    let page = file("a.md", &format!("short\n{prose}\n{cell}\n```\n{prose}\n```\n"));
    assert_eq!(long_lines_of(&page), [page.finding(2, "a line of 125 characters", "break it at 120")]);

    let text = format!("    call(\"{prose}\");");
    let source = file("a.rs", &format!("// {prose}\n/// {cell}\n{text}\n{text}{text}\n"));
    let found: Vec<String> = long_lines_of(&source).iter().map(Finding::to_string).collect();
    assert_eq!(
        found,
        ["a.rs:1: a line of 128 characters; break it at 120", "a.rs:4: a line of 276 characters; break it at 160"]
    );
}

#[test]
fn blanks_at_ends_are_found() {
    let found = |text| blank_ends_of(&file("a.rs", text)).len();
    assert_eq!(found("fine\n\nfine\n"), 0);
    assert_eq!(found("blank \ntab\t\nreturn\r\n"), 3);
    assert_eq!(found("no end"), 1);
    assert_eq!(found("empty line\n\n"), 1);
}

#[test]
fn a_long_file_is_found() {
    let repository = crate::repository::repository(&[("a.rs", &"x\n".repeat(401)), ("b.rs", &"x\n".repeat(400))]);
    assert_eq!(long_files(&repository).len(), 1);
}
