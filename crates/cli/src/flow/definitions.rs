//! Definitions of flows on a server.

use super::{definition_text, path_of};
use crate::client::{Client, CommonArgs, Send, query};
use crate::output::word;
use crate::{exit::Failed, input, output, when};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = PUT_EXAMPLES)]
pub(crate) struct Put {
    /// The definition, or - for standard input
    #[arg(value_name = "DEFINITION")]
    definition: PathBuf,
    /// Its name on the server [default: the name of the file, without its ending]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

const PUT_EXAMPLES: &str = "\
Examples:
  redrive flow put order.json
  redrive flow put - --name order < order.json

A definition that is there becomes a new version; runs keep the version that they were started with.";

#[derive(clap::Args)]
pub(crate) struct List {
    /// How many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// The name of the definition
    name: String,
    /// An older version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(clap::Args)]
pub(crate) struct Delete {
    /// The name of the definition
    name: String,
    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn put(args: &Put) -> Result<(), Failed> {
    let named = args.name.clone().or_else(|| name_of(&args.definition));
    let name = named.ok_or_else(|| Failed::usage("standard input has no name: add --name NAME"))?;
    let text = definition_text(&args.definition, args.common.json)?;
    let answer = put_as(&args.common.client()?, &name, &text)?;
    let text = format!("{} is at version {}\n", word(&answer["name"]), answer["version"]);
    args.common.print(&without_document(answer), &text)
}

/// The name that a file gives to its definition.
pub(super) fn name_of(path: &Path) -> Option<String> {
    let stem = path.file_stem().filter(|_| !output::is_stdout(path))?;
    Some(stem.to_string_lossy().into_owned())
}

/// Puts a definition, byte for byte.
pub(super) fn put_as(client: &Client, name: &str, text: &str) -> Result<Value, Failed> {
    client.ask(Send::PutText(text), &path_of("definitions", name))
}

fn without_document(mut answer: Value) -> Value {
    if let Some(members) = answer.as_object_mut() {
        members.remove("definition");
    }
    answer
}

pub(super) fn list(args: &List) -> Result<(), Failed> {
    let definitions =
        super::listed(&args.common.client()?, "/flows/v1/definitions", "definitions", &[], args.limit as usize)?;
    if args.common.json {
        return output::json(&json!({ "definitions": definitions }));
    }
    if definitions.is_empty() {
        return output::text("no definitions: `redrive flow put FILE` adds one\n");
    }
    let now = when::now_ms();
    let head = ["DEFINITION", "VERSION", "FLOWS", "STEPS", "UPDATED"];
    let row = |one: &Value| {
        let counts = &one["counts"];
        let updated = when::relative(one["updated_at"].as_str(), now);
        [word(&one["name"]), word(&one["version"]), word(&counts["flows"]), word(&counts["steps"]), updated]
    };
    output::text(&output::list(head, &definitions, row))
}

pub(super) fn show(args: &Show) -> Result<(), Failed> {
    let version = query(&[("version", args.version.map(|version| version.to_string()))]);
    let path = format!("{}{version}", path_of("definitions", &args.name));
    let answer = args.common.client()?.ask(Send::Get, &path)?;
    if args.common.json {
        return output::json(&answer);
    }
    let versions = output::entries(&answer, "versions").iter().map(|version| version["version"].to_string());
    eprintln!("{} at version {} of {}", args.name, answer["version"], versions.collect::<Vec<_>>().join(", "));
    output::json(&answer["definition"])
}

pub(super) fn delete(args: &Delete) -> Result<(), Failed> {
    let answer = args.common.client()?.ask(Send::Delete, &path_of("definitions", &args.name))?;
    args.common.print(&answer, &format!("definition {} is deleted; its runs go on\n", args.name))
}

/// The definition that `start` was given: a file is put first, and anything else is a name.
pub(super) fn of_start(client: &Client, target: &Path, json: bool) -> Result<(String, Option<u64>), Failed> {
    if !target.is_file() {
        return Ok((target.to_string_lossy().into_owned(), None));
    }
    let name = name_of(target).ok_or_else(|| Failed::usage(format!("{} has no name", input::shown(target))))?;
    let put = put_as(client, &name, &definition_text(target, json)?)?;
    Ok((name, put["version"].as_u64()))
}
