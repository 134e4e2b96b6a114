//! Opening and closing the store of a server, with log lines about what was found.

use crate::config::StoreLocation;
use crate::exit::Failed;
use redrive_engine::Backend;
use redrive_store::State;
use redrive_store::embedded::{Access, Opened, Repair};
use std::path::Path;
use tracing::info;

/// Opens the store; the lines are for the log.
pub(crate) async fn open(location: &StoreLocation) -> Result<(Backend, Vec<String>), Failed> {
    match location {
        StoreLocation::Folder(data) => open_folder(data),
        StoreLocation::Postgres(options) => {
            let backend = Backend::open_postgres((**options).clone()).await.map_err(Failed::unreachable)?;
            let line = format!("store: PostgreSQL, {options}; every answer waits until its transaction is committed");
            Ok((backend, vec![line]))
        }
    }
}

fn open_folder(data: &Path) -> Result<(Backend, Vec<String>), Failed> {
    let (backend, opened) = Backend::open_folder(data).map_err(Failed::unreachable)?;
    let store_line = format!("store: {}; every answer waits until its write is flushed to disk", data.display());
    let mut lines = vec![store_line, found(&opened)];
    lines.extend(opened.repairs.iter().map(repaired));
    lines.extend(opened.access.iter().map(closed_to_others));
    if !opened.confirmed {
        lines.push(
            "WARNING: the high-water mark of the store was missing or unreadable, so a lost end of the log would \
             not have been noticed; a new one was created"
                .to_owned(),
        );
    }
    Ok((backend, lines))
}

/// Closes the store, and logs it.
pub(crate) async fn close(backend: &Backend, location: &StoreLocation) -> Result<(), Failed> {
    backend.close().await.map_err(Failed::unreachable)?;
    match location {
        StoreLocation::Folder(data) => info!("stopped; the store in {} is closed", data.display()),
        StoreLocation::Postgres(_) => info!("stopped"),
    }
    Ok(())
}

/// A log line about the contents of the store at the start.
fn found(opened: &Opened) -> String {
    let present = State::ALL.into_iter().filter(|state| opened.count(*state) > 0);
    let mut parts: Vec<String> = present.map(|state| format!("{} {state}", opened.count(state))).collect();
    if opened.dead > 0 {
        parts.push(format!("{} of them dead letters", opened.dead));
    }
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let total: usize = opened.jobs.iter().sum();
    let ending = match (opened.clean, opened.confirmed) {
        (true, _) => "",
        (false, true) => "; the store was not closed cleanly; its log is complete up to the high-water mark",
        (false, false) => "; the store was not closed cleanly",
    };
    format!("found {total} jobs{parts} in {} ms{ending}", opened.took.as_millis())
}

/// A log line about a file or folder that other users had access to.
fn closed_to_others(access: &Access) -> String {
    let path = access.path.display();
    match (&access.error, access.mode) {
        (Some(error), _) => format!(
            "WARNING: other users of this machine may be able to read {path}, and that cannot be changed: {error}; \
             set its permissions yourself: 0700 for the folder, 0600 for its files"
        ),
        (None, mode) => {
            let mode = mode.unwrap_or_default();
            format!("{path} was open to other users of this machine (permissions {mode:04o}); now only to its owner")
        }
    }
}

/// A log line about the repair of what a crash had left.
fn repaired(repair: &Repair) -> String {
    match repair {
        Repair::CutOff { file, offset, bytes } => {
            let file = file.display();
            format!("cut off {bytes} bytes of {file} at {offset}: a write that was never acknowledged")
        }
        Repair::Removed(file) => format!("removed {}, which a crash had left", file.display()),
    }
}
