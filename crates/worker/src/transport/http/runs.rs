//! Workflows and schedules over HTTP.

use super::super::Ask;
use super::ANSWER;
use super::call::Caller;
use crate::ClientError;
use crate::http::escaped;
use serde_json::{Value, json};

/// Sends a request; the answer is the object that it is about, or the list.
pub(super) async fn ask(caller: &Caller, ask: Ask<'_>) -> Result<Value, ClientError> {
    let workflow = |id: &str| format!("/ojs/v1/workflows/{}", escaped(id));
    let schedule = |name: &str| format!("/ojs/v1/cron/{}", escaped(name));
    let body = |document: &Value| document.to_string().into_bytes();
    let (answer, member) = match ask {
        Ask::StartWorkflow(document) => {
            (caller.post("/ojs/v1/workflows", body(&document), ANSWER).await?, Some("workflow"))
        }
        Ask::Workflow(id) => (caller.get(&workflow(id), ANSWER).await?, Some("workflow")),
        Ask::CancelWorkflow(id) => (caller.delete(&workflow(id), ANSWER).await?, Some("workflow")),
        Ask::ListWorkflows { ended, after, limit } => {
            let state = ended.map(|ended| if ended { "&state=ended" } else { "&state=running" });
            let after = after.map(|after| format!("&after={}", escaped(&after)));
            let (state, after) = (state.unwrap_or_default(), after.unwrap_or_default());
            (caller.get(&format!("/ojs/v1/workflows?limit={limit}{state}{after}"), ANSWER).await?, None)
        }
        Ask::Register(document) => (caller.post("/ojs/v1/cron", body(&document), ANSWER).await?, Some("cron_job")),
        Ask::Replace(name, document) => (caller.put(&schedule(name), body(&document), ANSWER).await?, Some("cron_job")),
        Ask::Schedule(name) => (caller.get(&schedule(name), ANSWER).await?, Some("cron_job")),
        Ask::Switch(name, enabled) => {
            let switch = json!({ "enabled": enabled });
            (caller.patch(&schedule(name), body(&switch), ANSWER).await?, Some("cron_job"))
        }
        Ask::DeleteSchedule(name) => (caller.delete(&schedule(name), ANSWER).await?, Some("cron_job")),
        Ask::ListSchedules { after, limit } => {
            let after = after.map_or_else(String::new, |after| format!("&cursor={}", escaped(&after)));
            (caller.get(&format!("/ojs/v1/cron?limit={limit}{after}"), ANSWER).await?, None)
        }
    };
    let mut answer: Value = serde_json::from_slice(&answer)
        .map_err(|error| ClientError::Garbled(format!("this is not a server of Open Job Spec: {error}")))?;
    match member {
        // Other servers may have the object at the top only.
        Some(member) if answer[member].is_object() => Ok(answer[member].take()),
        _ => Ok(answer),
    }
}
