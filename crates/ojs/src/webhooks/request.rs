//! A subscription as a caller asks for it, or for a change of it.

use super::subscription::Definition;
use crate::events::{OTHER_EVENT_TYPES, selected_types};
use crate::json::{Members, check_nested, items, text};
use crate::{Limits, QUEUE_ALLOWED, is_queue, is_type, policy_text};
use redrive_engine::Engine;
use redrive_policy::{Problem, resembling};
use redrive_store::JOB_EVENT_TYPES;
use serde_json::value::RawValue;

/// What a caller may write.
const KNOWN: [&str; 7] = ["url", "events", "filter", "metadata", "retry", "timeout_ms", "active"];
const FILTER: [&str; 2] = ["queues", "job_types"];
/// How many types, queues or types of jobs one subscription may name.
const MOST_NAMES: usize = 100;
/// The most bytes of metadata.
const MOST_METADATA: usize = 4_096;
/// How long an endpoint has for its answer, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;
const LEAST_TIMEOUT_MS: i64 = 5_000;
const MOST_TIMEOUT_MS: i64 = 60_000;

/// The types of events that are delivered: those that are written in the atomic step of what happened.
pub const EVENT_TYPES: [&str; 21] = {
    let mut types = [""; 21];
    let mut place = 0;
    // All of jobs but the last, that one was removed.
    while place < 12 {
        types[place] = JOB_EVENT_TYPES[place];
        place += 1;
    }
    // All others but the last five: those of workers, and what no job has to do with.
    while place < 21 {
        types[place] = OTHER_EVENT_TYPES[place - 12];
        place += 1;
    }
    types
};

/// Reads subscriptions.
pub struct SubscriptionRequest<'e> {
    /// For the policies.
    pub engine: &'e Engine,
    /// What names may be.
    pub limits: Limits,
    /// Checks the address.
    pub check_url: &'e dyn Fn(&str) -> Result<(), String>,
}

impl SubscriptionRequest<'_> {
    /// A new subscription.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn create(&self, members: &Members<'_>) -> Result<Definition, Vec<Problem>> {
        let mut problems = Vec::new();
        for (key, allowed) in [("url", "https://HOST/PATH"), ("events", "a list of types of events")] {
            if !members.has(key) {
                members.wrong(key, allowed, &mut problems);
            }
        }
        let empty = Definition {
            url: String::new(),
            events: Vec::new(),
            queues: Vec::new(),
            job_types: Vec::new(),
            metadata: None,
            retry: None,
            timeout_ms: TIMEOUT_MS,
            active: true,
        };
        self.apply(members, empty, problems)
    }

    /// A subscription that is changed. What is absent stays as it is, and what is `null` is as for a new one.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn change(&self, members: &Members<'_>, before: Definition) -> Result<Definition, Vec<Problem>> {
        self.apply(members, before, Vec::new())
    }

    fn apply(
        &self,
        members: &Members<'_>,
        mut new: Definition,
        mut problems: Vec<Problem>,
    ) -> Result<Definition, Vec<Problem>> {
        let p = &mut problems;
        members.only(&KNOWN, p);
        if let Some(url) = members.text("url", p) {
            if let Err(why) = (self.check_url)(&url) {
                members.add_problem("url", Problem::with_message("", why), p);
            }
            new.url = url.into_owned();
        }
        if let Some(events) = self.names(members, "events", "", p, |said| self.event_type(said)) {
            if events.is_empty() {
                members.wrong("events", "at least one type", p);
            }
            new.events = events;
        }
        self.filter(members, &mut new, p);
        if let Some(metadata) = members.get("metadata") {
            new.metadata = self.metadata(members, metadata, p);
        }
        if let Some(retry) = members.get("retry") {
            new.retry = self.retry(members, retry, p);
        }
        let timeout = members.whole("timeout_ms", LEAST_TIMEOUT_MS..=MOST_TIMEOUT_MS, p);
        new.timeout_ms = timeout.and_then(|timeout| u64::try_from(timeout).ok()).unwrap_or(new.timeout_ms);
        new.active = members.flag("active", p).unwrap_or(new.active);
        if problems.is_empty() { Ok(new) } else { Err(problems) }
    }

    fn filter(&self, members: &Members<'_>, new: &mut Definition, p: &mut Vec<Problem>) {
        let Some(value) = members.get("filter") else { return };
        (new.queues, new.job_types) = (Vec::new(), Vec::new());
        if value.get() == "null" {
            return;
        }
        let Some(filter) = members.object("filter", "/filter", p) else { return };
        filter.only(&FILTER, p);
        let named = |kind: &str, fits: bool, said: &str, allowed: &str| {
            let fits = fits && said.len() <= self.limits.name_bytes;
            if fits { Ok(()) } else { Err(format!("\"{said}\" is not a {kind}; allowed are {allowed}")) }
        };
        let queue = |said: &str| named("queue", is_queue(said), said, QUEUE_ALLOWED);
        let kind = |said: &str| named("type of jobs", is_type(said), said, "words joined by dots");
        new.queues = self.names(&filter, "queues", "/filter", p, queue).unwrap_or_default();
        new.job_types = self.names(&filter, "job_types", "/filter", p, kind).unwrap_or_default();
    }

    /// A list of names, each of which fits.
    fn names(
        &self,
        members: &Members<'_>,
        key: &str,
        at: &str,
        p: &mut Vec<Problem>,
        fits: impl Fn(&str) -> Result<(), String>,
    ) -> Option<Vec<String>> {
        const ALLOWED: &str = "a list of texts";
        let values = members.read(key, ALLOWED, p, items)?;
        if values.len() > MOST_NAMES {
            members.wrong(key, &format!("at most {MOST_NAMES}"), p);
            return None;
        }
        let mut names = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let said = text(value);
            let fits = said.as_ref().map_or_else(|| Err(format!("{} is not a text", value.get())), |said| fits(said));
            match fits {
                Ok(()) => names.extend(said.map(std::borrow::Cow::into_owned)),
                Err(why) => p.push(Problem::with_message(format!("{at}/{key}/{index}"), why)),
            }
        }
        Some(names)
    }

    fn event_type(&self, said: &str) -> Result<(), String> {
        if !selected_types(said, &EVENT_TYPES).is_empty() {
            return Ok(());
        }
        let near = resembling(said, &EVENT_TYPES).map_or_else(String::new, |near| format!("; did you mean {near}?"));
        Err(format!(
            "\"{said}\" is not a type of events that are delivered; allowed are {}, and patterns as job.* and *{near}",
            EVENT_TYPES.join(", ")
        ))
    }

    fn metadata(&self, members: &Members<'_>, value: &RawValue, p: &mut Vec<Problem>) -> Option<Box<RawValue>> {
        if value.get() == "null" {
            return None;
        }
        let object = members.object("metadata", "/metadata", p)?;
        if value.get().len() > MOST_METADATA {
            members.wrong("metadata", &format!("at most {MOST_METADATA} bytes"), p);
        }
        if let Err(why) = check_nested(value, self.limits.nesting) {
            object.add_problem("", Problem::with_message("", why), p);
        }
        Some(value.to_owned())
    }

    fn retry(&self, members: &Members<'_>, value: &RawValue, p: &mut Vec<Problem>) -> Option<Box<RawValue>> {
        if value.get() == "null" {
            return None;
        }
        if let Err(problems) = self.engine.effective(Some(policy_text(value.get())), "webhook.deliver", "webhook") {
            problems.0.into_iter().for_each(|problem| members.add_problem("retry", problem, p));
        }
        Some(value.to_owned())
    }
}
