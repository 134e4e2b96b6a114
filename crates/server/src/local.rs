//! A store in a folder of this machine, which the server looks after besides using it.

use redrive_store::Embedded;
use redrive_store::embedded::Status;
use serde_json::{Value, json};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The store behind the engine, where it is in a folder of this machine.
#[derive(Clone)]
pub struct LocalStore {
    pub(crate) store: Arc<Embedded>,
    /// Where its backups go, each into a folder of its own.
    pub(crate) backups: Option<PathBuf>,
    /// Held while a backup is made.
    pub(crate) copying: Arc<Mutex<()>>,
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalStore")
    }
}

impl LocalStore {
    /// The store, and the folder for the backups that callers may ask for, if they may.
    #[must_use]
    pub fn new(store: Arc<Embedded>, backups: Option<PathBuf>) -> Self {
        Self { store, backups, copying: Arc::default() }
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
        if insiders {
            health["warnings"] = status.warnings().into();
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
