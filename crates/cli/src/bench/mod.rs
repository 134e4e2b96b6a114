//! `redrive bench`: how fast a server is, seen from the outside.

mod drain;
mod fill;
mod http;
mod phase;
mod report;
mod tally;
mod wire;

use crate::client::{Client, Send, ServerArgs};
use crate::{exit::Failed, output};
use phase::{Measured, Phase, Plan};
use serde_json::json;
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How many jobs a phase handles; the slower phases take a half or a fifth of it
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    jobs: u32,
    /// Which phases to run, by their letters [default: all]
    #[arg(long, value_delimiter = ',', value_name = "PHASE")]
    phases: Vec<Phase>,
    /// How many connections the batch worker uses
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    worker_connections: u16,
    /// How many jobs the batch worker claims and settles in one request
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1_000))]
    worker_batch: u16,
    /// How many seconds a phase may take before the run fails
    #[arg(long, default_value_t = 120, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    time_limit: u32,
    /// Leave the completed jobs on the server, to measure with them there
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Phases:
  a   enqueue one by one, 16 connections
  b   enqueue in batches of 100, one after another
  b4  enqueue in batches of 100, 4 connections
  c   claim and ack; a batch worker, which claims and settles many jobs in one request
  c1  claim and ack one by one, 50 connections
  d   every job fails twice without delay and then succeeds; the worker of c
  d1  the same with the worker of c1
  w   workflows: chains of 10 jobs, from the first start to the last ack; the worker of c
  g   workflows: 100 jobs at once and one after them, measured as w
  u   as b, with unique jobs

Every phase verifies its counts; a run with wrong counts prints no figures. The jobs go to queues
of their own, and are removed when their phase is over.

Examples:
  redrive bench
  redrive bench --phases a,c --jobs 200000 --json
  redrive bench --phases b,u                            # what uniqueness costs";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.server.client()?;
    let health = client.ask(Send::Get, "/ojs/v1/health")?;
    let target = http::Target::of(&args.server.server, args.server.api_key()?.as_deref())?;
    let plan = Plan {
        target,
        // Several may start at the same time, on nodes of one store.
        run: format!("{:x}-{:x}", crate::when::now_ms(), std::process::id()),
        worker: drain::WorkerLoad {
            connections: usize::from(args.worker_connections),
            batch: usize::from(args.worker_batch),
        },
        limit: Duration::from_secs(args.time_limit.into()),
    };
    let phases = if args.phases.is_empty() { Phase::ALL.to_vec() } else { args.phases.clone() };
    let mut measured = Vec::new();
    for phase in phases {
        eprintln!("{}: {} …", phase.letter(), phase.title(&plan));
        let phase = measure(&client, &plan, phase, args.jobs as usize)?;
        if !args.keep {
            remove_jobs(&client, &phase.queue)?;
        }
        measured.push(phase);
    }
    if args.json {
        return output::json(&report::to_json(&plan, &measured, &health));
    }
    output::text(&report::table(&plan, &measured))
}

/// Removes the jobs of a phase; the server removes a limited number at a time.
fn remove_jobs(client: &Client, queue: &str) -> Result<(), Failed> {
    let request = json!({ "filter": { "state": "completed", "queue": queue }, "confirm": true });
    loop {
        let answer = client.ask(Send::Post(&request), "/ojs/v1/admin/jobs/bulk/delete")?;
        let count = |key: &str| answer[key].as_u64().unwrap_or(0);
        if count("remaining") == 0 || count("succeeded") == 0 {
            return Ok(());
        }
    }
}

/// One phase, and the server's own count beside ours.
fn measure(client: &Client, plan: &Plan, phase: Phase, jobs: usize) -> Result<Measured, Failed> {
    let broken = |failed: Failed| Failed {
        message: format!("the counts of phase {} are wrong, so it has no figures: {}", phase.letter(), failed.message),
        ..failed
    };
    let measured = phase::run(plan, phase, jobs).map_err(broken)?;
    let stats = client.ask(Send::Get, &format!("/ojs/v1/queues/{}/stats", measured.queue))?;
    phase::check_count(&stats["stats"], measured.jobs).map_err(broken)?;
    Ok(measured)
}
