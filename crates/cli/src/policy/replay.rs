//! `redrive policy replay`.

use super::source::{self, DialectArg, Refused};
use crate::{exit::Failed, input::Document, output};
use redrive_policy::dialect::{Dialect, ReadFailure};
use redrive_policy::lab::replay::{Script, Step, replay};
use redrive_policy::{Policy, Seeded};
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
    /// Print JSON for programs; replay always does
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The file holds {\"policy\": …, \"failures\": [ … ]}. A failure is in the dialect's own words:
  ojs         {\"type\": \"external.timeout\", \"code\": \"RETRY\", \"elapsed_ms\": 1500}
  azolla      {\"type\": \"ValueError\", \"retriable\": true, \"elapsed_ms\": 1500}
  taskharbor  {\"type\": \"smtp\", \"unrecoverable\": false}
  exosphere   {} or {\"signal\": \"prune\"} or {\"signal\": \"requeue_after\", \"delay_ms\": 5}
  mwl         {\"code\": \"Provider.Call.Http.Status\", \"type\": \"error\", \"retryable\": true, \"delay\": \"PT5S\"}

Examples:
  redrive policy replay failures.json --dialect ojs --json
  redrive policy replay failures.json --dialect mwl --json --seed 7";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let value = source::document(&args.document, args.dialect.dialect, true)?;
    let replayed = replayed(&value, args.dialect.dialect, args.seed).map_err(|refused| refused.tell(true))?;
    output::json(&replayed.to_json())
}

/// A replay that was carried out.
pub(crate) struct Replayed<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) policy: Policy,
    pub(crate) failures: Vec<ReadFailure<'a>>,
    pub(crate) steps: Vec<Step>,
}

impl Replayed<'_> {
    pub(crate) fn to_json(&self) -> Value {
        // Only MWL has several policies whose positions mean something to its users.
        let rules = self.dialect == Dialect::Mwl;
        let verdicts: Vec<Value> = self.steps.iter().map(|step| step.to_json(rules)).collect();
        json!({ "verdicts": verdicts })
    }
}

pub(crate) fn replayed(value: &Value, dialect: Option<Dialect>, seed: u64) -> Result<Replayed<'_>, Refused> {
    let refused = |dialect| move |problems| Refused { dialect, problems };
    let script = Script::of(value).map_err(refused(dialect))?;
    let (dialect, reading) = source::policy(script.policy, dialect).map_err(Refused::inside_policy)?;
    let failures = script.read_failures(dialect).map_err(refused(Some(dialect)))?;
    let steps = replay(&reading.policy, &failures, &mut Seeded::new(seed));
    Ok(Replayed { dialect, policy: reading.policy, failures, steps })
}
