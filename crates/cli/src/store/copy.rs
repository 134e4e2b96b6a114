//! `redrive store copy`: copies a whole store.

use super::location::StoreLocation;
use crate::{exit::Failed, output};
use indicatif::{ProgressBar, ProgressStyle};
use redrive_store::State;
use redrive_store::embedded::{FolderSource, FolderTarget};
use redrive_store::postgres::{DatabaseSource, DatabaseTarget};
use redrive_store::transfer::{Copied, CopyError, CopyProgress, Phase, Source, Target, copy};
use serde_json::{Map, Value, json};
use std::time::Instant;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The store: a folder, postgres://…, or env:NAME for an address in the environment
    from: String,
    /// The target: an empty or new folder, or a database with no store in that schema
    to: String,
}

const EXAMPLES: &str = "\
Everything is copied: jobs in every state with leases, tokens, histories, failures, results and
keys, and queues, including paused ones. Both sides are read again and compared before the copy
becomes a store; an interrupted copy leaves none, and can be repeated. Servers on both sides must
be stopped. The examples have REDRIVE_STORE=postgres://redrive_node:secret@db.internal/app set.

Examples:
  redrive store copy ./redrive-data env:REDRIVE_STORE
  redrive store copy env:REDRIVE_STORE ./redrive-data
  redrive store copy env:REDRIVE_STORE 'postgres://redrive@localhost/app?schema=jobs'";

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failed> {
    if args.from == args.to {
        return Err(Failed::invalid("found the same store twice; allowed are two different stores"));
    }
    let (from, to) = (StoreLocation::read(&args.from)?, StoreLocation::read(&args.to)?);
    // Another thread serves the connections while this one reads and writes files.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start threads: {error}")))?;
    let begun = Instant::now();
    let copied = runtime.block_on(copy_with_progress_bar(&from, &to)).map_err(|error| match error {
        CopyError::Refused(_) | CopyError::Differs(_) => Failed::invalid(error),
        CopyError::Failed(_) => Failed::unreachable(error),
    })?;
    if json {
        return output::json(&to_json(&copied, begun.elapsed().as_secs_f64()));
    }
    output::text(&in_text(&from, &to, &copied))
}

/// A progress bar that counts jobs.
pub(super) fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:40} {human_pos}/{human_len} jobs {eta} left");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

async fn copy_with_progress_bar(from: &StoreLocation, to: &StoreLocation) -> Result<Copied, CopyError> {
    let bar = bar();
    bar.set_message("opening");
    let mut from = source(from).await?;
    let to = target(to).await?;
    let copied = copy(&mut *from, to, &mut |progress: CopyProgress| {
        bar.set_message(match progress.phase {
            Phase::Copying => "copying",
            Phase::Verifying => "verifying",
        });
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
    })
    .await;
    bar.finish_and_clear();
    copied
}

async fn source(location: &StoreLocation) -> Result<Box<dyn Source>, CopyError> {
    Ok(match location {
        StoreLocation::Folder(dir) => Box::new(FolderSource::open(dir)?),
        StoreLocation::Database(options) => Box::new(DatabaseSource::open((**options).clone()).await?),
    })
}

async fn target(location: &StoreLocation) -> Result<Box<dyn Target>, CopyError> {
    Ok(match location {
        StoreLocation::Folder(dir) => Box::new(FolderTarget::create(dir)?),
        StoreLocation::Database(options) => Box::new(DatabaseTarget::create((**options).clone()).await?),
    })
}

fn to_json(copied: &Copied, seconds: f64) -> Value {
    let mut report = counts(copied);
    report["verified"] = true.into();
    report["left_behind"] = copied.left_behind.into();
    report["seconds"] = ((seconds * 1_000.0).round() / 1_000.0).into();
    report
}

/// How much there is of everything.
pub(super) fn counts(copied: &Copied) -> Value {
    let jobs = State::ALL.iter().zip(copied.jobs).map(|(state, count)| (state.name().to_owned(), count.into()));
    json!({
        "total": copied.total(),
        "jobs": jobs.collect::<Map<String, Value>>(),
        "dead_letters": copied.dead,
        "failures": copied.failures,
        "idempotency_keys": copied.keys,
        "queues": copied.queues,
        "paused_queues": copied.paused,
        "runs": copied.runs,
        "messages": copied.messages,
        "limits": copied.limits,
    })
}

fn in_text(from: &StoreLocation, to: &StoreLocation, copied: &Copied) -> String {
    let mut text = format!("{from} is now in {to}\n{}", summary(copied));
    if copied.left_behind > 0 {
        text.push_str(&format!(
            "  NOT copied: {} inbox entries that applications added meanwhile; start a server there to drain them\n",
            copied.left_behind
        ));
    }
    text.push_str("both were read again and are identical\n");
    text
}

/// The same for people, in indented lines.
pub(super) fn summary(copied: &Copied) -> String {
    let states = State::ALL.iter().zip(copied.jobs).filter(|(_, count)| *count > 0);
    let states: Vec<String> = states.map(|(state, count)| format!("{count} {state}")).collect();
    let states = if states.is_empty() { String::new() } else { format!(": {}", states.join(", ")) };
    let mut text = String::new();
    let mut push = |line: String| text.push_str(&format!("  {line}\n"));
    push(format!("{} jobs in {} queues, {} of them paused{states}", copied.total(), copied.queues, copied.paused));
    push(format!(
        "{} dead letters, {} failed attempts, {} idempotency keys",
        copied.dead, copied.failures, copied.keys
    ));
    if copied.runs > 0 {
        push(format!("{} runs above jobs, with {} messages", copied.runs, copied.messages));
    }
    if copied.limits > 0 {
        push(format!("{} limits", copied.limits));
    }
    text
}
