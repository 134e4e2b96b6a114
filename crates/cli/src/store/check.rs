//! `redrive store check`: reads all of a store and verifies it.

use super::copy::{bar, counts, summary};
use super::location::StoreLocation;
use super::{print_findings, with_progress_bar};
use crate::{exit::Failed, output};
use redrive_store::embedded;
use redrive_store::postgres::{BesideJobs, DatabaseSource, Options};
use redrive_store::transfer::{Copied, CopyError, survey};
use serde_json::json;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The store: a folder, postgres://…, or env:NAME for an address in the environment
    store: String,
}

const EXAMPLES: &str = "\
In a folder, every checksum and the consistency of every job is verified. In a database, every row
is read and decoded, such as after it was restored from a dump; servers must be stopped.
Here, REDRIVE_STORE=postgres://redrive_node:secret@db.internal/app is in the environment.

Examples:
  redrive store check ./redrive-data
  redrive store check env:REDRIVE_STORE --json";

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failed> {
    match StoreLocation::read(&args.store)? {
        StoreLocation::Folder(dir) => {
            let findings = with_progress_bar("checking", |progress| embedded::check(&dir, progress))?;
            print_findings(&dir, &findings, json)
        }
        StoreLocation::Database(options) => database(*options, json),
    }
}

fn database(options: Options, json: bool) -> Result<(), Failed> {
    let place = options.to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start: {error}")))?;
    let (found, beside) = runtime.block_on(read(options)).map_err(|error| match error {
        CopyError::Refused(_) | CopyError::Differs(_) => Failed::invalid(error),
        CopyError::Failed(_) => Failed::unreachable(error),
    })?;
    let BesideJobs { waiting, refused, unreadable } = beside;
    if json {
        let mut report = counts(&found);
        report["sound"] = (unreadable == 0).into();
        report["inbox"] = json!({ "waiting": waiting, "set_aside": refused });
        report["unreadable"] = unreadable.into();
        output::json(&report)?;
    } else {
        let mut text = format!("{place}\n{}", summary(&found));
        if waiting + refused > 0 {
            text.push_str(&format!("  {waiting} inbox entries that no server has taken in, {refused} set aside\n"));
        }
        if unreadable == 0 {
            text.push_str("every row can be read\n");
        }
        output::text(&text)?;
    }
    if unreadable == 0 {
        return Ok(());
    }
    Err(Failed::invalid(format!("{unreadable} jobs or runs cannot be read; list them with `redrive store unreadable`")))
}

async fn read(options: Options) -> Result<(Copied, BesideJobs), CopyError> {
    let (mut source, beside) = DatabaseSource::open_with_all(options).await?;
    let bar = bar();
    let found = survey(&mut source, &mut |progress| {
        bar.set_message("reading");
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
    })
    .await;
    bar.finish_and_clear();
    Ok((found?, beside))
}
