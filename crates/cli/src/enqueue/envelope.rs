//! A job as the server takes it.

use super::{Named, RetryFile, json_argument};
use crate::{exit::Failed, when};
use redrive_policy::Span;
use serde_json::{Map, Value, json};

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
}

impl EnvelopeArgs {
    /// One job.
    pub(super) fn document(&self, named: &Named<'_>) -> Result<Value, Failed> {
        let argument = |(index, text): (usize, &String)| json_argument(&format!("argument {}", index + 1), text);
        let args = named.args.iter().enumerate().map(argument);
        let args = args.collect::<Result<Vec<Value>, Failed>>()?;
        let mut document = json!({ "type": named.kind, "args": args });
        if let Some(id) = named.id {
            document["id"] = id.into();
        }
        let mut options = self.options()?;
        if let Some(key) = named.idempotency_key {
            options.insert("idempotency_key".to_owned(), key.into());
        }
        if !options.is_empty() {
            document["options"] = Value::Object(options);
        }
        Ok(document)
    }

    /// The options as the server takes them; what was not given is absent.
    pub(super) fn options(&self) -> Result<Map<String, Value>, Failed> {
        let mut options = Map::new();
        let mut set = |key: &str, value: Option<Value>| options.extend(value.map(|value| (key.to_owned(), value)));
        set("queue", self.queue.as_deref().map(Value::from));
        set("priority", self.priority.map(Value::from));
        // The relative form is resolved by the server's clock, which is the one that counts.
        let delay = self.delay.filter(|delay| !delay.is_zero());
        set("scheduled_at", delay.map(|delay| format!("+PT{}S", delay.secs()).into()));
        set("scheduled_at", self.at.as_deref().map(Value::from));
        set("timeout_ms", self.timeout.map(|timeout| (timeout.ms().ceil() as u64).into()));
        set("retry", self.policy.read()?);
        Ok(options)
    }
}
