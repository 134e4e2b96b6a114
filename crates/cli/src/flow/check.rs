//! `redrive flow check`.

use super::definition;
use crate::{exit::Failed, output};
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The definition, or - for standard input
    #[arg(value_name = "DEFINITION")]
    definition: PathBuf,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive flow check order.json
  redrive flow check - --json < order.json";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let counts = definition(&args.definition, args.json)?.counts();
    if args.json {
        return output::json(&json!({
            "valid": true,
            "flows": counts.flows, "steps": counts.steps, "calls": counts.calls, "middleware": counts.middleware,
        }));
    }
    let part = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    output::text(&format!(
        "valid definition: {}, {}, {}, {}\n",
        part(counts.flows, "flow", "flows"),
        part(counts.steps, "step", "steps"),
        part(counts.calls, "call", "calls"),
        part(counts.middleware, "middleware entry", "middleware entries"),
    ))
}
