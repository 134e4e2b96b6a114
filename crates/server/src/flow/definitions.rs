//! Definitions: put, look at, remove.

use super::damaged;
use super::request::checked_name;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_engine::{EngineError, RunRequest};
use redrive_flow::runs::{DEFINITION, DefinitionState, MAX_STORED, REMOVE, REPLACE, VersionState, definition_key};
use redrive_flow::{Definition, Problem};
use redrive_ojs::time::rfc3339;
use redrive_policy::Moment;
use redrive_store::{Blob, Run, Signal};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How often a definition is looked for that others put, or remove, at the same time.
const LOOKS: usize = 5;

/// `PUT /flows/v1/definitions/{name}`: a new definition, or a new version of one.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let (key, text) = (definition_key(checked_name(&name)?), checked(payload.bytes())?);
    for _ in 0..LOOKS {
        let (run, status) = match app.engine.run_of_key(Arc::clone(&key)).await? {
            Some(run) => {
                let signal = Signal { name: REPLACE.into(), body: text.as_bytes().into() };
                (app.engine.signal_run(run.id, signal).await?, StatusCode::OK)
            }
            None => {
                let state = Blob::from(DefinitionState::new(text.to_owned(), app.engine.now()).write());
                let request = RunRequest { id: None, program: DEFINITION, state, key: Some(Arc::clone(&key)) };
                match app.engine.start_run(request).await {
                    Err(EngineError::RunKeyTaken(_)) => continue,
                    answer => (answer?, StatusCode::CREATED),
                }
            }
        };
        let state = DefinitionState::read(&run.state).map_err(damaged)?;
        // Others may have put theirs behind it. One that was removed meanwhile did not get it.
        let own = state.versions.iter().rev().find(|version| version.text == text);
        if let Some(version) = own.filter(|_| run.end.is_none()) {
            return Ok(whole(&name, &run, &state, version).status(status));
        }
    }
    Err(ApiError::new(Code::Conflict, "others change the same definition; send the request again"))
}

/// `GET /flows/v1/definitions/{name}`.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    query: Query,
) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let number = query.number("version", 0, usize::MAX, &mut problems) as u64;
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let (run, state) = find(&app, &name).await?;
    let version = version(&name, &state, query.get("version").map(|_| number))?;
    Ok(whole(&name, &run, &state, version))
}

/// `DELETE /flows/v1/definitions/{name}`. Runs that were started with it go on.
pub(crate) async fn delete(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<JsonResponse, ApiError> {
    let (run, _) = find(&app, &name).await?;
    let run = app.engine.signal_run(run.id, Signal { name: REMOVE.into(), body: Blob::default() }).await?;
    let state = DefinitionState::read(&run.state).map_err(damaged)?;
    let version = state.newest().map(|newest| newest.version);
    Ok(JsonResponse::json(&json!({ "name": name, "version": version, "deleted": true })))
}

/// A definition that is there.
pub(super) async fn find(app: &App, name: &str) -> Result<(Run, DefinitionState), ApiError> {
    let run = app.engine.run_of_key(definition_key(checked_name(name)?)).await?;
    let run = run.ok_or_else(|| {
        let message = format!("there is no definition {name:?}; PUT /flows/v1/definitions/{name} makes one");
        ApiError::new(Code::NotFound, message)
    })?;
    let state = DefinitionState::read(&run.state).map_err(damaged)?;
    Ok((run, state))
}

/// A version of a definition that is kept.
pub(super) fn version<'s>(
    name: &str,
    state: &'s DefinitionState,
    number: Option<u64>,
) -> Result<&'s VersionState, ApiError> {
    state.version(number).ok_or_else(|| {
        let kept: Vec<String> = state.versions.iter().map(|version| version.version.to_string()).collect();
        let (number, kept) = (number.unwrap_or_default(), kept.join(", "));
        ApiError::new(Code::NotFound, format!("{name:?} has no version {number}; kept are {kept}"))
    })
}

/// The text of a definition that has no problem.
fn checked(bytes: &[u8]) -> Result<&str, ApiError> {
    if bytes.len() > MAX_STORED {
        let message = format!("the definition has {} bytes; at most {MAX_STORED} can be stored", bytes.len());
        return Err(ApiError::new(Code::PayloadTooLarge, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let place = error.valid_up_to();
        ApiError::new(Code::InvalidPayload, format!("the body is not UTF-8: byte {place} does not fit"))
    })?;
    Definition::read(text).map(|_| text).map_err(|problems| invalid(&problems))
}

/// How many problems of a definition are listed.
const LISTED: usize = 100;

fn invalid(problems: &[Problem]) -> ApiError {
    let first = problems.first().map_or_else(String::new, ToString::to_string);
    let more = match problems.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more in details.problems)", count - 1),
    };
    let listed = problems.get(..LISTED).unwrap_or(problems);
    let details = json!({
        "error_type": "validation.flow_definition_invalid", "problems": listed, "problems_found": problems.len(),
    });
    ApiError::new(Code::ValidationError, format!("the definition is not valid: {first}{more}")).with_details(details)
}

/// A definition as lists have it.
pub(super) fn brief(name: &str, run: &Run, version: &VersionState) -> Map<String, Value> {
    let counts = Definition::read(&version.text).map_or(Value::Null, |definition| {
        let counts = definition.counts();
        json!({
            "flows": counts.flows, "steps": counts.steps, "calls": counts.calls, "middleware": counts.middleware,
        })
    });
    let mut shown = Map::new();
    shown.insert("name".to_owned(), name.into());
    shown.insert("version".to_owned(), version.version.into());
    shown.insert("created_at".to_owned(), rfc3339(run.created).into());
    shown.insert("updated_at".to_owned(), rfc3339(Moment::from_micros(version.at_us)).into());
    shown.insert("counts".to_owned(), counts);
    shown
}

/// A definition with its text, as it was put.
fn whole(name: &str, run: &Run, state: &DefinitionState, version: &VersionState) -> JsonResponse {
    let mut shown = brief(name, run, version);
    let versions = state.versions.iter().map(
        |version| json!({ "version": version.version, "created_at": rfc3339(Moment::from_micros(version.at_us)) }),
    );
    shown.insert("versions".to_owned(), versions.collect());
    let mut out = Value::Object(shown).to_string().into_bytes();
    out.pop();
    out.extend_from_slice(b",\"definition\":");
    out.extend_from_slice(version.text.as_bytes());
    out.push(b'}');
    JsonResponse::ok(out)
}
