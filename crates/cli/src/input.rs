//! Documents from files and standard input, in JSON, YAML or TOML.

use crate::exit::Failed;
use clap::ValueEnum;
use redrive_policy::wire::{MAX_BYTES, Strict, SyntaxError, parse_json, too_large};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The notation of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Yaml,
    Toml,
}

impl Format {
    const fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
        }
    }
}

/// Why there is no document.
pub(crate) enum ReadError {
    /// It could not be opened or read.
    Unreachable(Failed),
    /// It is not well-formed.
    Malformed(SyntaxError),
}

impl From<ReadError> for Failed {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unreachable(failed) => failed,
            ReadError::Malformed(error) => Self::invalid(error),
        }
    }
}

/// Reads a document; `-` is standard input. The default format follows the extension of the file.
pub(crate) fn read(path: &Path, format: Option<Format>) -> Result<Value, ReadError> {
    let text = read_text(path)?;
    let format = format.unwrap_or_else(|| format_of(path));
    parse(&text, format).map_err(|error| {
        let message = format!("{} is not valid {}: {}", shown(path), format.name(), error.message);
        ReadError::Malformed(SyntaxError { message, ..error })
    })
}

/// The name of a document in messages.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

fn format_of(path: &Path) -> Format {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("yaml" | "yml") => Format::Yaml,
        Some("toml") => Format::Toml,
        _ => Format::Json,
    }
}

/// Reads a text; `-` is standard input.
pub(crate) fn read_text(path: &Path) -> Result<String, ReadError> {
    let unreachable =
        |error: std::io::Error| ReadError::Unreachable(Failed::usage(format!("cannot read {}: {error}", shown(path))));
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).map_err(unreachable)?)
    };
    let mut bytes = Vec::new();
    // One byte more than allowed distinguishes a document that is too large from one that just fits.
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreachable)?;
    if bytes.len() > MAX_BYTES {
        let size = std::fs::metadata(path).map_or(bytes.len(), |meta| meta.len().try_into().unwrap_or(usize::MAX));
        return Err(ReadError::Malformed(too_large(size)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let (line, column) = position(&String::from_utf8_lossy(before), before.len());
        ReadError::Malformed(SyntaxError { line, column, message: format!("{} is not UTF-8 text", shown(path)) })
    })
}

fn parse(text: &str, format: Format) -> Result<Value, SyntaxError> {
    match format {
        Format::Json => parse_json(text),
        Format::Yaml => parse_yaml(text),
        Format::Toml => toml::from_str::<Strict>(text).map(|strict| strict.0).map_err(|error| {
            let (line, column) = error.span().map_or((0, 0), |span| position(text, span.start));
            SyntaxError { line, column, message: first_line(error.message()) }
        }),
    }
}

fn parse_yaml(text: &str) -> Result<Value, SyntaxError> {
    // YAML 1.2: `yes` and `off` are words, not booleans.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options::<Strict>(text, options).map(|strict| strict.0).map_err(|error| {
        let location = error.location();
        let line = location.map_or(0, |at| at.line() as usize);
        let column = location.map_or(0, |at| at.column() as usize);
        let full = first_line(&error.without_snippet().to_string());
        // The message of the parser repeats the position, and names options of its own API.
        let message = full.split(" at line ").next().unwrap_or(&full);
        let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or(message);
        SyntaxError { line, column, message: message.to_owned() }
    })
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

/// Line and column, both from 1, of a byte in a text.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

/// The document that a command works on.
#[derive(clap::Args)]
pub(crate) struct Document {
    /// The file to read, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// The notation of the file [default: by its extension, else json]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
}

impl Document {
    pub(crate) fn read(&self) -> Result<Value, ReadError> {
        read(&self.path, self.format)
    }
}
