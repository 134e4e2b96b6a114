//! Standard output.

use crate::exit::Failed;
use rustix::termios::tcgetwinsize;
use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Prints a document for programs.
pub(crate) fn json(value: &Value) -> Result<(), Failed> {
    bytes(format!("{value:#}\n").as_bytes())
}

/// Prints a document for programs on one line.
pub(crate) fn json_line(value: &Value) -> Result<(), Failed> {
    bytes(format!("{value}\n").as_bytes())
}

/// Prints text for people. Parts of it may come from a job, so control characters are escaped.
pub(crate) fn text(text: &str) -> Result<(), Failed> {
    bytes(plain(text).as_bytes())
}

/// Text without control characters, and without characters that change the direction of writing: both are escaped.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let commands = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if commands(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// A JSON value as people read it; what is absent is empty.
pub(crate) fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text).into_owned(),
        other => other.to_string(),
    }
}

/// Writes to standard output. A closed pipe (`| head`) is not an error.
pub(crate) fn bytes(content: &[u8]) -> Result<(), Failed> {
    line_while_open(content).map(drop)
}

/// Writes to standard output; false if it is a pipe that is closed, for commands that would go on.
pub(crate) fn line_while_open(content: &[u8]) -> Result<bool, Failed> {
    match io::stdout().lock().write_all(content) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failed::invalid(format!("cannot write to standard output: {error}"))),
    }
}

/// The entries of a list in an answer.
pub(crate) fn entries<'a>(answer: &'a Value, key: &str) -> &'a [Value] {
    answer[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A list for people: the head, and a row for each entry.
pub(crate) fn list<T, const N: usize>(head: [&str; N], entries: &[T], row: impl Fn(&T) -> [String; N]) -> String {
    let rows: Vec<Vec<String>> = entries.iter().map(|entry| row(entry).to_vec()).collect();
    listing(&[vec![head.map(str::to_owned).to_vec()], rows].concat())
}

/// What is known of something, one fact on each line: the name of each, and the key under which it is.
pub(crate) fn facts(document: &Value, facts: &[(&str, &str)]) -> String {
    let known = facts.iter().filter(|(_, key)| !document[*key].is_null());
    let rows: Vec<Vec<String>> = known.map(|(fact, key)| vec![(*fact).to_owned(), word(&document[*key])]).collect();
    listing(&rows)
}

/// Whether the output file is standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes a picture or a page, and prints its path; `-` is standard output.
pub(crate) fn file(path: &Path, content: &str) -> Result<(), Failed> {
    if is_stdout(path) {
        return bytes(content.as_bytes());
    }
    std::fs::write(path, content)
        .map_err(|error| Failed::usage(format!("cannot write {}: {error}", path.display())))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// A table for people: the first row is the head; the first column is aligned left, all others right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    aligned(rows, |column| column == 0)
}

/// A table of words: the first row is the head; all columns are aligned left. On a terminal the widest cells are cut to
/// its width; the first column stays whole.
pub(crate) fn listing(rows: &[Vec<String>]) -> String {
    match terminal_width() {
        Some(width) => aligned(&fitted(rows, width), |_| true),
        None => aligned(rows, |_| true),
    }
}

/// The width of the terminal; `None` if standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| tcgetwinsize(&stdout).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The rows with their widest cells cut so that every line fits into `width`.
fn fitted(rows: &[Vec<String>], width: usize) -> Vec<Vec<String>> {
    /// A narrower column is of no use.
    const NARROWEST: usize = 8;
    let mut widths = widths(rows);
    let gaps = 2 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        let widest = widths.iter_mut().skip(1).filter(|cell| **cell > NARROWEST).max_by_key(|cell| **cell);
        let Some(widest) = widest else { break };
        *widest -= 1;
    }
    let cut = |(cell, width): (&String, &usize)| match cell.chars().count() > *width {
        true => cell.chars().take(width - 1).chain(['…']).collect(),
        false => cell.clone(),
    };
    rows.iter().map(|row| row.iter().zip(&widths).map(cut).collect()).collect()
}

/// Whether every line of a text fits into `width`.
pub(crate) fn fits(text: &str, width: usize) -> bool {
    text.lines().all(|line| line.chars().count() <= width)
}

/// How wide each column is.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    (0..columns).map(width).collect()
}

fn aligned(rows: &[Vec<String>], left: impl Fn(usize) -> bool) -> String {
    let widths = widths(rows);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            let gap = if column == 0 { "" } else { "  " };
            line.push_str(&if left(column) { format!("{gap}{cell}{pad}") } else { format!("{gap}{pad}{cell}") });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("two\nlines\tand ünïcode"), "two\nlines\tand ünïcode");
        assert_eq!(plain("\u{1b}[2J\r\u{9b}1m\u{202e}x"), "\\u{1b}[2J\\u{d}\\u{9b}1m\\u{202e}x");
    }

    #[test]
    fn a_table_fits_into_the_terminal_and_its_ids_stay_whole() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["ID", "TYPE", "LAST ERROR"]), row(["0192f0c1", "mail.send", &"x".repeat(90)])];
        let fitting = aligned(&fitted(&rows, 40), |_| true);
        assert!(fitting.lines().all(|line| line.chars().count() <= 40), "{fitting}");
        assert!(fitting.contains("0192f0c1  mail.send  xxx") && fitting.contains('…'), "{fitting}");
        assert_eq!(fitted(&rows, 200), rows, "nothing is cut if there is room");
        assert!(aligned(&fitted(&rows, 5), |_| true).contains("0192f0c1  mail.se…  xxxxxxx…"));
    }
}
