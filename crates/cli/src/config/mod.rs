//! The configuration of the server: flags, then the environment, then `redrive.toml`, then defaults.

mod build;
mod file;
mod setting;
mod source;

pub(crate) use build::Built;

use crate::{exit::Failed, output};
use clap::Args as ClapArgs;
use serde_json::{Map, Value, json};
use source::{Origin, Sources};
use std::path::PathBuf;

/// What can be said on the command line. Everything else is set in the file, in the environment, or
/// with `--set`.
#[derive(ClapArgs, Clone, Debug, Default)]
pub(crate) struct Flags {
    /// The address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
    /// The folder of the store; made if missing [default: redrive-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// The configuration file [default: redrive.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A file with the keys that admit callers, one on each line
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<String>,
    /// Any other setting, such as limits.batch=5000; `redrive config` lists them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive config
  REDRIVE_LIMITS_BATCH=5000 redrive config --json
  redrive config --config /etc/redrive.toml --set retention.dead=4320h";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let sources = Sources::gather(&args.flags)?;
    let told = if args.json { output::json(&in_json(&sources)) } else { output::text(&in_words(&sources)) };
    told.and_then(|()| load_from(&sources).map(drop))
}

/// The configuration that is in effect, checked.
pub(crate) fn load(flags: &Flags) -> Result<Built, Failed> {
    load_from(&Sources::gather(flags)?)
}

fn load_from(sources: &Sources) -> Result<Built, Failed> {
    build::build(sources).map_err(|problems| {
        let count = problems.len();
        let lead = if count == 1 { "one problem".to_owned() } else { format!("{count} problems") };
        Failed::invalid(format!("the configuration has {lead}:\n{}", problems.join("\n")))
    })
}

fn in_json(sources: &Sources) -> Value {
    let entry = |(key, value, origin): (&'static str, String, &Origin)| {
        (key.to_owned(), json!({ "value": value, "from": origin.to_string() }))
    };
    let settings: Map<String, Value> = sources.settings().map(entry).collect();
    json!({ "file": sources.file_name(), "settings": settings, "policies": sources.policies(), "caps": sources.caps() })
}

fn in_words(sources: &Sources) -> String {
    let width = sources.settings().map(|(key, _, _)| key.len()).max().unwrap_or(0);
    let widest = sources.settings().map(|(_, value, _)| value.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (key, value, origin) in sources.settings() {
        let pad = " ".repeat(widest.saturating_sub(value.chars().count()));
        text.push_str(&format!("{key:width$}  {value}{pad}  {origin}\n"));
    }
    for (name, part) in [("policies", sources.policies()), ("caps", sources.caps())] {
        if let Some(part) = part {
            text.push_str(&format!("{name} = {part}  {}\n", sources.file_name().unwrap_or_default()));
        }
    }
    text
}
