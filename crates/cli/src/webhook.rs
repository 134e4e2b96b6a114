//! `redrive webhook`: subscriptions to events, and their deliveries.

use crate::client::{Client, Send, ServerCommand, escaped};
use crate::enqueue::RetryFile;
use crate::exit::Failed;
use crate::output::{self, word};
use crate::when;
use clap::Subcommand;
use redrive_policy::Span;
use serde_json::{Value, json};

pub(crate) type Args = ServerCommand<Command>;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Subscribe an address to events; prints the secret, which is never shown again
    Add(Box<Add>),
    /// List subscriptions
    List,
    /// What is known of a subscription
    Show(Id),
    /// Change a subscription
    Update(Box<Update>),
    /// Pause a subscription: nothing is sent, and nothing is recorded
    Pause(Id),
    /// Resume a subscription, also one that the server has disabled
    Resume(Id),
    /// Replace the secret; for a day deliveries are signed with both
    Rotate(Id),
    /// Send a test event now
    Test(Id),
    /// Delete a subscription, and cancel its deliveries
    Delete(Id),
    /// List deliveries
    Deliveries(Deliveries),
    /// Send a delivery again
    Retry(Id),
    /// Drop a delivery
    Drop(Id),
}

#[derive(clap::Args)]
pub(crate) struct Id {
    /// The id, as the lists have it
    id: String,
}

#[derive(clap::Args)]
pub(crate) struct Add {
    /// Where to send events: https://HOST/PATH
    url: String,
    /// Types of events, or patterns such as 'job.*'
    #[arg(required = true, value_name = "TYPE")]
    events: Vec<String>,
    #[command(flatten)]
    more: More,
}

#[derive(clap::Args)]
pub(crate) struct Update {
    #[command(flatten)]
    id: Id,
    /// Another address
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Other types of events
    #[arg(long = "event", value_name = "TYPE", value_delimiter = ',')]
    events: Vec<String>,
    #[command(flatten)]
    more: More,
}

#[derive(clap::Args)]
struct More {
    /// Only events of these queues
    #[arg(long = "queue", value_name = "QUEUE", value_delimiter = ',')]
    queues: Vec<String>,
    /// Only events of jobs of these types
    #[arg(long = "job-type", value_name = "TYPE", value_delimiter = ',')]
    job_types: Vec<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// How long the endpoint has for its answer, from 5s to 60s [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = when::above_zero)]
    timeout: Option<Span>,
    #[command(flatten)]
    policy: RetryFile,
}

#[derive(clap::Args)]
pub(crate) struct Deliveries {
    /// Of this subscription
    #[arg(long, value_name = "ID")]
    subscription: Option<String>,
    /// That stand like this
    #[arg(long, value_parser = ["delivered", "dead", "cancelled", "retrying", "sending", "waiting"])]
    status: Option<String>,
    /// How many, the newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  redrive webhook add https://api.example.com/hooks job.discarded 'workflow.*' --queue payments
  redrive webhook list
  redrive webhook test sub_019c5654-1a80-7000-8000-5b0e3c1d7a42
  redrive webhook deliveries --status dead
  redrive webhook retry del_019c5654-7040-7000-8000-2f6d1a0c9b11
  redrive webhook rotate sub_019c5654-1a80-7000-8000-5b0e3c1d7a42";

const SUBSCRIPTIONS: &str = "/ojs/v1/webhooks/subscriptions";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    let told = |answer: &Value, text: String| args.common.print(answer, &text);
    let to = |id: &str, what: &str| format!("{SUBSCRIPTIONS}/{}{what}", escaped(id));
    let delivery = |id: &str, what: &str| format!("/ojs/v1/webhooks/deliveries/{}{what}", escaped(id));
    let with_secret = |answer: &Value, what: &str| {
        let (id, secret) = (word(&answer["id"]), word(&answer["secret"]));
        told(answer, format!("subscription {id} {what}\nsecret {secret}\nIt is not shown again.\n"))
    };
    match &args.command {
        Command::Add(add) => {
            let mut body = json!({ "url": add.url, "events": add.events });
            add.more.write(&mut body)?;
            with_secret(&client.ask(Send::Post(&body), SUBSCRIPTIONS)?, "is added")
        }
        Command::List => list(&client, args.common.json),
        Command::Show(Id { id }) => {
            let answer = client.ask(Send::Get, &to(id, ""))?;
            told(&answer, output::facts(&answer, &FACTS))
        }
        Command::Update(update) => {
            let mut body = json!({});
            if let Some(url) = &update.url {
                body["url"] = url.as_str().into();
            }
            if !update.events.is_empty() {
                body["events"] = update.events.clone().into();
            }
            update.more.write(&mut body)?;
            let answer = client.ask(Send::Patch(&body), &to(&update.id.id, ""))?;
            told(&answer, output::facts(&answer, &FACTS))
        }
        Command::Pause(Id { id }) | Command::Resume(Id { id }) => {
            let active = matches!(args.command, Command::Resume(_));
            let answer = client.ask(Send::Patch(&json!({ "active": active })), &to(id, ""))?;
            told(&answer, format!("subscription {id} is {}\n", if active { "active" } else { "paused" }))
        }
        Command::Rotate(Id { id }) => {
            with_secret(&client.ask(Send::Post(&json!({})), &to(id, "/rotate-secret"))?, "has a new secret")
        }
        Command::Test(Id { id }) => {
            let answer = client.ask(Send::Post(&json!({})), &to(id, "/test"))?;
            let said = if answer["error"].is_null() { &answer["status_code"] } else { &answer["error"] };
            let word = if answer["success"] == true { "delivered" } else { "failed" };
            told(&answer, format!("{word}: {}\n", output::word(said)))
        }
        Command::Delete(Id { id }) => {
            told(&client.ask(Send::Delete, &to(id, ""))?, format!("subscription {id} is deleted\n"))
        }
        Command::Deliveries(deliveries) => list_deliveries(&client, deliveries, args.common.json),
        Command::Retry(Id { id }) => {
            let answer = client.ask(Send::Post(&json!({})), &delivery(id, "/retry"))?;
            told(&answer, format!("delivery {id} is sent again\n"))
        }
        Command::Drop(Id { id }) => {
            told(&client.ask(Send::Delete, &delivery(id, ""))?, format!("delivery {id} is dropped\n"))
        }
    }
}

impl More {
    fn write(&self, body: &mut Value) -> Result<(), Failed> {
        for (key, names) in [("queues", &self.queues), ("job_types", &self.job_types)] {
            if !names.is_empty() {
                body["filter"][key] = names.clone().into();
            }
        }
        if let Some(description) = &self.description {
            body["metadata"] = json!({ "description": description });
        }
        if let Some(timeout) = self.timeout {
            body["timeout_ms"] = (timeout.ms().round() as u64).into();
        }
        if let Some(retry) = self.policy.read()? {
            let unwritable = |error| Failed::invalid(format!("the policy cannot be written as JSON: {error}"));
            body["retry"] = serde_json::to_value(retry).map_err(unwritable)?;
        }
        Ok(())
    }
}

fn list(client: &Client, json: bool) -> Result<(), Failed> {
    let answer = client.ask(Send::Get, SUBSCRIPTIONS)?;
    if json {
        return output::json(&answer);
    }
    let found = output::entries(&answer, "subscriptions");
    if found.is_empty() {
        return output::text("no subscriptions yet: `redrive webhook add` makes one\n");
    }
    let head = ["SUBSCRIPTION", "URL", "EVENTS", "STATUS", "DELIVERED", "WAITING", "DEAD"];
    let row = |one: &Value| {
        let count = |key: &str| word(&one["deliveries"][key]);
        let status = match (one["active"] == true, one["disabled_reason"].is_null()) {
            (true, _) => "active",
            (false, true) => "paused",
            (false, false) => "disabled",
        };
        let events: Vec<String> = one["events"].as_array().into_iter().flatten().map(word).collect();
        let (id, url) = (word(&one["id"]), word(&one["url"]));
        [id, url, events.join(","), status.to_owned(), count("delivered"), count("outstanding"), count("dead")]
    };
    output::text(&output::list(head, found, row))
}

fn list_deliveries(client: &Client, wanted: &Deliveries, json: bool) -> Result<(), Failed> {
    let mut path = format!("/ojs/v1/webhooks/deliveries?limit={}", wanted.limit);
    for (key, value) in [("subscription_id", &wanted.subscription), ("status", &wanted.status)] {
        if let Some(value) = value {
            path.push_str(&format!("&{key}={}", escaped(value)));
        }
    }
    let answer = client.ask(Send::Get, &path)?;
    if json {
        return output::json(&answer);
    }
    let found = output::entries(&answer, "deliveries");
    if found.is_empty() {
        return output::text("no deliveries\n");
    }
    let now = when::now_ms();
    let head = ["DELIVERY", "EVENT", "STATUS", "ATTEMPTS", "MADE", "NEXT", "ERROR"];
    let row = |one: &Value| {
        let time = |key: &str| when::relative(one[key].as_str(), now);
        [
            word(&one["id"]),
            word(&one["event_type"]),
            word(&one["status"]),
            word(&one["attempts"]),
            time("created_at"),
            time("next_attempt_at"),
            one["last_error"]["message"].as_str().map(|error| output::plain(error).into_owned()).unwrap_or_default(),
        ]
    };
    output::text(&output::list(head, found, row))
}

/// What is known of a subscription.
const FACTS: [(&str, &str); 11] = [
    ("id", "id"),
    ("url", "url"),
    ("events", "events"),
    ("filter", "filter"),
    ("active", "active"),
    ("disabled", "disabled_reason"),
    ("deliveries", "deliveries"),
    ("timeout", "timeout_ms"),
    ("retry", "retry"),
    ("metadata", "metadata"),
    ("created", "created_at"),
];
