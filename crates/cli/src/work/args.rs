//! The options of `redrive work`.

use super::guard::Guard;
use super::process::CommandSpec;
use super::size;
use crate::client::ServerArgs;
use crate::enqueue::policy_document;
use crate::exit::Failed;
use crate::input::Format;
use crate::when;
use clap::builder::ArgPredicate;
use redrive_policy::Span;
use redrive_policy::dialect::Dialect;
use redrive_worker::{Client, Retry};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The shell command that runs for each job: the job as JSON on its standard input, its standard
    /// output as the result
    #[arg(long, value_name = "COMMAND", required_unless_present = "azolla_worker")]
    exec: Option<String>,
    /// A worker of Azolla that runs for each task, without a shepherd
    #[arg(long, value_name = "BINARY", conflicts_with = "exec")]
    pub(super) azolla_worker: Option<String>,
    /// A queue to claim jobs from; several are tried in the order given
    #[arg(long = "queue", value_name = "NAME", default_value = "default")]
    #[arg(default_value_if("azolla_worker", ArgPredicate::IsPresent, "azolla.default.default"))]
    pub(super) queues: Vec<String>,
    /// Run only jobs of this type, or of several; others are released for other workers
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) types: Vec<String>,
    /// How many commands run at once [default: as many as there are processors]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: Option<u16>,
    /// How long one command may take; then its whole process group is ended. The timeout of the job or
    /// the server applies too
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Span>,
    /// How long a command may take to end after SIGTERM before it is killed with SIGKILL
    #[arg(long, value_name = "DURATION", value_parser = when::duration, default_value = "2s")]
    kill_after: Span,
    /// How long running commands may continue when this worker stops; then they are ended, and their jobs
    /// released
    #[arg(long, value_name = "DURATION", value_parser = when::duration, default_value = "25s")]
    grace: Span,
    /// How much of the output of one command is stored, such as 64K or 1M
    #[arg(long, value_name = "SIZE", value_parser = size::bytes, default_value = "64K")]
    max_output: u64,
    /// The most memory that each process of a command may take, such as 512M (ulimit -v)
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    memory: Option<u64>,
    /// How long the server waits for a heartbeat before it counts a run as failed
    #[arg(long, value_name = "DURATION", value_parser = when::duration, default_value = "30s")]
    lease: Span,
    /// The worker's retry policy, from a file or -. It decides on the delays of jobs that leave them to the
    /// worker (TaskHarbor without a policy); for all other jobs it can only lower the number of attempts
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The notation of the policy file [default: by its extension, else json]
    #[arg(long, value_enum, requires = "policy")]
    format: Option<Format>,
    /// ojs, azolla, taskharbor, exosphere or mwl [default: recognised from the shape]
    #[arg(long, short, value_name = "DIALECT", requires = "policy")]
    dialect: Option<Dialect>,
    /// The name of this worker [default: generated]
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// End when no job of the queues is available or running; with exit code 1 if jobs are left in a
    /// paused queue
    #[arg(long)]
    pub(super) once: bool,
    /// End when no job of the queues is available, running or waiting for a retry; with exit code 1 if
    /// jobs are left in a paused queue
    #[arg(long, conflicts_with = "once")]
    pub(super) drain: bool,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Print JSON for programs, one object on each line
    #[arg(long)]
    pub(super) json: bool,
}

const HELP: &str = "\
The command also gets the job in its environment: REDRIVE_JOB_ID, REDRIVE_JOB_TYPE, \
REDRIVE_JOB_QUEUE, REDRIVE_JOB_ATTEMPT, REDRIVE_JOB_MAX_ATTEMPTS; \
and TRACEPARENT and TRACESTATE if it was enqueued in a trace.

Exit codes of the command: 0 done, 75 temporary failure (retry), 65 permanent failure (dead letter), \
126 and 127 the \
command cannot run here (the job is released, the worker stops), all others as the job's retry policy says. \
The last line on standard error may describe the failure, as JSON:
  {\"type\": \"smtp.busy\", \"message\": \"try later\", \"retry_after_ms\": 500}

Examples:
  redrive work --exec 'python3 send.py'
  redrive work --exec ./resize.sh --queue images --concurrency 4 --timeout 5m --memory 1G
  redrive work --exec ./send.sh --policy harbor.json --dialect taskharbor
  redrive work --exec 'jq .args' --drain --json
  redrive work --azolla-worker ./azolla-worker --queue azolla.default.default";

impl Args {
    /// A client of the server. Nothing is sent yet.
    pub(super) fn client(&self) -> Result<Client, Failed> {
        self.server.worker_client()
    }

    pub(super) fn spec(&self, guard: Option<Arc<Guard>>) -> CommandSpec {
        CommandSpec {
            command: match &self.azolla_worker {
                Some(_) => "exec \"$@\"".to_owned(),
                None => self.command().to_owned(),
            },
            arguments: Vec::new(),
            memory_kib: self.memory_kib(),
            max_output: usize::try_from(self.max_output).unwrap_or(usize::MAX),
            timeout: self.timeout.map(length),
            kill_after: length(self.kill_after),
            guard,
        }
    }

    /// The command, or the worker of Azolla.
    pub(super) fn command(&self) -> &str {
        self.azolla_worker.as_ref().or(self.exec.as_ref()).map_or("", String::as_str)
    }

    pub(super) fn memory_kib(&self) -> Option<u64> {
        self.memory.map(|bytes| bytes.div_ceil(1 << 10))
    }

    /// The worker's policy, if one is given.
    pub(super) fn retry(&self) -> Result<Option<Retry>, Failed> {
        let Some(path) = &self.policy else { return Ok(None) };
        let (dialect, document) = policy_document(path, self.format, self.dialect)?;
        Retry::written(dialect, document).map(Some).map_err(|error| Failed::invalid(error.to_string()))
    }

    pub(super) fn concurrency(&self) -> usize {
        self.concurrency.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from)
    }

    pub(super) fn lease(&self) -> Duration {
        length(self.lease)
    }

    pub(super) fn grace(&self) -> Duration {
        length(self.grace)
    }
}

fn timeout(text: &str) -> Result<Span, String> {
    let span = when::duration(text)?;
    if span.is_zero() {
        return Err(
            "it would end every command before it starts; allowed is more than 0, and none is the default".into()
        );
    }
    Ok(span)
}

fn length(span: Span) -> Duration {
    Duration::try_from_secs_f64(span.secs()).unwrap_or(Duration::MAX)
}
