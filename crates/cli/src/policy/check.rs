//! `redrive policy check`.

use super::source::{self, DialectArg};
use crate::{exit::Failed, input::Document, output};
use serde_json::json;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    document: Document,
    #[command(flatten)]
    dialect: DialectArg,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive policy check retry.json
  redrive policy check retry.yaml --dialect azolla
  echo '{\"max_attempts\": 5}' | redrive policy check - --json";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let value = source::document(&args.document, args.dialect.dialect, args.json)?;
    let (dialect, reading) = source::policy(&value, args.dialect.dialect).map_err(|refused| refused.tell(args.json))?;
    if args.json {
        return output::json(&json!({
            "valid": true, "dialect": dialect, "policy": reading.policy, "warnings": reading.warnings,
        }));
    }
    output::text(&format!("valid {dialect} policy\n"))
}
