//! Limits: how they stand, and what operators set.

use super::lists::{Pages, named_page};
use super::names::{queue_in_path, type_in_path};
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use redrive_ojs::queues::{LimitConfig, QueueConfig, group_json, standing_json};
use redrive_store::{Group, Setting};
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::info;

/// All groups that have limits.
pub(crate) async fn list(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let standings = app.engine.standings(None).await?;
    let named: Vec<_> = standings.iter().map(|standing| (standing.group.to_string(), standing)).collect();
    let (page, shown) = named_page(&query, Pages::Numbered, &app.limits, &named, |(name, _)| name)?;
    let items: Vec<Value> = page.iter().map(|(_, standing)| standing_json(standing)).collect();
    let mut out = b"{\"items\":".to_vec();
    out.extend_from_slice(Value::Array(items).to_string().as_bytes());
    shown.push(&mut out);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// How the group of a key stands.
pub(crate) async fn show(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<JsonResponse, ApiError> {
    standing(&app, key_in_path(&app, &key)?).await
}

/// Sets limits for a key, which replace those that its jobs bring.
pub(crate) async fn set(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    set_group(&app, key_in_path(&app, &key)?, &payload).await
}

/// Removes what is set for a key, by an operator or by a worker that asked to hold it.
pub(crate) async fn unset(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<JsonResponse, ApiError> {
    let group = key_in_path(&app, &key)?;
    app.engine.hold_group(group.clone(), app.engine.now()).await?;
    unset_group(&app, group).await
}

/// How the group of a type stands.
pub(crate) async fn show_type(State(app): State<Arc<App>>, Path(kind): Path<String>) -> Result<JsonResponse, ApiError> {
    standing(&app, type_group(&app, &kind)?).await
}

/// Sets limits for a type, which apply to jobs that are enqueued from now on.
pub(crate) async fn set_type(
    State(app): State<Arc<App>>,
    Path(kind): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    set_group(&app, type_group(&app, &kind)?, &payload).await
}

/// Removes what is set for a type.
pub(crate) async fn unset_type(
    State(app): State<Arc<App>>,
    Path(kind): Path<String>,
) -> Result<JsonResponse, ApiError> {
    unset_group(&app, type_group(&app, &kind)?).await
}

/// Sets limits for a queue, and leaves the rest of its configuration.
pub(crate) async fn set_queue(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    queue_in_path(&name, &app.limits)?;
    set_group(&app, Group::Queue(Arc::from(&*name)), &payload).await
}

/// The configuration of a queue.
pub(crate) async fn config(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<JsonResponse, ApiError> {
    queue_in_path(&name, &app.limits)?;
    let setting = setting_of(&app, &Group::Queue(Arc::from(&*name))).await?.unwrap_or_default();
    Ok(JsonResponse::json(&json!({ "queue": name, "configuration": QueueConfig::of(&setting).to_json() })))
}

/// Replaces the configuration of a queue.
pub(crate) async fn configure(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    queue_in_path(&name, &app.limits)?;
    let mut problems = Vec::new();
    let config = QueueConfig::read(&payload.members()?, &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    app.engine.set_limit(Group::Queue(Arc::from(&*name)), config.setting()).await?;
    info!(queue = name, "queue {name} was configured");
    Ok(JsonResponse::json(&json!({ "queue": name, "configuration": config.to_json() })))
}

fn key_in_path(app: &App, key: &str) -> Result<Group, ApiError> {
    if redrive_ojs::is_limit_key(key, &app.limits.of_jobs()) {
        return Ok(Group::Key(key.into()));
    }
    let allowed = "letters, digits, dots, colons, hyphens and _, with a letter or digit first";
    Err(ApiError::new(Code::InvalidRequest, format!("found the key \"{key}\"; allowed are {allowed}")))
}

fn type_group(app: &App, kind: &str) -> Result<Group, ApiError> {
    type_in_path(kind, &app.limits)?;
    Ok(Group::Kind(kind.into()))
}

async fn standing(app: &App, group: Group) -> Result<JsonResponse, ApiError> {
    let missing = format!("nothing is known of the limit {group}: nothing is set, and no job has it");
    let found = app.engine.standings(Some(group)).await?.pop();
    let found = found.ok_or_else(|| ApiError::new(Code::NotFound, missing))?;
    Ok(JsonResponse::json(&standing_json(&found)))
}

async fn setting_of(app: &App, group: &Group) -> Result<Option<Setting>, ApiError> {
    let settings = app.engine.limit_settings().await?;
    Ok(settings.into_iter().find(|(of, _)| of == group).map(|(_, setting)| setting))
}

async fn set_group(app: &App, group: Group, payload: &Payload) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let config = LimitConfig::read(&payload.members()?, &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let before = setting_of(app, &group).await?.unwrap_or_default();
    let setting = Setting { bounds: config.bounds, until: config.until, ..before };
    app.engine.set_limit(group.clone(), Some(setting)).await?;
    info!("the limit {group} was set");
    standing(app, group).await
}

async fn unset_group(app: &App, group: Group) -> Result<JsonResponse, ApiError> {
    app.engine.set_limit(group.clone(), None).await?;
    info!("the limit {group} was removed");
    Ok(JsonResponse::json(&Value::Object(group_json(&group))))
}
