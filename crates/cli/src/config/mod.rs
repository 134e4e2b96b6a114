//! The configuration of the server: flags, then the environment, then `redrive.toml`, then defaults.

mod build;
mod file;
mod groups;
mod keys;
mod leases;
mod listen;
mod names;
mod page;
mod setting;
mod source;
mod table;

pub(crate) use build::{ServerConfig, StoreLocation};

use crate::{exit::Failed, output};
use clap::Args as ClapArgs;
use serde_json::{Map, Value, json};
use setting::{Kind, Setting, in_toml};
use source::{Origin, Sources};
use std::path::PathBuf;

/// The settings with a flag. All others are set in the file, in the environment, or with `--set`.
#[derive(ClapArgs, Clone, Debug, Default)]
pub(crate) struct Flags {
    /// The address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
    /// The address for Azolla's clients and shepherds (gRPC), such as 127.0.0.1:52710 [default: none]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) azolla_listen: Option<String>,
    /// The folder of the store; created if missing [default: redrive-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// The database of the store, instead of a folder; use REDRIVE_STORE if it contains a password
    #[arg(long, value_name = "postgres://…", conflicts_with = "data")]
    pub(crate) store: Option<String>,
    /// The configuration file [default: redrive.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A file with API keys for callers, one on each line
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<String>,
    /// Obey options.metadata.test_directive of jobs, which the public test suite of Open Job Spec needs
    #[arg(long)]
    pub(crate) allow_test_directives: bool,
    /// The retry policy of jobs that have no other: JSON, YAML or TOML, in any dialect
    #[arg(long, value_name = "FILE")]
    pub(crate) default_policy: Option<String>,
    /// How many jobs may wait in a queue for which nothing else is configured; 0 for any number [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<String>,
    /// Any other setting, such as limits.batch=5000; `redrive config` lists them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

impl Flags {
    /// The settings that have a flag of their own, with its value.
    fn own(&self) -> [(&'static str, Option<String>); 8] {
        [
            ("listen", self.listen.clone()),
            ("azolla_listen", self.azolla_listen.clone()),
            ("data", self.data.clone()),
            ("store", self.store.clone()),
            ("api_key_file", self.api_key_file.clone()),
            ("allow_test_directives", self.allow_test_directives.then(|| "true".to_owned())),
            ("default_policy", self.default_policy.clone()),
            ("max_depth", self.max_depth.clone()),
        ]
    }
}

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Print the page that describes every setting, docs/configuration.md, and nothing of what is in effect
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive config
  REDRIVE_LIMITS_BATCH=5000 redrive config --json
  redrive config --config /etc/redrive.toml --set retention.dead=4320h
  redrive config --markdown > docs/configuration.md";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    if args.markdown {
        return output::text(&page::page());
    }
    let sources = Sources::gather(&args.flags)?;
    let printed = if args.json { output::json(&in_json(&sources)) } else { output::text(&in_text(&sources)) };
    printed.and_then(|()| load_from(&sources).map(drop))
}

/// The configuration that is in effect, checked.
pub(crate) fn load(flags: &Flags) -> Result<ServerConfig, Failed> {
    load_from(&Sources::gather(flags)?)
}

fn load_from(sources: &Sources) -> Result<ServerConfig, Failed> {
    build::build(sources).map_err(|problems| {
        let count = problems.list.len();
        let lead = if count == 1 { "one problem".to_owned() } else { format!("{count} problems") };
        let message = format!("the configuration has {lead}:\n{}", problems.list.join("\n"));
        if problems.is_usage { Failed::usage(message) } else { Failed::invalid(message) }
    })
}

fn in_json(sources: &Sources) -> Value {
    let entry = |(setting, text, origin): (&'static Setting, &str, &Origin)| {
        let hidden = setting.kind == Kind::Secret && !text.is_empty();
        let value = if hidden { "(hidden)" } else { text };
        (setting.key.to_owned(), json!({ "value": value, "from": origin.to_string(), "what": setting.what }))
    };
    let settings: Map<String, Value> = sources.settings().map(entry).collect();
    let mut shown = json!({ "file": sources.file_name(), "settings": settings });
    for part in file::parts() {
        shown[part] = sources.part(part).cloned().unwrap_or_default();
    }
    shown
}

/// Lines for `redrive.toml`, with the origin and the meaning of each value.
fn in_text(sources: &Sources) -> String {
    let lines: Vec<_> =
        sources.settings().map(|(setting, text, origin)| (in_toml(setting, text), origin, setting)).collect();
    let width = lines.iter().map(|(line, _, _)| line.chars().count()).max().unwrap_or(0);
    let widest = lines.iter().map(|(_, origin, _)| origin.to_string().chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (line, origin, setting) in lines {
        text.push_str(&format!("{line:width$}  # {:widest$}  {}\n", origin.to_string(), setting.what));
    }
    let file = sources.file_name().unwrap_or_default();
    for name in file::parts() {
        if let Some(part) = sources.part(name) {
            text.push_str(&format!("# {name} of {file}: {part}\n"));
        }
    }
    text
}
