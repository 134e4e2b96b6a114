//! `redrive key`: API keys in the store of a server.

use crate::client::{Client, Send, ServerCommand, escaped};
use crate::exit::Failed;
use crate::output::{self, word};
use crate::when;
use clap::Subcommand;
use redrive_policy::Span;
use serde_json::{Value, json};

pub(crate) type Args = ServerCommand<Command>;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a key; prints it, and it is never shown again
    Create(Create),
    /// List keys: what they may do, where, and until when
    List,
    /// Give a key a new secret; prints it, and it is never shown again
    Rotate(Rotate),
    /// Revoke a key, also for requests that are open
    Revoke(Name),
}

#[derive(clap::Args)]
pub(crate) struct Create {
    #[command(flatten)]
    name: Name,
    /// What it may do: enqueue jobs, work on them, read, or admin for everything; several are possible
    #[arg(long = "scope", required = true, value_name = "SCOPE", value_delimiter = ',',
          value_parser = ["enqueue", "work", "read", "admin"])]
    scopes: Vec<String>,
    /// Only for these queues: a name, or what names begin with, such as 'mail.*'
    #[arg(long = "queue", value_name = "QUEUE", value_delimiter = ',')]
    queues: Vec<String>,
    /// How long it is valid, such as 90d or 12h [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = when::above_zero)]
    expires_in: Option<Span>,
}

#[derive(clap::Args)]
pub(crate) struct Rotate {
    #[command(flatten)]
    name: Name,
    /// How long the old secret stays valid [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = when::above_zero)]
    grace: Option<Span>,
}

#[derive(clap::Args)]
pub(crate) struct Name {
    /// The name of the key
    name: String,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  redrive key create operator --scope admin
  redrive key create shop --scope enqueue,read --queue orders --queue 'mail.*'
  redrive key create worker-7 --scope work --expires-in 2160h
  redrive key list
  redrive key rotate shop --grace 1h
  redrive key revoke worker-7

The first key closes the server for everyone without one, and needs the scope admin. A key is sent as
\"Authorization: Bearer KEY\"; commands of redrive take it from REDRIVE_API_KEY or --api-key-file.";

const KEYS: &str = "/ojs/v1/admin/keys";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.common.client()?;
    let with_secret = |answer: &Value, what: &str| {
        let (name, secret) = (word(&answer["key"]["name"]), word(&answer["secret"]));
        args.common.print(answer, &format!("key {name} {what}\n{secret}\nIt is not shown again.\n"))
    };
    match &args.command {
        Command::Create(Create { name, scopes, queues, expires_in }) => {
            let mut body = json!({ "name": name.name, "scopes": scopes });
            if !queues.is_empty() {
                body["queues"] = json!(queues);
            }
            if let Some(span) = expires_in {
                body["expires_in"] = in_seconds(*span).into();
            }
            with_secret(&client.ask(Send::Post(&body), KEYS)?, "is made")
        }
        Command::List => list(&client, args.common.json),
        Command::Rotate(Rotate { name, grace }) => {
            let body = grace.map_or(json!({}), |span| json!({ "grace": in_seconds(span) }));
            let path = format!("{KEYS}/{}/rotate", escaped(&name.name));
            with_secret(&client.ask(Send::Post(&body), &path)?, "has a new secret")
        }
        Command::Revoke(Name { name }) => {
            let answer = client.ask(Send::Delete, &format!("{KEYS}/{}", escaped(name)))?;
            args.common.print(&answer, &format!("key {} is revoked\n", output::plain(name)))
        }
    }
}

fn in_seconds(span: Span) -> String {
    format!("PT{}S", span.secs())
}

fn list(client: &Client, json: bool) -> Result<(), Failed> {
    let answer = client.ask(Send::Get, KEYS)?;
    if json {
        return output::json(&answer);
    }
    let keys = answer["keys"].as_array().map_or(&[][..], Vec::as_slice);
    if keys.is_empty() {
        return output::text("no keys in the store: `redrive key create NAME --scope admin` makes the first one\n");
    }
    let head = ["NAME", "SCOPES", "QUEUES", "STATUS", "CREATED", "EXPIRES", "BEGINS WITH"].map(str::to_owned);
    let rows = std::iter::once(head.to_vec()).chain(keys.iter().map(row));
    output::text(&output::table(&rows.collect::<Vec<_>>()))
}

fn row(key: &Value) -> Vec<String> {
    let listed = |key: &Value| {
        let words = key.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.collect::<Vec<_>>().join(",")
    };
    let expires = key["expires_at"].as_str().unwrap_or("never").to_owned();
    let secret = word(&key["secrets"][0]["begins_with"]);
    let [name, status, created] = ["name", "status", "created_at"].map(|field| word(&key[field]));
    vec![name, listed(&key["scopes"]), listed(&key["queues"]), status, created, expires, secret]
}
