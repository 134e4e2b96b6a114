//! Which dead letters, or which other jobs, are meant.

use crate::api_error::ApiError;
use crate::app::App;
use crate::ojs::lists::sifted;
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
/// What a filter can name, in a query and in a body.
pub(crate) const FILTER: [&str; 5] = ["queue", "type", "error_type", "since", "until"];
/// The same for jobs of any ended state, which it must name.
const ENDED_FILTER: [&str; 6] = ["state", "queue", "type", "error_type", "since", "until"];
/// The same for jobs that have not ended, of one state or all.
const LIVE_FILTER: [&str; 5] = ["state", "queue", "type", "since", "until"];

/// Among which jobs a selection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// The dead letters.
    DeadLetters,
    /// All jobs that have ended, of one state.
    Ended,
    /// All jobs that have not ended, of one state or of all. Times are those at which they were enqueued.
    Live,
}

impl Among {
    pub(super) const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::DeadLetters => &FILTER,
            Self::Ended => &ENDED_FILTER,
            Self::Live => &LIVE_FILTER,
        }
    }
}

/// Which jobs are meant; what is absent fits all of them.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    filter: Filter,
    error_type: Option<String>,
    /// The states that are meant, one after the other, where they are several.
    states: Vec<State>,
    /// When they were enqueued, where that matters: since, and before.
    created: (Option<Moment>, Option<Moment>),
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
        let said = get("state");
        let (state, dead) = match among {
            Among::DeadLetters => (Some(State::Discarded), Some(true)),
            Among::Ended => (ended_state(said.as_deref(), path("state"), problems), None),
            Among::Live => (live_state(said.as_deref(), path("state"), problems), None),
        };
        let is_live = among == Among::Live;
        let states = match state {
            None if is_live => State::ALL.into_iter().filter(|state| !state.is_terminal()).collect(),
            state => state.into_iter().collect(),
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
                finished_since: since.filter(|_| !is_live),
                finished_before: until.filter(|_| !is_live),
            },
            error_type: get("error_type").map(Cow::into_owned),
            states,
            created: (since.filter(|_| is_live), until.filter(|_| is_live)),
        })
    }

    /// Dead letters that were discarded before a time, where one is given.
    pub(super) fn of_dead(before: Option<Moment>) -> Self {
        let state = Some(State::Discarded);
        let filter = Filter { state, dead: Some(true), finished_before: before, ..Filter::default() };
        Self { filter, error_type: None, states: vec![State::Discarded], created: (None, None) }
    }

    /// Ended jobs of one queue, in some states, that ended before a time where one is given.
    pub(super) fn of_queue(queue: &str, states: Vec<State>, before: Option<Moment>) -> Self {
        let filter = Filter { queue: Some(Arc::from(queue)), finished_before: before, ..Filter::default() };
        Self { filter, error_type: None, states, created: (None, None) }
    }

    /// What is meant, in words.
    pub(super) fn noun(&self) -> String {
        match (self.filter.dead, self.filter.state) {
            (Some(true), _) => "dead letters".to_owned(),
            (_, None) => "jobs".to_owned(),
            (_, Some(state)) => format!("{state} jobs"),
        }
    }

    /// Whether everything fits among which the selection is made.
    pub(super) fn fits_all(&self) -> bool {
        let Filter { queue, kind, finished_since, finished_before, .. } = &self.filter;
        let is_live = matches!(self.states.first(), Some(state) if !state.is_terminal());
        queue.is_none()
            && !(is_live && self.filter.state.is_some())
            && self.created.0.is_none()
            && self.created.1.is_none()
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
        sifted(app, &self.filter, page, |job| self.fits_error(job)).await
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
        for state in &self.states {
            let filter = Filter { state: Some(*state), ..self.filter.clone() };
            if self.walk_state(app, filter, &mut each).await?.is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn walk_state(
        &self,
        app: &App,
        filter: Filter,
        each: &mut impl FnMut(Job) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ApiError> {
        let mut page = Page { bytes: app.limits.answer_bytes, payloads: false, ..Page::new(0, STEP) };
        loop {
            let listed = app.engine.list(filter.clone(), page).await?;
            for (number, job) in listed.jobs.into_iter().enumerate() {
                if number % AT_ONCE == 0 {
                    end_step().await;
                }
                if self.fits_created(&job) && self.fits_error(&job) && each(job).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let Some(next) = listed.next else { return Ok(ControlFlow::Continue(())) };
            page = next;
        }
    }

    fn fits_created(&self, job: &Job) -> bool {
        let (since, before) = self.created;
        since.is_none_or(|since| job.times.created >= since) && before.is_none_or(|before| job.times.created < before)
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

/// The state of jobs that have not ended, where one is named.
fn live_state(said: Option<&str>, path: String, problems: &mut Vec<Problem>) -> Option<State> {
    let said = said?;
    let live = || State::ALL.into_iter().filter(|state| !state.is_terminal());
    let known = live().find(|state| state.name() == said);
    if known.is_none() {
        let allowed: Vec<&str> = live().map(State::name).collect();
        let allowed = format!("a state in which jobs have not ended: {}", allowed.join(", "));
        problems.push(Problem::new(path, format!("\"{said}\""), allowed));
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
