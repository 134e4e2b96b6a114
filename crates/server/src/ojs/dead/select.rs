//! Which dead letters are meant.

use crate::app::App;
use crate::fault::Fault;
use crate::json::{Members, text};
use crate::request::Query;
use crate::time::parse_rfc3339;
use redrive_policy::{Moment, Problem};
use redrive_store::{Filter, Job, Listed, Page, State};
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

/// How many jobs are read from the store at once.
const STEP: usize = 500;
/// What a filter can name, in a query and in a body.
pub(crate) const FILTER: [&str; 5] = ["queue", "type", "error_type", "since", "until"];

/// Which dead letters are meant; what is absent fits all.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    filter: Filter,
    error_type: Option<String>,
}

impl Selection {
    pub(super) fn of_query(query: &Query) -> Result<Self, Fault> {
        Self::of(|key| query.get(key).map(Cow::Borrowed), |key| format!("?{key}"), &mut Vec::new())
    }

    /// A filter in a body. What it does not know it refuses: a filter that is misspelt would fit all.
    pub(super) fn of_members(members: &Members<'_>) -> Result<Self, Fault> {
        let mut problems = Vec::new();
        members.only(&FILTER, &mut problems);
        for key in FILTER {
            let _ = members.text(key, &mut problems);
        }
        Self::of(|key| members.get(key).and_then(text), |key| format!("/filter/{key}"), &mut problems)
    }

    fn of<'a>(
        get: impl Fn(&str) -> Option<Cow<'a, str>>,
        path: impl Fn(&str) -> String,
        problems: &mut Vec<Problem>,
    ) -> Result<Self, Fault> {
        const ALLOWED: &str = "a timestamp such as \"2026-02-13T10:00:00Z\"";
        let mut moment = |key: &str| -> Option<Moment> {
            let said = get(key)?;
            let at = parse_rfc3339(&said);
            if at.is_none() {
                problems.push(Problem::new(path(key), format!("\"{said}\""), ALLOWED));
            }
            at
        };
        let (since, until) = (moment("since"), moment("until"));
        if !problems.is_empty() {
            return Err(Fault::invalid(std::mem::take(problems)));
        }
        Ok(Self {
            filter: Filter {
                queue: get("queue").map(|queue| Arc::from(&*queue)),
                kind: get("type").map(|kind| Arc::from(&*kind)),
                state: Some(State::Discarded),
                dead: Some(true),
                finished_since: since,
                finished_before: until,
            },
            error_type: get("error_type").map(Cow::into_owned),
        })
    }

    /// Whether every dead letter fits.
    pub(super) const fn fits_all(&self) -> bool {
        let Filter { queue, kind, finished_since, finished_before, .. } = &self.filter;
        queue.is_none()
            && kind.is_none()
            && finished_since.is_none()
            && finished_before.is_none()
            && self.error_type.is_none()
    }

    /// One page of what fits, newest first, and how many fit in all.
    pub(super) async fn page(&self, app: &App, page: Page) -> Result<Listed, Fault> {
        if self.error_type.is_none() {
            return Ok(app.engine.list(self.filter.clone(), page).await?);
        }
        let (mut jobs, mut total) = (Vec::new(), 0);
        self.for_each(app, |job| {
            if (page.offset..page.offset.saturating_add(page.limit)).contains(&total) {
                jobs.push(job);
            }
            total += 1;
        })
        .await?;
        Ok(Listed { jobs, total })
    }

    /// Everything that fits, one after the other.
    pub(super) async fn for_each(&self, app: &App, mut each: impl FnMut(Job)) -> Result<(), Fault> {
        let mut page = Page { offset: 0, limit: STEP };
        loop {
            let listed = app.engine.list(self.filter.clone(), page).await?;
            let count = listed.jobs.len();
            listed.jobs.into_iter().filter(|job| self.fits_error(job)).for_each(&mut each);
            if count < page.limit {
                return Ok(());
            }
            page.offset += count;
        }
    }

    /// Whether the most recent failure is of the type that is meant.
    fn fits_error(&self, job: &Job) -> bool {
        self.error_type.as_ref().is_none_or(|wanted| error_type(job) == *wanted)
    }
}

/// The type of the most recent failure.
pub(super) fn error_type(job: &Job) -> String {
    #[derive(Deserialize)]
    struct Kept {
        r#type: String,
    }
    let last = job.failures.last().map_or(&[][..], |failure| &failure.error);
    serde_json::from_slice::<Kept>(last).map_or_else(|_| "unknown".to_owned(), |kept| kept.r#type)
}
