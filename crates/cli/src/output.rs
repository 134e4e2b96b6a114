//! What goes to standard output.

use crate::exit::Failed;
use serde_json::Value;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Prints a document for programs.
pub(crate) fn json(value: &Value) -> Result<(), Failed> {
    text(&format!("{value:#}\n"))
}

/// Prints text for people. A reader that has seen enough (`| head`) is not an error.
pub(crate) fn text(text: &str) -> Result<(), Failed> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failed::invalid(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a picture or a page, and says where it is.
pub(crate) fn file(path: &Path, content: &str) -> Result<(), Failed> {
    std::fs::write(path, content)
        .map_err(|error| Failed::usage(format!("cannot write {}: {error}", path.display())))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// A table for people: the first line is the head, the first column is to the left, all others are
/// to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    aligned(rows, |column| column == 0)
}

/// A table of words: the first line is the head, all columns are to the left.
pub(crate) fn listing(rows: &[Vec<String>]) -> String {
    aligned(rows, |_| true)
}

fn aligned(rows: &[Vec<String>], left: impl Fn(usize) -> bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
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
