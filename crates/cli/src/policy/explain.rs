//! `redrive policy explain`: the verdicts of a replay in sentences.

use super::replay::{Replayed, replayed};
use super::source::{self, DialectArg};
use crate::{exit::Failed, input::Document, output};
use redrive_policy::dialect::Dialect;
use redrive_policy::lab::explain::{because, headline, time_line};
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    document: Document,
    #[command(flatten)]
    dialect: DialectArg,
    /// The seed of the random draws: the same seed gives the same delays
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// For a file with a policy alone: the type or code of every failure
    #[arg(long = "type", value_name = "TYPE")]
    failure_type: Option<String>,
    /// For a file with a policy alone: how many failures at most
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    times: u32,
    /// Print the verdicts as JSON, as replay does
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The file holds a policy, or {\"policy\": …, \"failures\": [ … ]} as for replay.

Examples:
  redrive policy explain retry.json --type external.timeout --times 5
  redrive policy explain failures.json --dialect mwl --seed 7";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let value = source::document(&args.document, args.dialect.dialect, args.json)?;
    let script = if value.get("failures").is_some() { value } else { script_of(&value, args)? };
    let replayed = replayed(&script, args.dialect.dialect, args.seed).map_err(|refused| refused.tell(args.json))?;
    if args.json {
        return output::json(&replayed.to_json());
    }
    output::text(&told(&replayed))
}

/// The same failure again and again, for a policy that came without any.
fn script_of(policy: &Value, args: &Args) -> Result<Value, Failed> {
    let (dialect, _) = source::policy(policy, args.dialect.dialect).map_err(|refused| refused.tell(args.json))?;
    let named = |default: &str| args.failure_type.clone().unwrap_or_else(|| default.to_owned());
    let failure = match dialect {
        Dialect::Ojs | Dialect::TaskHarbor => json!({ "type": named("error") }),
        Dialect::Azolla => json!({ "type": named("ValueError") }),
        Dialect::Exosphere => json!({}),
        Dialect::Mwl => json!({ "code": named("Provider.Call.Failed") }),
    };
    Ok(json!({ "policy": policy, "failures": vec![failure; args.times as usize] }))
}

fn told(replayed: &Replayed<'_>) -> String {
    let mut text = String::new();
    for (step, read) in replayed.steps.iter().zip(&replayed.failures) {
        let failure = &read.failure;
        let name = if failure.code.is_empty() { failure.type_name } else { failure.code };
        let when = if step.elapsed.is_zero() { String::new() } else { format!(" after {}", step.elapsed) };
        text.push_str(&format!(
            "Attempt {} failed{when} ({name}): {}\n",
            step.verdict.attempt,
            headline(&step.verdict)
        ));
        for sentence in because(&replayed.policy, failure, step) {
            text.push_str(&format!("    {sentence}\n"));
        }
    }
    text.push_str(&format!("\n{}\n", time_line(&replayed.steps, 60)));
    text
}
