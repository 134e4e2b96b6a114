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
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many jobs are read from the store at once.
const STEP: usize = 500;
/// How often the store is asked for one page of jobs with a certain error, which it does not know of.
const LOOKS: usize = 20;
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

    /// The filter of the store.
    pub(super) const fn filter(&self) -> &Filter {
        &self.filter
    }

    /// How many fit in all, where that is known without looking at them.
    pub(super) async fn total(&self, app: &App) -> Result<Option<u64>, Fault> {
        let listed = app.engine.list(self.filter.clone(), Page::new(0, 0)).await?;
        Ok(listed.total.filter(|_| self.error_type.is_none()).map(|total| total as u64))
    }

    /// One page of what fits, the latest to die first.
    pub(super) async fn page(&self, app: &App, page: Page) -> Result<Listed, Fault> {
        if self.error_type.is_none() {
            return Ok(app.engine.list(self.filter.clone(), page).await?);
        }
        let (mut rest, mut jobs, mut bytes) = (page, Vec::new(), 0_usize);
        for _ in 0..LOOKS {
            let listed = app.engine.list(self.filter.clone(), Page { offset: 0, limit: STEP, ..rest }).await?;
            for job in listed.jobs {
                let entry = self.filter.entry(&job);
                if !self.fits_error(&job) {
                    // Passed over.
                } else if rest.offset > 0 {
                    rest.offset -= 1;
                } else {
                    bytes = bytes.saturating_add(job.bytes());
                    if jobs.len() >= page.limit || (bytes > page.bytes && !jobs.is_empty()) {
                        return Ok(Listed { jobs, next: Some(rest), total: None });
                    }
                    jobs.push(job);
                }
                rest.after = Some(entry);
            }
            let Some(next) = listed.next else { return Ok(Listed { jobs, next: None, total: None }) };
            rest.after = next.after;
        }
        Ok(Listed { jobs, next: Some(rest), total: None })
    }

    /// Everything that fits, one after the other, without bodies and results.
    pub(super) async fn for_each(&self, app: &App, mut each: impl FnMut(Job)) -> Result<(), Fault> {
        let whole = |job| {
            each(job);
            ControlFlow::Continue(())
        };
        self.walk(app, whole).await
    }

    /// As [`Selection::for_each`], until `each` breaks off.
    pub(super) async fn walk(&self, app: &App, mut each: impl FnMut(Job) -> ControlFlow<()>) -> Result<(), Fault> {
        let mut page = Page { bytes: app.limits.answer_bytes, payloads: false, ..Page::new(0, STEP) };
        loop {
            let listed = app.engine.list(self.filter.clone(), page).await?;
            for job in listed.jobs.into_iter().filter(|job| self.fits_error(job)) {
                if each(job).is_break() {
                    return Ok(());
                }
            }
            let Some(next) = listed.next else { return Ok(()) };
            page = next;
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
