//! `redrive policy explain`: the verdicts of a replay in sentences.

use super::example::Example;
use super::replay::{Replayed, failure_dialect, run_replay};
use super::source::{self, Loaded, NotationArg};
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
    dialect: NotationArg,
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
    let value = source::document(&args.document, args.dialect.notation, args.json)?;
    let alone = value.get("failures").is_none();
    let script = if alone { repeated_failure(&value, args)? } else { value };
    let replayed =
        run_replay(&script, args.dialect.notation, args.seed).map_err(|refused| refused.report(args.json))?;
    if args.json {
        return output::json(&replayed.to_json());
    }
    let more = if alone { continuation(&replayed) } else { None };
    output::text(&format!("{}{}", text(&replayed), more.unwrap_or_default()))
}

/// The same failure again and again, for a document without failures.
fn repeated_failure(policy: &Value, args: &Args) -> Result<Value, Failed> {
    let loaded = source::policy(policy, args.dialect.notation).map_err(|refused| refused.report(args.json))?;
    let Loaded { notation, reading, .. } = loaded;
    let Example { type_name, code, retryable } = Example::of(&reading.policy);
    let named = |example: String| args.failure_type.clone().unwrap_or(example);
    let failure = match failure_dialect(notation) {
        Dialect::Ojs | Dialect::TaskHarbor | Dialect::Azolla => json!({ "type": named(type_name) }),
        Dialect::Exosphere => json!({}),
        Dialect::Mwl => {
            let code = if code.is_empty() { "Provider.Call.Failed".to_owned() } else { code };
            json!({ "code": named(code), "type": type_name, "retryable": retryable })
        }
    };
    Ok(json!({ "policy": policy, "failures": vec![failure; args.times as usize] }))
}

/// A line that says that the policy continues after the list.
fn continuation(replayed: &Replayed<'_>) -> Option<String> {
    let last = replayed.steps.last().filter(|step| step.verdict.delay().is_some())?;
    let shown = replayed.steps.len();
    let policy = &replayed.policy;
    let rule = policy.rules.get(last.verdict.rule.unwrap_or(0))?;
    let retries = match policy.max_retries(rule) {
        Some(retries) => format!("{retries} retries in all"),
        None => "no limit on retries".to_owned(),
    };
    Some(format!(
        "That is not the end: {shown} failures are shown, and the policy has {retries}; --times shows more.\n"
    ))
}

fn text(replayed: &Replayed<'_>) -> String {
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
