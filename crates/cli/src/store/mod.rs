//! `redrive store`: commands for a whole store.

mod aside;
mod backup;
mod check;
mod copy;
mod inbox;
mod location;
mod restore;
mod unreadable;

use crate::{exit::Failed, output};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use location::folder;
use redrive_store::embedded::{self, Damage, Findings, LoadProgress, OpenError, Options};
use redrive_store::{Embedded, State};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print JSON for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Verify every checksum and every job, without changes
    Check(check::Args),
    /// Copy the store into an empty folder, and verify the copy
    Backup(backup::Args),
    /// Make a store from a backup, and verify it
    Restore(restore::Args),
    /// Replace the log by a snapshot of its current contents
    Compact(Folder),
    /// Copy a whole store, between folders and databases, and verify the copy
    Copy(copy::Args),
    /// List inbox entries that could not be decoded
    Inbox(inbox::Args),
    /// List jobs in a database that cannot be read, put them back or delete them
    Unreadable(unreadable::Args),
}

#[derive(clap::Args)]
struct Folder {
    /// The folder of the store
    dir: PathBuf,
}

const EXAMPLES: &str = "\
The server must be stopped for `check`, `compact` and `copy`, because it locks its store.
A backup can be taken while it runs.

Examples:
  redrive store check ./redrive-data
  redrive store backup ./redrive-data /backup/redrive-2026-03-01
  redrive store backup --server http://127.0.0.1:8080 --name nightly
  redrive store restore /backup/redrive-2026-03-01 ./redrive-data
  redrive store compact ./redrive-data
  redrive store copy ./redrive-data postgres://redrive@localhost/app";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    match &args.command {
        Command::Check(check) => check::run(check, args.json),
        Command::Backup(backup) => backup::run(backup, args.json),
        Command::Restore(restore) => restore::run(restore, args.json),
        Command::Compact(Folder { dir }) => compact(folder(dir)?, args.json),
        Command::Copy(copy) => copy::run(copy, args.json),
        Command::Inbox(inbox) => inbox::run(inbox, args.json),
        Command::Unreadable(unreadable) => unreadable::run(unreadable, args.json),
    }
}

/// Runs something that reads files, with a progress bar.
fn with_progress_bar<T>(
    what: &'static str,
    run: impl FnOnce(&mut dyn FnMut(LoadProgress)) -> Result<T, OpenError>,
) -> Result<T, Failed> {
    let style = ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes} {eta} left");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what);
    let result = run(&mut |progress: LoadProgress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    result.map_err(Failed::unreachable)
}

/// Compacts a store. Compaction drops what cannot be read, so everything is verified first.
fn compact(dir: &Path, json: bool) -> Result<(), Failed> {
    let before = with_progress_bar("checking", |progress| embedded::check(dir, progress))?;
    if !before.is_sound() {
        return print_findings(dir, &before, json);
    }
    let bar = ProgressBar::new_spinner().with_message("compacting");
    bar.enable_steady_tick(Duration::from_millis(100));
    let (store, _) = Embedded::open(dir, Options::default()).map_err(Failed::unreachable)?;
    let compacted = store.compact();
    let closed = store.close();
    bar.finish_and_clear();
    compacted.and(closed).map_err(Failed::unreachable)?;
    let after = with_progress_bar("checking", |progress| embedded::check(dir, progress))?;
    if json {
        return output::json(&json!({ "before_bytes": bytes(&before), "after_bytes": bytes(&after) }));
    }
    output::text(&format!("{}: {} bytes before, {} bytes now\n", dir.display(), bytes(&before), bytes(&after)))
}

const fn bytes(findings: &Findings) -> u64 {
    findings.snapshot_bytes + findings.log_bytes
}

fn print_findings(dir: &Path, findings: &Findings, json: bool) -> Result<(), Failed> {
    if json {
        output::json(&to_json(findings))?
    } else {
        output::text(&in_text(dir, findings))?
    }
    if findings.is_sound() {
        return Ok(());
    }
    Err(Failed::invalid(format!(
        "the store in {} is damaged; restore a backup, or copy the folder before anything else",
        dir.display()
    )))
}

fn to_json(findings: &Findings) -> Value {
    let jobs = State::ALL.iter().zip(findings.jobs).map(|(state, count)| (state.name().to_owned(), count.into()));
    let damage = |damage: &Damage| {
        let Damage { file, offset, found, expected } = damage;
        json!({ "file": file, "offset": offset, "found": found, "expected": expected })
    };
    json!({
        "sound": findings.is_sound(),
        "jobs": jobs.collect::<Map<String, Value>>(),
        "dead_letters": findings.dead,
        "queues": findings.queues,
        "runs": findings.runs,
        "messages": findings.messages,
        "frames": findings.frames,
        "records": findings.records,
        "snapshot_bytes": findings.snapshot_bytes,
        "log_bytes": findings.log_bytes,
        "closed_in_good_order": findings.clean,
        "last_frame": findings.last_frame,
        "high_water_mark": findings.high_water,
        "torn": findings.torn.as_ref().map(|(file, offset)| json!({ "file": file, "offset": offset })),
        "leftovers": findings.leftovers,
        "damages": findings.damages.iter().map(damage).collect::<Vec<Value>>(),
        "contradictions": findings.contradictions,
    })
}

fn in_text(dir: &Path, findings: &Findings) -> String {
    let total: usize = findings.jobs.iter().sum();
    let states = State::ALL.iter().zip(findings.jobs).filter(|(_, count)| *count > 0);
    let states: Vec<String> = states.map(|(state, count)| format!("{count} {state}")).collect();
    let states = if states.is_empty() { String::new() } else { format!(": {}", states.join(", ")) };
    let mut text = format!("{}: {total} jobs in {} queues{states}\n", dir.display(), findings.queues);
    let mut push = |line: String| text.push_str(&format!("  {line}\n"));
    push(format!("{} dead letters", findings.dead));
    if findings.runs > 0 {
        push(format!("{} runs above jobs, with {} messages", findings.runs, findings.messages));
    }
    push(format!(
        "{} bytes of snapshot, {} bytes of log, {} records in {} frames",
        findings.snapshot_bytes, findings.log_bytes, findings.records, findings.frames
    ));
    push(ending(findings));
    if let Some((file, offset)) = &findings.torn {
        push(format!(
            "{} ends in a torn write at {offset}; it was never acknowledged, and a start cuts it off",
            file.display()
        ));
    }
    findings.leftovers.iter().for_each(|file| push(format!("{} is not in use; a start removes it", file.display())));
    findings.damages.iter().for_each(|Damage { file, offset, found, expected }| {
        push(format!("DAMAGED: {} at {offset}: found {found}, expected {expected}", file.display()));
    });
    findings.contradictions.iter().for_each(|what| push(format!("CONTRADICTION: {what}")));
    match (findings.is_sound(), findings.high_water) {
        (false, _) => {}
        (true, Some(_)) => text.push_str("sound\n"),
        (true, None) => text.push_str("sound, as far as can be determined without a high-water mark\n"),
    }
    text
}

/// How the log ends.
fn ending(findings: &Findings) -> String {
    let last = findings.last_frame;
    let closed = match findings.clean {
        true => "closed cleanly",
        false => "not closed cleanly: the process was killed, the power failed, or the end of the log was lost",
    };
    match findings.high_water {
        Some(mark) if mark > last => format!("{closed}; frames {} to {mark} are missing", last + 1),
        Some(mark) => format!("{closed}; the log ends with frame {last}, and was flushed up to frame {mark} at least"),
        None => format!("{closed}; the log ends with frame {last}, and there is no high-water mark to confirm that"),
    }
}
