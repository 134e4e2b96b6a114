//! Maintenance mode.

use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Payload;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::Maintenance;
use redrive_ojs::json::text;
use redrive_ojs::time::rfc3339;
use redrive_policy::Problem;
use redrive_policy::dialect::iso_duration;
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::warn;

/// The longest reason in bytes.
const LONGEST_REASON: usize = 1_000;

/// `GET /admin/system/maintenance`.
pub(crate) async fn maintenance(State(app): State<Arc<App>>) -> Result<JsonResponse, ApiError> {
    app.engine.recall_maintenance().await?;
    Ok(JsonResponse::json(&shown(app.engine.maintenance().as_ref())))
}

/// `POST /admin/system/maintenance`: begins it, changes what is said about it, or ends it.
pub(crate) async fn set_maintenance(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    let members = payload.members()?;
    let mut problems = Vec::new();
    members.only(&["enabled", "reason", "estimated_duration"], &mut problems);
    if !members.has("enabled") {
        members.wrong("enabled", "true or false", &mut problems);
    }
    let enabled = members.flag("enabled", &mut problems);
    let reason = members.text("reason", &mut problems);
    if let Some(reason) = reason.as_ref().filter(|reason| reason.len() > LONGEST_REASON) {
        let found = format!("{} bytes", reason.len());
        problems.push(Problem::new("/reason", found, format!("at most {LONGEST_REASON} bytes")));
    }
    const DURATION: &str = "a duration such as \"PT30M\"";
    let duration = members.read("estimated_duration", DURATION, &mut problems, |value| {
        iso_duration(&text(value)?).map(|parsed| parsed.span)
    });
    if enabled == Some(false) && (reason.is_some() || duration.is_some()) {
        let message = "ends maintenance, which needs no reason and no duration; leave them out";
        problems.push(Problem::with_message("/enabled", message));
    }
    let Some(enabled) = enabled.filter(|_| problems.is_empty()) else { return Err(ApiError::invalid(problems)) };
    if !enabled {
        app.engine.end_maintenance().await?;
        warn!("maintenance has ended");
        return Ok(JsonResponse::json(&shown(None)));
    }
    let end = duration.map(|duration| app.engine.now().after(duration));
    let maintenance = app.engine.begin_maintenance(reason.map(|reason| reason.into_owned()), end).await?;
    let why = maintenance.reason.as_deref().unwrap_or("no reason is given");
    warn!(reason = why, "maintenance: no jobs are claimed, and no schedules are due: {why}");
    Ok(JsonResponse::json(&shown(Some(&maintenance))))
}

fn shown(maintenance: Option<&Maintenance>) -> Value {
    let Some(Maintenance { reason, since, expected_end }) = maintenance else {
        return json!({ "maintenance": false });
    };
    let mut shown = json!({ "maintenance": true, "enabled_at": rfc3339(*since) });
    if let Some(reason) = reason {
        shown["reason"] = reason.as_str().into();
    }
    if let Some(end) = expected_end {
        shown["estimated_end"] = rfc3339(*end).into();
    }
    shown
}
