//! `redrive policy replay`.

use super::source::{self, Loaded, NotationArg, Refused};
use crate::{exit::Failed, input::Document, output};
use redrive_policy::dialect::{Dialect, ReadFailure};
use redrive_policy::lab::replay::{Script, Step, replay};
use redrive_policy::notation::Notation;
use redrive_policy::{Policy, Seeded};
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
    /// Print JSON for programs; replay always does
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The file holds {\"policy\": …, \"failures\": [ … ]}. A failure is written in the dialect:
  ojs         {\"type\": \"external.timeout\", \"code\": \"RETRY\", \"elapsed_ms\": 1500}
  azolla      {\"type\": \"ValueError\", \"retriable\": true, \"elapsed_ms\": 1500}
  taskharbor  {\"type\": \"smtp\", \"unrecoverable\": false}
  exosphere   {} or {\"signal\": \"prune\"} or {\"signal\": \"requeue_after\", \"delay_ms\": 5}
  mwl         {\"code\": \"Provider.Call.Http.Status\", \"type\": \"error\", \"retryable\": true, \"delay\": \"PT5S\"}
For imported settings (temporal, sidekiq, …) it is written as for ojs.

Examples:
  redrive policy replay failures.json --dialect ojs --json
  redrive policy replay failures.json --dialect mwl --json --seed 7";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let value = source::document(&args.document, args.dialect.notation, true)?;
    let replayed = run_replay(&value, args.dialect.notation, args.seed).map_err(|refused| refused.report(true))?;
    output::json(&replayed.to_json())
}

/// The result of a replay.
pub(crate) struct Replayed<'a> {
    pub(crate) notation: Notation,
    pub(crate) policy: Policy,
    pub(crate) failures: Vec<ReadFailure<'a>>,
    pub(crate) steps: Vec<Step>,
}

impl Replayed<'_> {
    pub(crate) fn to_json(&self) -> Value {
        // Only MWL has several policies whose positions mean something to its users.
        let rules = self.notation == Notation::Dialect(Dialect::Mwl);
        let verdicts: Vec<Value> = self.steps.iter().map(|step| step.to_json(rules)).collect();
        json!({ "verdicts": verdicts })
    }
}

pub(crate) fn run_replay(value: &Value, notation: Option<Notation>, seed: u64) -> Result<Replayed<'_>, Refused> {
    let refused = |notation| move |problems| Refused { notation, problems };
    let script = Script::of(value).map_err(refused(notation))?;
    let loaded = source::policy(script.policy, notation).map_err(|refused| refused.inside("/policy"))?;
    let Loaded { notation, reading, .. } = loaded;
    let failures = script.read_failures(failure_dialect(notation)).map_err(refused(Some(notation)))?;
    let steps = replay(&reading.policy, &failures, &mut Seeded::new(seed));
    Ok(Replayed { notation, policy: reading.policy, failures, steps })
}

/// The dialect in which failures are written; imported settings use that of OJS.
pub(super) fn failure_dialect(notation: Notation) -> Dialect {
    notation.dialect().unwrap_or(Dialect::Ojs)
}
