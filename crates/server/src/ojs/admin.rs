//! For operators: which jobs there are, and taking any of them back.

use super::dead;
use super::envelope::push_job;
use super::names::id_in_path;
use crate::answer::Answer;
use crate::app::App;
use crate::fault::Fault;
use crate::json::{member, push_u64};
use crate::request::{Payload, Query};
use axum::extract::{Path, State};
use redrive_policy::Problem;
use redrive_store::{Filter, Page, State as JobState};
use std::sync::Arc;

/// How many jobs a page holds where the caller does not say.
const DEFAULT: usize = 50;

pub(crate) async fn jobs(State(app): State<Arc<App>>, query: Query) -> Result<Answer, Fault> {
    let mut problems = Vec::new();
    let number = query.number("page", 1, usize::MAX, &mut problems).max(1);
    let limit = query.number("per_page", DEFAULT, app.limits.page, &mut problems).max(1);
    let state = state(&query, &mut problems);
    if !problems.is_empty() {
        return Err(Fault::invalid(problems));
    }
    let name = |key: &str| query.get(key).map(Arc::from);
    let filter = Filter { queue: name("queue"), kind: name("type"), state, ..Filter::default() };
    let page = Page { offset: (number - 1).saturating_mul(limit), limit };
    let listed = app.engine.list(filter, page).await?;
    let mut out = Vec::with_capacity(64 + listed.jobs.len() * 1_024);
    out.extend_from_slice(b"{\"items\":[");
    for (index, job) in listed.jobs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_job(&mut out, job, &app);
    }
    out.push(b']');
    member(&mut out, "pagination");
    out.push(b'{');
    for (key, number) in [("total", listed.total), ("page", number), ("per_page", limit)] {
        member(&mut out, key);
        push_u64(&mut out, number as u64);
    }
    out.extend_from_slice(b"}}");
    Ok(Answer::ok(out))
}

fn state(query: &Query, problems: &mut Vec<Problem>) -> Option<JobState> {
    let said = query.get("state")?;
    let known = JobState::ALL.into_iter().find(|state| state.name() == said);
    if known.is_none() {
        let names: Vec<&str> = JobState::ALL.iter().map(|state| state.name()).collect();
        problems.push(Problem::new("?state", format!("\"{said}\""), names.join(", ")));
    }
    known
}

/// Takes back a job that has ended, dead letter or not, to run again as if it were new.
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<Answer, Fault> {
    let id = id_in_path(&id)?;
    let members = payload.members_or_none()?;
    let job = app.engine.job(id).await?;
    dead::redriven(&app, &members, &job).await
}
