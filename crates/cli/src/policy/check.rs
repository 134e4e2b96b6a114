//! `redrive policy check`.

use super::source::{self, Loaded, LostSetting, NotationArg};
use crate::{exit::Failed, input::Document, output};
use redrive_policy::dialect::{Dialect, Warning};
use redrive_policy::lab::explain::summary;
use redrive_policy::lab::lint::lint;
use redrive_policy::lab::schedule::{Track, schedule};
use redrive_policy::{Policy, Problems};
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    document: Document,
    #[command(flatten)]
    dialect: NotationArg,
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
    let Loaded { notation, reading, lost } = source::load(&args.document, args.dialect.notation, args.json)?;
    let mut warnings = lint(notation.dialect(), &reading);
    warnings.extend(lost.into_iter().map(|LostSetting { path, message }| Warning {
        code: "not-imported",
        path,
        message,
        instead: "nothing, if the policy works without it".to_owned(),
    }));
    if args.json {
        return output::json(&json!({
            "valid": true, "dialect": notation.name(), "policy": reading.policy, "warnings": warnings,
        }));
    }
    let text = Checked { policy: reading.policy, warnings }.text();
    output::text(&format!("valid {} policy\n{text}", notation.name()))
}

/// A policy that is valid, and what may surprise about it.
pub(crate) struct Checked {
    pub(crate) policy: Policy,
    pub(crate) warnings: Vec<Warning>,
}

impl Checked {
    /// A policy of a dialect, as a part of a larger document.
    pub(crate) fn of(dialect: Dialect, value: &Value) -> Result<Self, Problems> {
        let reading = dialect.read(value)?;
        let warnings = lint(Some(dialect), &reading);
        Ok(Self { policy: reading.policy, warnings })
    }

    /// The schedule in a line for each rule, and the warnings.
    pub(crate) fn text(&self) -> String {
        text(&self.policy, &self.warnings)
    }
}

fn text(policy: &Policy, warnings: &[Warning]) -> String {
    let mut text = String::new();
    for index in 0..policy.rules.len() {
        let schedule = schedule(policy, index, 0);
        let lead = if policy.rules.len() > 1 { format!("policy {index}: ") } else { String::new() };
        let spent = match (schedule.retries, schedule.total) {
            (Some(0), _) => "the first failure is the last".to_owned(),
            (Some(1), Some(total)) => format!("one retry {}", spread(total)),
            (Some(retries), Some(total)) => format!("{retries} retries, the last {}", spread(total)),
            _ => "no limit on retries".to_owned(),
        };
        text.push_str(&format!("{lead}{}; {spent}\n", summary(policy, index)));
    }
    for Warning { code, path, message, instead } in warnings {
        let path = if path.is_empty() { "(whole policy)" } else { path };
        text.push_str(&format!("\nwarning[{code}] {path}\n    {message}\n    instead: {instead}\n"));
    }
    text
}

fn spread(total: Track) -> String {
    let Track { shortest, mean, longest } = total;
    if shortest == longest {
        format!("after {longest}")
    } else {
        format!("after {shortest} to {longest}, {mean} on average")
    }
}
