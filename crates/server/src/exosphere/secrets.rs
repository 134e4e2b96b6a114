//! Secrets of graphs. They are stored encrypted, and given to runtimes that have a state of the graph.

use super::place::Place;
use super::reply::{bad, damaged, missing};
use super::{graphs, states};
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_exosphere::RunState;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The secrets of a graph, encrypted.
pub(super) fn seal(
    app: &App,
    place: &Place,
    secrets: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let keys = app.secret_keys();
    let sealed = |(name, text): (&String, &String)| Some((name.clone(), keys.seal(&place_of(place, name), text)?));
    secrets.iter().map(sealed).collect::<Option<_>>().ok_or_else(|| {
        bad("found secrets, and this server has no key to encrypt them: set secrets_key_file, or leave them out")
    })
}

/// `GET state/{state}/secrets`: all secrets of its graph, as they are now.
pub(crate) async fn get(State(app): State<Arc<App>>, place: Place) -> Result<JsonResponse, ApiError> {
    let (_, job) = states::find(&app, &place).await?;
    let parent = job.parent.ok_or_else(|| missing("State not found"))?;
    let state = RunState::read(&app.engine.run(parent.run).await?.state).map_err(damaged)?;
    if state.namespace != place.namespace {
        return Err(bad("the secrets of a graph are for states of its own namespace"));
    }
    let place = Place { graph: state.graph, ..place };
    let (_, definition) = graphs::find(&app, &place).await?;
    let keys = app.secret_keys();
    let mut secrets = Map::new();
    for (name, sealed) in &definition.secrets {
        let text = keys.open(&place_of(&place, name), sealed).ok_or_else(|| {
            let graph = &place.graph;
            ApiError::new(Code::NotConfigured, format!("no key of secrets_key_file fits the secrets of graph {graph}"))
        })?;
        secrets.insert(name.clone(), text.into());
    }
    Ok(JsonResponse::json(&json!({ "secrets": Value::Object(secrets) })))
}

/// What a secret is encrypted for.
fn place_of(place: &Place, name: &str) -> String {
    format!("{}/{}/{name}", place.namespace, place.graph)
}
