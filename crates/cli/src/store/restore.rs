//! `redrive store restore`: a store from a backup.

use super::location::folder;
use super::{in_text, to_json, with_progress_bar};
use crate::{exit::Failed, output, when};
use redrive_ojs::time::{parse_rfc3339, rfc3339};
use redrive_policy::Moment;
use redrive_server::{Backup, BackupLabel, backups_in};
use redrive_store::State;
use redrive_store::embedded::{self, Findings};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The backup; with --at, a folder with backups
    from: PathBuf,
    /// The folder of the new store: empty, or not existing yet
    to: PathBuf,
    /// Take the newest backup that is not newer than this, such as 2026-03-01T12:00:00Z, or 2h for two hours ago
    #[arg(long, value_name = "TIME", value_parser = when::past)]
    at: Option<String>,
}

const EXAMPLES: &str = "\
The backup is read and verified first, then copied, and the copy is verified. Nothing is
overwritten, and the backup stays as it is. The store has the state of the moment in which the
backup was taken: what happened later is not in it. Jobs that have ended since run again.

Examples:
  redrive store restore /var/backups/redrive/scheduled-20260301T020000Z-17 /var/lib/redrive
  redrive store restore /var/backups/redrive /var/lib/redrive --at 2026-03-01T12:00:00Z
  redrive store restore /var/backups/redrive ./redrive-data --at 2h --json";

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failed> {
    let (from, to) = (folder(&args.from)?, folder(&args.to)?);
    let from = match args.at.as_deref().and_then(parse_rfc3339) {
        Some(at) => newest(from, at)?,
        None => from.to_owned(),
    };
    let found = match with_progress_bar("verifying", |progress| embedded::check(&from, progress)) {
        Ok(found) => found,
        Err(error) => return Err(several(&from).unwrap_or(error)),
    };
    if !found.is_sound() {
        return super::print_findings(&from, &found, json);
    }
    let is_new = !to.exists();
    let restored = with_progress_bar("copying", |progress| embedded::backup(&from, to, progress));
    let restored = restored.inspect_err(|_| {
        if is_new {
            // Only a folder with nothing in it is removed.
            let _ = std::fs::remove_dir(to);
        }
    })?;
    if !restored.is_sound() {
        return super::print_findings(to, &restored, json);
    }
    let taken_at = BackupLabel::read(&from).ok().flatten().map(|label| label.taken_at);
    if json {
        let mut report = to_json(&restored);
        report["backup"] = json!({ "path": from, "taken_at": taken_at.map(rfc3339) });
        return output::json(&report);
    }
    output::text(&format!("{}{}", in_text(to, &restored), came_from(&from, taken_at, &restored)))
}

/// The newest backup in a folder that was taken by then.
fn newest(dir: &Path, at: Moment) -> Result<PathBuf, Failed> {
    let all = backups_in(dir).map_err(|error| Failed::unreachable(format!("{}: {error}", dir.display())))?;
    let Some(oldest) = all.first().map(|backup| backup.label.taken_at) else {
        return Err(Failed::invalid(format!(
            "there are no backups with a time in {}; name the backup itself, without --at",
            dir.display()
        )));
    };
    let stores: Vec<&PathBuf> = all.iter().map(|backup| &backup.label.store).collect();
    if let Some(other) = stores.iter().find(|store| **store != stores[0]) {
        return Err(Failed::invalid(format!(
            "{} has backups of several stores, of {} and of {}; name the backup itself, without --at",
            dir.display(),
            stores[0].display(),
            other.display()
        )));
    }
    let chosen = all.into_iter().rfind(|backup| backup.label.taken_at <= at);
    chosen.map(|Backup { path, .. }| path).ok_or_else(|| {
        Failed::invalid(format!(
            "there is no backup from {} or before in {}; the oldest was taken at {}",
            rfc3339(at),
            dir.display(),
            rfc3339(oldest)
        ))
    })
}

/// What to say about a folder that is no store, but has backups.
fn several(dir: &Path) -> Option<Failed> {
    let all = backups_in(dir).ok()?;
    let (first, last) = (all.first()?, all.last()?);
    Some(Failed::invalid(format!(
        "{} is not a backup but a folder with {} backups, taken between {} and {}; name one of them, such as {}, or \
         say --at TIME for the newest one of a time",
        dir.display(),
        all.len(),
        rfc3339(first.label.taken_at),
        rfc3339(last.label.taken_at),
        last.path.display()
    )))
}

/// Where the store came from, and what a server will do with it.
fn came_from(from: &Path, taken_at: Option<Moment>, restored: &Findings) -> String {
    let taken = taken_at.map_or("of an unknown time".to_owned(), |at| format!("taken at {}", rfc3339(at)));
    let mut text = format!("restored from {}, {taken}\n", from.display());
    let active = restored.jobs[State::Active as usize];
    if active > 0 {
        text.push_str(&format!(
            "{active} jobs were active then: a server runs each of them again once its lease has ended, as far as \
             their policies allow\n"
        ));
    }
    text
}
