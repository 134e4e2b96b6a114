//! A copy of the store, made by the server that runs it, in the folder that its operator has named for that.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::backups::{BackupError, BackupFolder, BackupLabel, SCHEDULED, default_name};
use crate::local::LocalStore;
use crate::request::Payload;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_ojs::json::Members;
use redrive_policy::Moment;
use redrive_store::embedded::{Findings, OpenError};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tracing::info;

/// The longest name of a backup.
const LONGEST_NAME: usize = 100;

pub(crate) async fn backup(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    let name = name(&payload.members_or_none()?)?.unwrap_or_else(|| default_name(app.engine.now()));
    let (local, folder) = place(&app)?;
    let Ok(alone) = Arc::clone(&local.copying).try_lock_owned() else {
        return Err(ApiError::new(Code::RateLimited, "another backup is being made; one at a time").retry_after(10));
    };
    let to = folder.join(&name);
    let made = tokio::task::spawn_blocking({
        let (local, folder, name, now) = (local.clone(), folder.to_owned(), name.clone(), app.engine.now());
        move || {
            // Until the copy is complete, also if the caller has gone.
            let _alone = alone;
            make(&local, &folder, &name, now)
        }
    });
    let made =
        made.await.map_err(|error| ApiError::new(Code::InternalError, format!("the backup broke off: {error}")))?;
    let findings = made.map_err(|error| refusal(&name, &error))?;
    let (jobs, bytes) = (findings.jobs.iter().sum::<usize>(), findings.snapshot_bytes + findings.log_bytes);
    info!(jobs, bytes, path = %to.display(), "backup {}: {jobs} jobs, {bytes} bytes", to.display());
    Ok(JsonResponse::json(&json!({
        "backup": {
            "name": name,
            "path": to,
            "jobs": jobs,
            "dead_letters": findings.dead,
            "bytes": bytes,
            "verified": findings.is_sound(),
        },
    })))
}

fn make(local: &LocalStore, folder: &Path, name: &str, taken_at: Moment) -> Result<Findings, BackupError> {
    let label = BackupLabel { taken_at, store: local.dir(), scheduled: None };
    BackupFolder::open(folder)?.add(name, &label, |to| local.store.backup(to, &mut |_| {}))
}

/// The store and the folder for its backups.
fn place(app: &App) -> Result<(&LocalStore, &Path), ApiError> {
    let Some(local) = app.local.get() else {
        let message = format!(
            "the store is not in a folder of this server but {}; back it up there, PostgreSQL with pg_dump, or copy it \
             with `redrive store copy`",
            app.backend
        );
        return Err(ApiError::new(Code::NotConfigured, message));
    };
    let folder = local.backups.as_deref().ok_or_else(|| {
        ApiError::new(
            Code::NotConfigured,
            "the server has no folder for backups; set backups to one (REDRIVE_BACKUPS=DIR, or --set backups=DIR) and \
             start it again, or run `redrive store backup DIR TO` beside it",
        )
    })?;
    Ok((local, folder))
}

/// The name that the caller wants: a plain one, which leads nowhere but into that folder.
fn name(members: &Members<'_>) -> Result<Option<String>, ApiError> {
    let mut problems = Vec::new();
    members.only(&["name"], &mut problems);
    let name = members.text("name", &mut problems);
    if let Some(name) = &name
        && !is_plain(name)
    {
        let allowed = format!(
            "1 to {LONGEST_NAME} letters, digits, \".\", \"_\" and \"-\", the first of them no \".\"; \
             \"{SCHEDULED}\" begins the names of backups that the schedule makes"
        );
        members.wrong("name", &allowed, &mut problems);
    }
    if problems.is_empty() { Ok(name.map(Into::into)) } else { Err(ApiError::invalid(problems)) }
}

fn is_plain(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with('.')
        && !name.starts_with(SCHEDULED)
}

fn refusal(name: &str, error: &BackupError) -> ApiError {
    match error {
        BackupError::Store(OpenError::NotEmpty(path)) => {
            let message = format!("there is something in {} already; give the backup another name", path.display());
            ApiError::new(Code::Duplicate, message)
        }
        BackupError::NoFolder(_) => ApiError::new(Code::NotConfigured, error.to_string()),
        BackupError::Busy(_) => ApiError::new(Code::RateLimited, error.to_string()).retry_after(10),
        other => ApiError::new(Code::BackendError, format!("the backup {name} was not made: {other}")),
    }
}
