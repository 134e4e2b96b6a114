//! Registered nodes.

use super::definitions::{all, put};
use super::place::Place;
use super::reply::{Document, damaged, fields};
use crate::api_error::ApiError;
use crate::app::App;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_exosphere::{NODE, Node, node_key, read_registration};
use redrive_ojs::time::rfc3339;
use redrive_store::Run;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// `PUT nodes/`: registers the nodes of a runtime, or changes them.
pub(crate) async fn register(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let registration = read_registration(&body).map_err(|errors| fields(&errors))?;
    for node in &registration.nodes {
        let key = node_key(&place.namespace, &node.name);
        let known = app.engine.run_of_key(Arc::clone(&key)).await?;
        // A runtime registers its nodes whenever it starts; mostly nothing has changed.
        if !known.is_some_and(|run| Node::read(&run.state).as_ref() == Ok(node)) {
            put(&app.engine, NODE, key, node).await?;
        }
    }
    let nodes: Vec<Value> = registration.nodes.iter().map(described).collect();
    Ok(JsonResponse::json(&json!({ "runtime_name": registration.runtime_name, "registered_nodes": nodes })))
}

/// `GET nodes/`.
pub(crate) async fn list(State(app): State<Arc<App>>, place: Place) -> Result<JsonResponse, ApiError> {
    let runs = all(&app.engine, NODE, node_key(&place.namespace, "")).await?;
    let nodes = runs.iter().map(|run| shown(run, &place.namespace)).collect::<Result<Vec<Value>, ApiError>>()?;
    let answer = json!({ "namespace": place.namespace, "count": nodes.len(), "nodes": nodes });
    Ok(JsonResponse::json(&answer))
}

/// `GET /v0/namespaces`: those that have registered nodes.
pub(crate) async fn namespaces(State(app): State<Arc<App>>) -> Result<JsonResponse, ApiError> {
    let prefix: Arc<str> = format!("{NODE}:").into();
    let runs = all(&app.engine, NODE, Arc::clone(&prefix)).await?;
    let keys = runs.iter().filter_map(|run| run.key.as_deref()?.strip_prefix(&*prefix)?.split('/').next());
    let names: BTreeSet<&str> = keys.collect();
    Ok(JsonResponse::json(&json!({ "namespaces": names, "count": names.len() })))
}

fn described(node: &Node) -> Value {
    json!({
        "name": node.name,
        "inputs_schema": node.inputs_schema,
        "outputs_schema": node.outputs_schema,
        "secrets": node.secrets,
    })
}

fn shown(run: &Run, namespace: &str) -> Result<Value, ApiError> {
    let node = Node::read(&run.state).map_err(damaged)?;
    Ok(json!({
        "_id": run.id.to_string(),
        "created_at": rfc3339(run.created),
        "updated_at": rfc3339(run.advanced),
        "name": node.name,
        "namespace": namespace,
        "runtime_name": node.runtime_name,
        "runtime_namespace": namespace,
        "inputs_schema": node.inputs_schema,
        "outputs_schema": node.outputs_schema,
        "secrets": node.secrets,
    }))
}
