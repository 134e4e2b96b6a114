//! `redrive flow run`: a flow in this process, without a server.

use super::definition;
use super::result::shown;
use crate::exit::Failed;
use crate::{input, output};
use redrive_flow::{Definition, Effect, Message, Outcome, Start, State, TRANSITIONS};
use redrive_policy::{Ambient, Entropy, Moment, Seeded};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The definition, or - for standard input
    #[arg(value_name = "DEFINITION")]
    definition: PathBuf,
    /// A file with the input, or - for standard input [default: null]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// A file with the arguments, an object [default: none]
    #[arg(long, value_name = "FILE")]
    arguments: Option<PathBuf>,
    /// Do not wait: the clock jumps to the moment at which something happens next
    #[arg(long)]
    virtual_time: bool,
    /// Draw the same random numbers, and give the same id, each time
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print the Result as JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  redrive flow run order.json --input order-17.json
  redrive flow run poll.json --virtual-time
  redrive flow run order.json --input - --json < order-17.json

The exit code is 0 if the flow has ended, with whatever Result.";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let definition = definition(&args.definition, args.json)?;
    if let Some(provider) = definition.providers().next() {
        let message = "the definition calls this provider, which needs a server; put it there and start a run, or call the \
                       mock provider";
        return Err(Failed::invalid(format!("{}: {message}", provider.uri())));
    }
    let document = |path: &Option<PathBuf>| match path {
        Some(path) => input::read(path, None).map_err(Failed::from).map(Some),
        None => Ok(None),
    };
    let input = document(&args.input)?.unwrap_or(Value::Null);
    let arguments = document(&args.arguments)?.unwrap_or_else(|| json!({}));
    let result = match args.seed {
        Some(seed) => to_the_end(&definition, input, arguments, Clock::new(args.virtual_time), Seeded::new(seed)),
        None => to_the_end(&definition, input, arguments, Clock::new(args.virtual_time), Ambient),
    };
    let result = result.map_err(Failed::invalid)?;
    if args.json {
        return output::json_line(&result.to_value());
    }
    output::text(&shown(&result.to_value()))
}

/// The wall clock, or one that jumps.
struct Clock {
    jumped: Option<Moment>,
}

impl Clock {
    fn new(jumps: bool) -> Self {
        let mut clock = Self { jumped: None };
        clock.jumped = jumps.then(|| clock.now());
        clock
    }

    fn now(&self) -> Moment {
        let wall = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Moment::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
        };
        self.jumped.unwrap_or_else(wall)
    }

    fn wait_until(&mut self, at: Moment) {
        if let Some(now) = &mut self.jumped {
            *now = (*now).max(at);
            return;
        }
        // The wall clock may be set while the flow waits, so that it is looked at again.
        loop {
            let left = Duration::from(at.since(self.now()));
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_secs(60)));
        }
    }
}

fn to_the_end(
    definition: &Definition,
    input: Value,
    arguments: Value,
    mut clock: Clock,
    mut entropy: impl Entropy,
) -> Result<Outcome, String> {
    let id = format!("{:013x}", (entropy.draw().value() * (1_u64 << 52) as f64) as u64);
    let started = definition.start(Start { id, input, arguments }, clock.now());
    let mut state: State = started.map_err(|error| error.to_string())?;
    loop {
        let stepped = definition.step(state, Message::Continue, clock.now(), entropy.draw(), TRANSITIONS);
        let (next, effects) = stepped.map_err(|error| error.to_string())?;
        state = next;
        match effects.into_iter().next() {
            Some(Effect::Finish(result)) => return Ok(result),
            Some(Effect::Timer(at)) => clock.wait_until(at),
            Some(Effect::Dispatch(_) | Effect::Withdraw(_)) | None => {
                return Err("the flow waits for nothing, and has not ended".to_owned());
            }
        }
    }
}
