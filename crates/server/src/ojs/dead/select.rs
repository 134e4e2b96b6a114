//! Which dead letters, or which other ended jobs, are meant.

use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Query;
use redrive_ojs::json::{Members, text};
use redrive_ojs::time::parse_rfc3339;
use redrive_policy::{Moment, Problem};
use redrive_store::{Filter, Job, Listed, Page, State, end_step};
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many jobs are read from the store at once.
const STEP: usize = 500;
/// How many of them are looked at in one step.
const AT_ONCE: usize = 50;
/// How often the store is asked for one page of jobs with a certain error, which it does not know of.
const LOOKS: usize = 20;
/// What a filter can name, in a query and in a body.
pub(crate) const FILTER: [&str; 5] = ["queue", "type", "error_type", "since", "until"];
/// The same for jobs of any ended state, which it must name.
const ENDED_FILTER: [&str; 6] = ["state", "queue", "type", "error_type", "since", "until"];

/// Among which jobs a selection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// The dead letters.
    DeadLetters,
    /// All jobs that have ended, of one state.
    Ended,
}

impl Among {
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::DeadLetters => &FILTER,
            Self::Ended => &ENDED_FILTER,
        }
    }
}

/// Which jobs are meant; what is absent fits all of them.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    filter: Filter,
    error_type: Option<String>,
}

impl Selection {
    /// Dead letters by the parameters of a query.
    pub(super) fn of_query(query: &Query) -> Result<Self, ApiError> {
        let get = |key: &str| query.get(key).map(Cow::Borrowed);
        Self::of(Among::DeadLetters, get, |key| format!("?{key}"), &mut Vec::new())
    }

    /// A filter in a body. What it does not know it refuses: a filter that is misspelt would fit all.
    pub(super) fn of_members(among: Among, members: &Members<'_>) -> Result<Self, ApiError> {
        let mut problems = Vec::new();
        members.only(among.keys(), &mut problems);
        for key in among.keys() {
            let _ = members.text(key, &mut problems);
        }
        Self::of(among, |key| members.get(key).and_then(text), |key| format!("/filter/{key}"), &mut problems)
    }

    fn of<'a>(
        among: Among,
        get: impl Fn(&str) -> Option<Cow<'a, str>>,
        path: impl Fn(&str) -> String,
        problems: &mut Vec<Problem>,
    ) -> Result<Self, ApiError> {
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
        let (state, dead) = match among {
            Among::DeadLetters => (Some(State::Discarded), Some(true)),
            Among::Ended => (ended_state(get("state").as_deref(), path("state"), problems), None),
        };
        if !problems.is_empty() {
            return Err(ApiError::invalid(std::mem::take(problems)));
        }
        Ok(Self {
            filter: Filter {
                queue: get("queue").map(|queue| Arc::from(&*queue)),
                kind: get("type").map(|kind| Arc::from(&*kind)),
                state,
                dead,
                finished_since: since,
                finished_before: until,
            },
            error_type: get("error_type").map(Cow::into_owned),
        })
    }

    /// What is meant, in words.
    pub(super) fn noun(&self) -> String {
        match (self.filter.dead, self.filter.state) {
            (Some(true), _) | (_, None) => "dead letters".to_owned(),
            (_, Some(state)) => format!("{state} jobs"),
        }
    }

    /// Whether everything fits among which the selection is made.
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
    pub(super) async fn total(&self, app: &App) -> Result<Option<u64>, ApiError> {
        let listed = app.engine.list(self.filter.clone(), Page::new(0, 0)).await?;
        Ok(listed.total.filter(|_| self.error_type.is_none()).map(|total| total as u64))
    }

    /// One page of what fits, the latest to die first.
    pub(super) async fn page(&self, app: &App, page: Page) -> Result<Listed, ApiError> {
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
            end_step().await;
        }
        Ok(Listed { jobs, next: Some(rest), total: None })
    }

    /// Everything that fits, one after the other, without bodies and results.
    pub(super) async fn for_each(&self, app: &App, mut each: impl FnMut(Job)) -> Result<(), ApiError> {
        let whole = |job| {
            each(job);
            ControlFlow::Continue(())
        };
        self.walk(app, whole).await
    }

    /// As [`Selection::for_each`], until `each` breaks off.
    pub(super) async fn walk(&self, app: &App, mut each: impl FnMut(Job) -> ControlFlow<()>) -> Result<(), ApiError> {
        let mut page = Page { bytes: app.limits.answer_bytes, payloads: false, ..Page::new(0, STEP) };
        loop {
            let listed = app.engine.list(self.filter.clone(), page).await?;
            for (number, job) in listed.jobs.into_iter().enumerate() {
                if number % AT_ONCE == 0 {
                    end_step().await;
                }
                if self.fits_error(&job) && each(job).is_break() {
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

/// The state of jobs that have ended, which must be named, because redriving each of them means something else.
fn ended_state(said: Option<&str>, path: String, problems: &mut Vec<Problem>) -> Option<State> {
    let ended = || State::ALL.into_iter().filter(|state| state.is_terminal());
    let known = ended().find(|state| Some(state.name()) == said);
    if known.is_none() {
        let allowed: Vec<&str> = ended().map(State::name).collect();
        let allowed = format!("a state in which jobs have ended: {}", allowed.join(", "));
        problems.push(match said {
            Some(said) => Problem::new(path, format!("\"{said}\""), allowed),
            None => Problem::with_message(path, format!("missing; {allowed} is required")),
        });
    }
    known
}

/// The type of the most recent failure.
pub(super) fn error_type(job: &Job) -> String {
    #[derive(Deserialize)]
    struct StoredError {
        r#type: String,
    }
    let last = job.failures.last().map_or(&[][..], |failure| &failure.error);
    serde_json::from_slice::<StoredError>(last).map_or_else(|_| "unknown".to_owned(), |error| error.r#type)
}
