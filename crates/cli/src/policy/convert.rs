//! `redrive policy convert`.

use super::source::{self};
use crate::{exit::Failed, input::Document, output};
use redrive_policy::dialect::Dialect;
use serde_json::json;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    document: Document,
    /// The dialect of the file [default: recognised from the shape]
    #[arg(long, value_name = "DIALECT")]
    from: Option<Dialect>,
    /// The dialect to write
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
  redrive policy convert retry.yaml --to mwl --json --strict";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let value = source::document(&args.document, args.from, args.json)?;
    let (from, reading) = source::policy(&value, args.from).map_err(|refused| refused.tell(args.json))?;
    let writing = args.to.write(&reading.policy);
    let lost: Vec<_> = writing.lost.into_iter().map(|loss| loss.seen_from(from)).collect();
    if args.json {
        output::json(&json!({ "policy": writing.value, "lost": lost }))?;
    } else {
        output::text(&format!("{:#}\n", writing.value))?;
        for loss in &lost {
            eprintln!("lost: {}: {}", loss.path, loss.message);
        }
    }
    if args.strict && !lost.is_empty() { Err(Failed::told()) } else { Ok(()) }
}
