//! A store in a folder of this machine, which the server looks after besides using it.

use crate::backups::{BackupSchedule, Progress};
use redrive_store::Embedded;
use redrive_store::embedded::Status;
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::Mutex;

/// The store behind the engine, where it is in a folder of this machine.
#[derive(Clone)]
pub struct LocalStore {
    pub(crate) store: Arc<Embedded>,
    /// Where its backups go, each into a folder of its own.
    pub(crate) backups: Option<PathBuf>,
    schedule: Option<BackupSchedule>,
    progress: Arc<std::sync::Mutex<Progress>>,
    /// Held while a backup is made.
    pub(crate) copying: Arc<Mutex<()>>,
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalStore")
    }
}

impl LocalStore {
    /// The store, and the folder for its backups, if there are any.
    #[must_use]
    pub fn new(store: Arc<Embedded>, backups: Option<PathBuf>) -> Self {
        Self { store, backups, schedule: None, progress: Arc::default(), copying: Arc::default() }
    }

    /// Lets the server make backups by itself. Without a folder for them, it makes none.
    #[must_use]
    pub fn with_schedule(self, schedule: Option<BackupSchedule>) -> Self {
        Self { schedule, ..self }
    }

    /// The folder for backups and the schedule, if there are both.
    pub(crate) fn schedule(&self) -> Option<(&Self, &Path, BackupSchedule)> {
        Some((self, self.backups.as_deref()?, self.schedule?))
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of the store, by its full name where the system tells it.
    pub(crate) fn dir(&self) -> PathBuf {
        std::fs::canonicalize(self.store.dir()).unwrap_or_else(|_| self.store.dir().to_owned())
    }

    /// How it is doing. Sentences, which may name places on this machine, are for `insiders` only.
    pub(crate) fn health(&self, insiders: bool) -> Value {
        let status = self.store.status();
        let mut health = json!({
            "jobs": status.jobs,
            "log_bytes": status.log_bytes,
            "snapshot_bytes": status.snapshot_bytes,
            "compaction": compaction(&status),
        });
        let scheduled = self.schedule().is_some();
        if scheduled {
            health["backups"] = self.progress().health();
        }
        if insiders {
            let warnings = status.warnings().into_iter().chain(self.progress().warnings().collect::<Vec<String>>());
            health["warnings"] = warnings.collect::<Vec<String>>().into();
        }
        health
    }
}

const fn compaction(status: &Status) -> &'static str {
    match status.compaction {
        None => "not needed yet",
        Some(Ok(())) => "ok",
        Some(Err(_)) => "failing",
    }
}
