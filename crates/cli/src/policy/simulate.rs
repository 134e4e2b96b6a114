//! `redrive policy simulate`.

use super::example::Example;
use super::source::{self, Loaded, NotationArg};
use crate::input::{Document, Format, shown};
use crate::{exit::Failed, output};
use indicatif::{ProgressBar, ProgressStyle};
use redrive_policy::dialect::{go_duration, iso_duration};
use redrive_policy::lab::picture::{Candidate, simulation_html, simulation_svg, simulation_text};
use redrive_policy::lab::simulate::{Arrival, Outcome, Scenario, simulate};
use redrive_policy::notation::Notation;
use redrive_policy::{Policy, Span};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The policies to compare, each from a file, or - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The notation of the files [default: by their extension, else json]
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    dialect: NotationArg,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Draw the attempts over time as a picture; - prints the picture and nothing else
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write one page with the charts, the figures and what they mean; - prints the page and nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct ScenarioArgs {
    /// How many jobs there are
    #[arg(long, default_value_t = 10_000)]
    jobs: u32,
    /// How many jobs arrive each second [default: all at once]
    #[arg(long, value_name = "PER_SECOND")]
    arrival_rate: Option<f64>,
    /// How long the dependency is down, from time 0: 90s, 10m, 1h30m, PT5M
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    outage: Span,
    /// How many attempts the dependency serves each second once it is back [default: all]
    #[arg(long, value_name = "PER_SECOND")]
    capacity: Option<u32>,
    /// The share of served attempts that still fail, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    failure_rate: f64,
    /// The error type of every failure [default: one that the policy retries]
    #[arg(long = "type", value_name = "TYPE")]
    failure_type: Option<String>,
    /// The code of every failure [default: one that the policy retries]
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// The seed: the same seed gives the same outcome
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// When the simulation ends, counted from time 0
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "24h")]
    horizon: Span,
}

const EXAMPLES: &str = "\
Examples:
  redrive policy simulate retry.json --jobs 10000 --outage 10m --capacity 500
  redrive policy simulate today.json better.json --outage 30m --capacity 200 --html compare.html
  redrive policy simulate retry.json --jobs 1000000 --outage 1h --capacity 5000 --json";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let printed = [&args.svg, &args.html].into_iter().flatten().filter(|path| output::is_stdout(path)).count();
    if printed + usize::from(args.json) > 1 {
        return Err(Failed::usage("--svg -, --html - and --json each print one document; use one of them"));
    }
    let mut simulated = Vec::new();
    for path in &args.files {
        let document = Document { path: path.clone(), format: args.format };
        let Loaded { notation, reading, .. } = source::load(&document, args.dialect.notation, args.json)?;
        let scenario = args.scenario.scenario_for(&reading.policy);
        let outcome = with_progress(&shown(path), |progress| simulate(&scenario, &reading.policy, progress))
            .map_err(|problems| Failed::usage(format!("this cannot be simulated:\n{problems}")))?;
        simulated.push(Simulated { name: shown(path), notation, policy: reading.policy, scenario, outcome });
    }
    let candidates: Vec<Candidate<'_>> = simulated.iter().map(Simulated::candidate).collect();
    let scenario = &simulated[0].scenario;
    if let Some(path) = &args.svg {
        output::file(path, &simulation_svg(scenario, &candidates))?;
    }
    if let Some(path) = &args.html {
        output::file(path, &simulation_html(scenario, &candidates))?;
    }
    if printed > 0 {
        return Ok(());
    }
    if args.json {
        let policies: Vec<Value> = simulated.iter().map(Simulated::to_json).collect();
        return output::json(&json!({ "policies": policies }));
    }
    output::text(&simulation_text(scenario, &candidates, 80))
}

/// One policy, and its outcome.
struct Simulated {
    name: String,
    notation: Notation,
    policy: Policy,
    scenario: Scenario,
    outcome: Outcome,
}

impl Simulated {
    fn candidate(&self) -> Candidate<'_> {
        Candidate { name: &self.name, policy: &self.policy, outcome: &self.outcome }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name, "dialect": self.notation.name(), "scenario": self.scenario, "outcome": self.outcome,
        })
    }
}

impl ScenarioArgs {
    /// The scenario; the default failure is one that the policy retries.
    fn scenario_for(&self, policy: &Policy) -> Scenario {
        let example = Example::of(policy);
        Scenario {
            jobs: self.jobs,
            arrival: self.arrival_rate.map_or(Arrival::AllAtOnce, Arrival::PerSecond),
            outage: self.outage,
            capacity_per_s: self.capacity,
            failure_rate_after: self.failure_rate,
            failure_type: self.failure_type.clone().unwrap_or(example.type_name),
            failure_code: self.code.clone().unwrap_or(example.code),
            failure_retryable: example.retryable,
            seed: self.seed,
            horizon: self.horizon,
        }
    }
}

/// Shows a progress bar on a terminal if the work takes long.
fn with_progress<T>(name: &str, work: impl FnOnce(&(dyn Fn(f64) + Sync)) -> T) -> T {
    const SHOW_AFTER: Duration = Duration::from_millis(400);
    let bar = ProgressBar::new(1_000).with_message(name.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {percent} %") {
        bar.set_style(style);
    }
    let start = Instant::now();
    let done = work(&|share: f64| {
        if start.elapsed() > SHOW_AFTER {
            bar.set_position((share * 1_000.0) as u64);
        }
    });
    bar.finish_and_clear();
    done
}

/// A duration on the command line: Go's form, days too, or ISO 8601.
fn duration(text: &str) -> Result<Span, String> {
    let days = || text.strip_suffix('d')?.parse::<f64>().ok().filter(|days| *days >= 0.0);
    go_duration(text)
        .or_else(|| iso_duration(text).map(|parsed| parsed.span))
        .or_else(|| days().map(|days| Span::from_secs(86_400).times(days)))
        .ok_or_else(|| "a duration is written like 90s, 10m, 1h30m, 2d or PT5M".to_owned())
}
