//! `redrive policy convert`.

use super::source::{self, Loaded, LostSetting};
use crate::{exit::Failed, input::Document, output};
use redrive_policy::dialect::{Dialect, Warning};
use redrive_policy::notation::Notation;
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    document: Document,
    /// The dialect of the file, or to import: temporal, sidekiq, celery, bullmq, faktory, oban
    /// [default: recognised from the shape]
    #[arg(long, value_name = "DIALECT")]
    from: Option<Notation>,
    /// The dialect to write: ojs, azolla, taskharbor, exosphere or mwl
    #[arg(long, value_name = "DIALECT")]
    to: Dialect,
    /// Fail with exit code 1 when anything is lost
    #[arg(long)]
    strict: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive policy convert retry.json --from azolla --to ojs
  redrive policy convert retry.yaml --to mwl --json --strict
  echo '{\"retry\": 10}' | redrive policy convert - --from sidekiq --to ojs";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let Loaded { notation, reading, mut lost } = source::load(&args.document, args.from, args.json)?;
    let writing = args.to.write(&reading.policy);
    lost.extend(writing.lost.into_iter().map(|loss| LostSetting::of(loss, notation)));
    if args.json {
        let lost: Vec<Value> = lost.iter().map(LostSetting::to_json).collect();
        output::json(&json!({ "policy": writing.value, "lost": lost, "warnings": writing.warnings }))?;
    } else {
        output::text(&format!("{:#}\n", writing.value))?;
        for LostSetting { path, message } in &lost {
            let path = if path.is_empty() { "(whole policy)" } else { path };
            eprintln!("lost: {path}: {message}");
        }
        for Warning { code, path, message, instead } in &writing.warnings {
            eprintln!("warning[{code}] {path}: {message}; instead: {instead}");
        }
    }
    if args.strict && !lost.is_empty() { Err(Failed::already_reported()) } else { Ok(()) }
}
