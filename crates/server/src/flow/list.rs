//! Lists of definitions and of runs.

use super::{damaged, definitions};
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Query;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_flow::runs::{DEFINITION, DefinitionState, FLOW, RunView, Shown, definition_key, is_name};
use redrive_policy::Problem;
use redrive_store::{RunFilter, RunId, RunKeys};
use serde_json::{Value, json};
use std::sync::Arc;

/// What the lists are asked for with.
pub(super) const DEFINITIONS: &[&str] = &["limit", "after"];
pub(super) const RUNS: &[&str] = &["limit", "after", "state", "definition"];
/// How many entries a page has where the caller does not say.
const DEFAULT_PAGE: usize = 50;
/// How many runs are read from the store at once, and how often for one page: the store does not know which fit.
const STEP: usize = 100;
const LOOKS: usize = 20;
/// What `state` can be.
const STATES: [&str; 5] = ["running", "ended", "completed", "failed", "cancelled"];

/// `GET /flows/v1/definitions`, by name.
pub(crate) async fn definitions(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let limit = query.number("limit", DEFAULT_PAGE, app.limits.page, &mut problems).max(1);
    let after = query.get("after");
    if let Some(name) = after.filter(|name| !is_name(name)) {
        problems.push(Problem::new("?after", format!("{name:?}"), "the name of a definition"));
    }
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let prefix = definition_key("");
    let keys = RunKeys { prefix: Arc::clone(&prefix), after: after.map(definition_key) };
    let filter = RunFilter { program: Some(DEFINITION.into()), keys: Some(keys), ..RunFilter::default() };
    let runs = app.engine.throttled(app.engine.list_runs(filter, limit)).await?;
    let mut shown = Vec::with_capacity(runs.len());
    let mut last = None;
    for run in &runs {
        let name = run.key.as_deref().and_then(|key| key.strip_prefix(&*prefix)).unwrap_or_default();
        let state = DefinitionState::read(&run.state).map_err(damaged)?;
        let newest = definitions::version(name, &state, None)?;
        shown.push(Value::Object(definitions::brief(name, run, newest)));
        last = Some(name);
    }
    let mut answer = json!({ "definitions": shown });
    if let Some(last) = last.filter(|_| runs.len() == limit) {
        answer["next_after"] = last.into();
    }
    Ok(JsonResponse::json(&answer))
}

/// Which runs a caller wants.
struct Wanted<'q> {
    state: Option<&'q str>,
    definition: Option<&'q str>,
}

impl Wanted<'_> {
    fn fits(&self, view: &RunView) -> bool {
        let state = match self.state {
            None | Some("ended") => true,
            Some("running") => view.run().end.is_none(),
            Some(word) => view.state_name() == word,
        };
        state && self.definition.is_none_or(|name| view.state().definition == name)
    }
}

/// `GET /flows/v1/runs`, the newest first. A request looks at a limited number of runs: its page may have fewer than
/// were asked for, and still not be the last.
pub(crate) async fn runs(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let limit = query.number("limit", DEFAULT_PAGE, app.limits.page, &mut problems).max(1);
    let after = query.get("after").map(str::parse::<RunId>);
    if let (Some(Err(_)), Some(text)) = (&after, query.get("after")) {
        problems.push(Problem::new("?after", format!("{text:?}"), "the id of a run"));
    }
    let wanted = Wanted { state: query.get("state"), definition: query.get("definition") };
    if let Some(word) = wanted.state.filter(|word| !STATES.contains(word)) {
        problems.push(Problem::new("?state", format!("{word:?}"), STATES.join(", ")));
    }
    if let Some(name) = wanted.definition.filter(|name| !is_name(name)) {
        problems.push(Problem::new("?definition", format!("{name:?}"), "the name of a definition"));
    }
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let after = after.and_then(Result::ok);
    let page = app.engine.throttled::<Result<_, ApiError>>(page(&app, &wanted, after, limit)).await?;
    let mut answer = json!({ "runs": page.0 });
    if let Some(next) = page.1 {
        answer["next_after"] = next.to_string().into();
    }
    Ok(JsonResponse::json(&answer))
}

async fn page(
    app: &App,
    wanted: &Wanted<'_>,
    after: Option<RunId>,
    limit: usize,
) -> Result<(Vec<Value>, Option<RunId>), ApiError> {
    let ended = wanted.state.map(|word| word != "running");
    let mut filter = RunFilter { program: Some(FLOW.into()), ended, after, keys: None };
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for _ in 0..LOOKS {
        let some = app.engine.list_runs(filter.clone(), STEP).await?;
        let is_last = some.len() < STEP;
        for run in some {
            if shown.len() == limit || bytes > app.limits.answer_bytes {
                return Ok((shown, filter.after));
            }
            let view = RunView::read(run).map_err(damaged)?;
            filter.after = Some(view.run().id);
            if wanted.fits(&view) {
                bytes += view.run().end.as_ref().map_or(0, |end| end.result.len());
                shown.push(view.to_value(Shown::Listed));
            }
        }
        if is_last {
            return Ok((shown, None));
        }
    }
    Ok((shown, filter.after))
}
