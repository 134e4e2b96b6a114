//! Pages of lists: which one a caller asks for, and how its answer says where to go on.

use super::cursor::Cursor;
use crate::api_error::ApiError;
use crate::app::App;
use crate::limits::Limits;
use crate::request::Query;
use crate::response::JsonResponse;
use redrive_ojs::json::{member, push_str, push_u64};
use redrive_policy::Problem;
use redrive_store::{Filter, Job, Listed, Page, end_step};

/// How many entries a page holds where the caller does not say.
const DEFAULT: usize = 50;
/// How many jobs are read from the store at once where it does not know which fit, and how often for one page.
const STEP: usize = 500;
const LOOKS: usize = 20;
/// How many bytes of an answer are written in one step.
const STEP_BYTES: usize = 4 << 10;
/// How many entries a caller may pass over by their number: the store looks at each of them.
const MOST_OFFSET: usize = 10_000;

/// What a page of a list is asked for with.
pub(super) const PARAMETERS: &[&str] = &["limit", "offset", "cursor"];
/// The same for numbered pages.
pub(super) const NUMBERED: &[&str] = &["page", "per_page", "cursor"];

/// How the pages of a list are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// By `limit` and `offset`.
    Plain,
    /// By `page`, from 1, and `per_page`.
    Numbered,
}

/// Where a page begins, and how long it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) pages: Pages,
    pub(super) limit: usize,
    /// How many entries come before it, where no cursor says where it begins.
    pub(super) offset: usize,
}

impl Place {
    pub(super) fn read(query: &Query, pages: Pages, limits: &Limits, problems: &mut Vec<Problem>) -> Self {
        let key = if pages == Pages::Plain { "limit" } else { "per_page" };
        let limit = query.number(key, DEFAULT, limits.page, problems).max(1);
        let (key, said, offset, last) = match pages {
            Pages::Plain => {
                let offset = query.number("offset", 0, usize::MAX, problems);
                ("?offset", offset, offset, format!("up to {MOST_OFFSET}"))
            }
            Pages::Numbered => {
                let number = query.number("page", 1, usize::MAX, problems).max(1);
                let last = format!("up to page {}", MOST_OFFSET / limit + 1);
                ("?page", number, (number - 1).saturating_mul(limit), last)
            }
        };
        if offset > MOST_OFFSET {
            let allowed = format!("{last}; go on with the next_cursor of a page");
            problems.push(Problem::new(key, said.to_string(), allowed));
        }
        Self { pages, limit, offset }
    }

    /// What an answer says about the page that begins here, or where a cursor said.
    pub(super) const fn shown(self, before: usize, total: Total, next: Option<String>) -> Shown {
        Shown { pages: self.pages, total, limit: self.limit, before, next }
    }
}

/// The page of a list of jobs that a caller asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    place: Place,
    pub(super) page: Page,
    /// How many entries come before it, as far as is known.
    before: usize,
}

impl Asked {
    /// By its place, or by the `cursor` that came with the page before.
    pub(super) fn read(query: &Query, pages: Pages, limits: &Limits, filter: &Filter) -> Result<Self, ApiError> {
        let mut problems = Vec::new();
        let place = Place::read(query, pages, limits, &mut problems);
        let cursor = query.get("cursor").map(|text| (text, Cursor::parse(text, filter)));
        if let Some((text, None)) = cursor {
            problems.push(Problem::new("?cursor", format!("\"{text}\""), "the next_cursor of a page of this list"));
        }
        if !problems.is_empty() {
            return Err(ApiError::invalid(problems));
        }
        let page = Page { bytes: limits.answer_bytes, ..Page::new(place.offset, place.limit) };
        Ok(match cursor.and_then(|(_, cursor)| cursor) {
            Some(Cursor { before, after, offset }) => {
                Self { place, page: Page { after: Some(after), offset, ..page }, before }
            }
            None => Self { place, page, before: place.offset },
        })
    }

    /// The answer: the jobs that were found under `name`, as far as it has room, and where the list goes on.
    pub(super) async fn answer(
        &self,
        name: &str,
        filter: &Filter,
        found: &Listed,
        push: impl Fn(&mut Vec<u8>, &Job),
    ) -> JsonResponse {
        let mut out = vec![b'{'];
        member(&mut out, name);
        let shown = self.push_jobs(&mut out, filter, found, push).await;
        shown.push(&mut out);
        out.push(b'}');
        JsonResponse::ok(out)
    }

    /// Writes the jobs that were found as an array, as far as the answer has room, and answers where the list goes on.
    async fn push_jobs(
        &self,
        out: &mut Vec<u8>,
        filter: &Filter,
        found: &Listed,
        push: impl Fn(&mut Vec<u8>, &Job),
    ) -> Shown {
        out.push(b'[');
        let written = push_fitting(out, &found.jobs, self.page.bytes, push).await;
        out.push(b']');
        let before = self.before + written;
        let goes_on = match found.jobs[..written].last().filter(|_| written < found.jobs.len()) {
            Some(last) => Some(Cursor { before, after: filter.entry(last), offset: 0 }),
            None => found.next.and_then(|next| Some(Cursor { before, after: next.after?, offset: next.offset })),
        };
        let counted = match goes_on {
            None if self.before == 0 || written > 0 => Some(before),
            _ => None,
        };
        let total = found.total.or(counted).map_or(Total::AtLeast(written), Total::Exactly);
        self.place.shown(self.before, total, goes_on.map(|cursor| cursor.to_string()))
    }
}

/// One page of the jobs that fit a filter of the store and a condition that the store does not know of. A request looks
/// at a limited number of jobs: the page may have fewer than were asked for, and still not be the last.
pub(super) async fn sifted(
    app: &App,
    filter: &Filter,
    page: Page,
    fits: impl Fn(&Job) -> bool,
) -> Result<Listed, ApiError> {
    let (mut rest, mut jobs, mut bytes) = (page, Vec::new(), 0_usize);
    for _ in 0..LOOKS {
        let listed = app.engine.list(filter.clone(), Page { offset: 0, limit: STEP, ..rest }).await?;
        for job in listed.jobs {
            let entry = filter.entry(&job);
            if !fits(&job) {
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

/// Writes jobs, one after the other, until the answer is full; the first is always written. Answers how many.
async fn push_fitting(out: &mut Vec<u8>, jobs: &[Job], most_bytes: usize, push: impl Fn(&mut Vec<u8>, &Job)) -> usize {
    let mut end_of_step = out.len() + STEP_BYTES;
    for (index, job) in jobs.iter().enumerate() {
        if out.len() >= end_of_step {
            end_step().await;
            end_of_step = out.len() + STEP_BYTES;
        }
        let end = out.len();
        if index > 0 {
            out.push(b',');
        }
        push(out, job);
        if out.len() > most_bytes && index > 0 {
            out.truncate(end);
            return index;
        }
    }
    jobs.len()
}

/// How many entries a list has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Total {
    Exactly(usize),
    /// To know more, all of them would have to be looked at.
    AtLeast(usize),
}

/// What an answer says about its page.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pages: Pages,
    total: Total,
    limit: usize,
    /// How many entries come before the page.
    before: usize,
    /// The cursor of the page behind this one, where there may be one.
    next: Option<String>,
}

impl Shown {
    /// Writes which page this was, of how many entries.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        let place = match self.pages {
            Pages::Plain => [("limit", self.limit), ("offset", self.before)],
            Pages::Numbered => [("page", self.before / self.limit + 1), ("per_page", self.limit)],
        };
        member(out, "pagination");
        out.push(b'{');
        let (total, is_exact) = match self.total {
            Total::Exactly(total) => (total, true),
            Total::AtLeast(found) => (self.before + found, false),
        };
        for (key, number) in [("total", total)].into_iter().chain(place) {
            member(out, key);
            push_u64(out, number as u64);
        }
        if !is_exact {
            member(out, "total_at_least");
            out.extend_from_slice(b"true");
        }
        member(out, "has_more");
        out.extend_from_slice(if self.next.is_some() { b"true" } else { b"false" });
        member(out, "next_cursor");
        match &self.next {
            Some(next) => push_str(out, next),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }
}

/// A page of a list that is in memory, whose entries have names. Its cursors are the names.
pub(super) fn named_page<'a, T>(
    query: &Query,
    pages: Pages,
    limits: &Limits,
    entries: &'a [T],
    name: impl Fn(&T) -> &str,
) -> Result<(&'a [T], Shown), ApiError> {
    let mut problems = Vec::new();
    let place = Place::read(query, pages, limits, &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let before = match query.get("cursor") {
        Some(last) => entries.partition_point(|entry| name(entry) <= last),
        None => place.offset.min(entries.len()),
    };
    let page = &entries[before..entries.len().min(before.saturating_add(place.limit))];
    let next = page.last().filter(|_| before + page.len() < entries.len()).map(|last| name(last).to_owned());
    Ok((page, place.shown(before, Total::Exactly(entries.len()), next)))
}
