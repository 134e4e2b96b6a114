//! What a job must be unique in: the policy as callers write it, and the key that follows from it.

use super::canonical;
use super::enqueue::Sources;
use crate::json::{Members, items, text, unknown};
use redrive_policy::dialect::signed_iso_duration;
use redrive_policy::{Problem, Span};
use redrive_store::{OnConflict, State, States, Unique, UniqueKey};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Where the policy is in a request: an option, or beside the options.
const IN_OPTIONS: &str = "/options/unique";
const AT_TOP: &str = "/unique";
/// `key` is what some client libraries call `keys`.
const FIELDS: [&str; 7] = ["keys", "key", "args_keys", "meta_keys", "period", "states", "on_conflict"];
const UNIQUE: &str = "unique";
const DIMENSIONS: [&str; 4] = ["type", "queue", "args", "meta"];
/// How openapi.yaml calls `ignore`.
const USE_EXISTING: &str = "use_existing";

/// What of a job a key can be made of.
pub(crate) struct Parts<'a> {
    pub(crate) kind: &'a str,
    pub(crate) queue: &'a str,
    /// An array, JSON text.
    pub(crate) args: &'a str,
    /// An object, JSON text.
    pub(crate) meta: Option<&'a str>,
}

/// Reads the policy of a new job.
pub(crate) fn of_request(from: &Sources<'_, '_>, parts: &Parts<'_>, problems: &mut Vec<Problem>) -> Option<Unique> {
    let (members, at) = (from.of(UNIQUE), if from.is_option(UNIQUE) { IN_OPTIONS } else { AT_TOP });
    read_within(members, at, parts, problems)
}

/// Reads the policy of a stored job again, for other parts than it had. `None` where it has none.
pub(crate) fn of_body(body: &[u8], parts: &Parts<'_>, problems: &mut Vec<Problem>) -> Option<Unique> {
    let members = Members::parse(std::str::from_utf8(body).ok()?).ok()?;
    read_within(&members, IN_OPTIONS, parts, problems)
}

fn read_within(
    members: &Members<'_>,
    at: &'static str,
    parts: &Parts<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Unique> {
    // A job without it need not be unique, and neither need one with `null`.
    if !given(members, UNIQUE) {
        return None;
    }
    read(&members.object(UNIQUE, at, problems)?, parts, problems)
}

fn read(policy: &Members<'_>, parts: &Parts<'_>, problems: &mut Vec<Problem>) -> Option<Unique> {
    let before = problems.len();
    policy.only(&FIELDS, problems);
    let dimensions = dimensions(policy, problems);
    let has = |dimension: &str| dimensions.iter().any(|each| each == dimension);
    let args_keys = names(policy, "args_keys", problems);
    let meta_keys = names(policy, "meta_keys", problems);
    for (list, dimension) in [("args_keys", "args"), ("meta_keys", "meta")] {
        let given = if dimension == "args" { &args_keys } else { &meta_keys };
        if given.as_ref().is_some_and(|names| !names.is_empty()) && !has(dimension) {
            let message =
                format!("has no effect, because \"keys\" does not have \"{dimension}\"; add it, or leave this out");
            policy.add_problem(list, Problem::with_message("", message), problems);
        }
    }
    if has("meta") && meta_keys.as_ref().is_none_or(Vec::is_empty) {
        let message = "missing or empty; where \"keys\" has \"meta\", the keys of the metadata that count are required";
        policy.add_problem("meta_keys", Problem::with_message("", message), problems);
    }
    let mut selected: Vec<(&str, String)> = vec![("type", string(parts.kind))];
    if has("queue") {
        selected.push(("queue", string(parts.queue)));
    }
    if has("args") {
        selected.extend(args(policy, parts.args, args_keys.as_deref(), problems).map(|args| ("args", args)));
    }
    if let Some(names) = meta_keys.filter(|_| has("meta")) {
        let meta = parts.meta.unwrap_or("{}");
        selected.extend(members_of(policy, "meta_keys", "meta", meta, &names, problems).map(|meta| ("meta", meta)));
    }
    let unique = Unique {
        states: states(policy, problems).unwrap_or(States::UNENDED),
        period: period(policy, problems),
        on_conflict: on_conflict(policy, problems).unwrap_or(OnConflict::Reject),
        ..Unique::new(key(selected))
    };
    (problems.len() == before).then_some(unique)
}

/// The key: SHA-256 over the canonical form of what was selected.
fn key(mut selected: Vec<(&str, String)>) -> UniqueKey {
    selected.sort_unstable();
    let members: Vec<String> = selected.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    UniqueKey(Sha256::digest(format!("{{{}}}", members.join(","))).into())
}

/// A name, which has no letters that can be written in several ways.
fn string(text: &str) -> String {
    let mut out = Vec::new();
    canonical::push_string(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

fn args(
    policy: &Members<'_>,
    args: &str,
    names: Option<&[Cow<'_, str>]>,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    let value: &RawValue = serde_json::from_str(args).ok()?;
    let Some(names) = names else {
        let mut out = Vec::new();
        canonical::push(&mut out, value);
        return String::from_utf8(out).ok();
    };
    match items(value).as_deref() {
        Some([only]) if only.get().starts_with('{') => {
            members_of(policy, "args_keys", "the argument", only.get(), names, problems)
        }
        _ => {
            let message = "names members of the one object in \"args\"; write \"args\": [{…}], or leave this out";
            policy.add_problem("args_keys", Problem::with_message("", message), problems);
            None
        }
    }
}

/// The members of an object that a list names, all of which it must have.
fn members_of(
    policy: &Members<'_>,
    list: &str,
    what: &str,
    object: &str,
    names: &[Cow<'_, str>],
    problems: &mut Vec<Problem>,
) -> Option<String> {
    let object = Members::parse(object).ok();
    let Some(object) = object else {
        let message = format!("{what} has too many members to name some of them");
        policy.add_problem(list, Problem::with_message("", message), problems);
        return None;
    };
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        match object.get(name) {
            Some(value) => found.push((name.clone(), value)),
            None => {
                let message = format!("{what} has no member \"{name}\"; jobs without it would all be duplicates");
                policy.add_problem(list, Problem::with_message("", message), problems);
            }
        }
    }
    let mut out = Vec::new();
    canonical::push_object(&mut out, found);
    String::from_utf8(out).ok()
}

/// What the key is made of, besides the type.
fn dimensions<'a>(policy: &Members<'a>, problems: &mut Vec<Problem>) -> Vec<Cow<'a, str>> {
    if given(policy, "keys") && given(policy, "key") {
        let message = "is another name of \"keys\", which is there too; keep one of them";
        policy.add_problem("key", Problem::with_message("", message), problems);
    }
    let name = if given(policy, "keys") { "keys" } else { "key" };
    let named = names(policy, name, problems).unwrap_or_default();
    for (index, dimension) in named.iter().enumerate().filter(|(_, each)| !DIMENSIONS.contains(&&***each)) {
        let message = unknown("dimension", dimension, &DIMENSIONS);
        policy.add_problem(name, Problem::with_message(format!("/{index}"), message), problems);
    }
    named
}

/// The strings of a list, each of them once. `null` is as absent; one string is as a list of it.
fn names<'a>(policy: &Members<'a>, list: &str, problems: &mut Vec<Problem>) -> Option<Vec<Cow<'a, str>>> {
    if !given(policy, list) {
        return None;
    }
    let read = |value: &'a RawValue| match text(value) {
        Some(one) => Some(vec![one]),
        None => items(value)?.into_iter().map(text).collect(),
    };
    let names: Vec<Cow<'a, str>> = policy.read(list, "an array of strings", problems, read)?;
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            let message = format!("\"{name}\" appears twice; keep one of them");
            policy.add_problem(list, Problem::with_message(format!("/{index}"), message), problems);
        }
    }
    Some(names)
}

fn states(policy: &Members<'_>, problems: &mut Vec<Problem>) -> Option<States> {
    const NAMES: [&str; 8] = [
        State::Scheduled.name(),
        State::Pending.name(),
        State::Available.name(),
        State::Active.name(),
        State::Retryable.name(),
        State::Completed.name(),
        State::Cancelled.name(),
        State::Discarded.name(),
    ];
    let names = names(policy, "states", problems)?;
    let mut states = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        match State::ALL.into_iter().find(|state| state.name() == name) {
            Some(state) => states.push(state),
            None => {
                let problem = Problem::with_message(format!("/{index}"), unknown("state", name, &NAMES));
                policy.add_problem("states", problem, problems);
            }
        }
    }
    Some(states.into_iter().collect())
}

fn period(policy: &Members<'_>, problems: &mut Vec<Problem>) -> Option<Span> {
    if !given(policy, "period") {
        return None;
    }
    policy.read("period", "a duration above zero, such as \"PT1H\"", problems, |value| {
        let written = text(value)?;
        let span = signed_iso_duration(&written)?.span;
        Some(span).filter(|span| !span.is_zero() && !written.starts_with('-'))
    })
}

fn on_conflict(policy: &Members<'_>, problems: &mut Vec<Problem>) -> Option<OnConflict> {
    if !given(policy, "on_conflict") {
        return None;
    }
    const ALLOWED: &str = "\"reject\", \"ignore\", \"replace\" or \"replace_except_schedule\"";
    policy.read("on_conflict", ALLOWED, problems, |value| match &*text(value)? {
        USE_EXISTING => Some(OnConflict::Ignore),
        name => OnConflict::ALL.into_iter().find(|each| each.name() == name),
    })
}

/// Whether a field is there and not `null`, which stands for its default.
fn given(policy: &Members<'_>, field: &str) -> bool {
    policy.get(field).is_some_and(|value| value.get() != "null")
}
