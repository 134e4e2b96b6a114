//! A job as the server takes it.

use super::unique::UniqueArgs;
use super::{Named, RetryFile, json_argument};
use crate::limit::BoundsArgs;
use crate::{exit::Failed, when};
use redrive_ojs::{JobDocument, JobOptions, TRACEPARENT, TRACESTATE, TraceContext, When};
use redrive_policy::Span;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

/// What one job and a whole batch have in common.
#[derive(clap::Args)]
pub(super) struct EnvelopeArgs {
    /// The queue to wait in [default: default]
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Higher numbers run first, from -100 to 100 [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-100..=100))]
    priority: Option<i32>,
    /// Run after this time: 90s, 10m, 1h30m, PT5M
    #[arg(long, value_name = "DURATION", value_parser = when::duration, conflicts_with = "at")]
    delay: Option<Span>,
    /// Run from this time on, in RFC 3339
    #[arg(long, value_name = "TIME", value_parser = when::rfc3339)]
    at: Option<String>,
    #[command(flatten)]
    policy: RetryFile,
    /// How long one run may take
    #[arg(long, value_name = "DURATION", value_parser = when::above_zero)]
    timeout: Option<Span>,
    /// The key of a limit, which jobs with the same key share; with --concurrency, --rate or --throttle
    #[arg(long, value_name = "KEY")]
    limit_key: Option<String>,
    #[command(flatten)]
    bounds: BoundsArgs,
    #[command(flatten)]
    unique: UniqueArgs,
}

impl EnvelopeArgs {
    /// One job.
    pub(super) fn document(&self, named: &Named<'_>) -> Result<Value, Failed> {
        let argument = |(index, text): (usize, &String)| json_argument(&format!("argument {}", index + 1), text);
        let args = named.args.iter().enumerate().map(argument);
        let args = args.collect::<Result<Vec<Value>, Failed>>()?;
        let args = to_raw_value(&args).map_err(unwritable)?;
        let options = JobOptions { idempotency_key: named.idempotency_key, ..self.job_options()? };
        let meta = trace();
        let document = JobDocument { kind: named.kind, args: &args, id: named.id, meta: meta.as_ref(), options };
        serde_json::to_value(document).map_err(unwritable)
    }

    /// The options as the server takes them; what was not given is absent.
    pub(super) fn options(&self) -> Result<Map<String, Value>, Failed> {
        match serde_json::to_value(self.job_options()?).map_err(unwritable)? {
            Value::Object(options) => Ok(options),
            _ => Ok(Map::new()),
        }
    }

    fn rate_limit(&self) -> Result<Option<Value>, Failed> {
        let BoundsArgs { concurrency, rate, throttle } = &self.bounds;
        let mut limit = Map::new();
        limit.extend(concurrency.map(|most| ("concurrency".to_owned(), most.into())));
        limit.extend(rate.map(|rate| ("rate".to_owned(), rate.to_json())));
        limit.extend(throttle.map(|throttle| ("throttle".to_owned(), throttle.to_json())));
        match (&self.limit_key, limit.is_empty()) {
            (None, true) => return Ok(None),
            (Some(_), true) => {
                return Err(Failed::usage("--limit-key needs --concurrency, --rate or --throttle, or several of them"));
            }
            (Some(key), false) => drop(limit.insert("key".to_owned(), key.as_str().into())),
            (None, false) => {}
        }
        Ok(Some(Value::Object(limit)))
    }

    fn job_options(&self) -> Result<JobOptions<'_>, Failed> {
        let after = self.delay.filter(|delay| !delay.is_zero()).map(When::After);
        Ok(JobOptions {
            queue: self.queue.as_deref(),
            priority: self.priority,
            scheduled_at: self.at.as_deref().map(When::At).or(after),
            timeout: self.timeout,
            retry: self.policy.read()?,
            rate_limit: self.rate_limit()?,
            unique: self.unique.policy(),
            ..JobOptions::default()
        })
    }
}

fn unwritable(error: serde_json::Error) -> Failed {
    Failed::invalid(format!("the job cannot be written as JSON: {error}"))
}

/// The trace that this command runs in, as its environment says it: that of the job, for a command of `redrive work`.
fn trace() -> Option<Map<String, Value>> {
    let variable = |name: &str| std::env::var(name.to_uppercase()).ok();
    let (parent, state) = (variable(TRACEPARENT)?, variable(TRACESTATE));
    let trace = TraceContext::read(&parent, state.as_deref())?;
    let mut meta = Map::new();
    meta.insert(TRACEPARENT.to_owned(), trace.parent.into());
    meta.extend(trace.state.map(|state| (TRACESTATE.to_owned(), state.into())));
    Some(meta)
}
