//! A schedule as a caller registers it, in either of the two forms that are in use.

use super::{Definition, Overlap, Schedule, zone};
use crate::jobs::MANAGED;
use crate::json::{Members, check_nested, member, push_key};
use crate::{Invalid, Limits, submission};
use redrive_engine::Engine;
use redrive_policy::{Moment, Problem};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What a caller may write.
const KNOWN: [&str; 11] = [
    "name",
    "expression",
    "cron",
    "timezone",
    "overlap_policy",
    "enabled",
    "description",
    "job_template",
    "type",
    "args",
    "meta",
];
const OPTIONS: &str = "options";

/// What the server manages; a value that a caller sends there is ignored, as the specification demands.
pub const MANAGED_MEMBERS: [&str; 9] = [
    "last_run_at",
    "next_run_at",
    "run_count",
    "created_at",
    "status",
    "skipped_count",
    "last_skipped_at",
    "waiting_count",
    "last_error",
];

/// The longest description in bytes.
const LONGEST_DESCRIPTION: usize = 1_000;

/// Reads a schedule that is registered at `now`. `name` is its name where the path of the request has it.
///
/// # Errors
/// Everything that is wrong with it, and with the job that it would enqueue.
pub fn cron_definition(
    engine: &Engine,
    top: &Members<'_>,
    name: Option<&str>,
    limits: &Limits,
    now: Moment,
) -> Result<Definition, Invalid> {
    let mut problems = Vec::new();
    let p = &mut problems;
    let known: Vec<&str> = KNOWN.into_iter().chain([OPTIONS]).collect();
    for (key, _) in top.iter().filter(|(key, _)| !MANAGED_MEMBERS.contains(&&***key) && !known.contains(&&***key)) {
        top.add_problem(key, Problem::with_message("", crate::json::unknown("field", key, &known)), p);
    }
    let name = schedule_name(top, name, limits, p);
    let (expression, timezone) = schedule(top, now, p);
    let description = optional(top, "description").and_then(|top| top.text("description", p));
    if let Some(text) = description.as_ref().filter(|text| text.len() > LONGEST_DESCRIPTION) {
        let found = format!("{} bytes", text.len());
        top.add_problem("description", Problem::new("", found, format!("at most {LONGEST_DESCRIPTION} bytes")), p);
    }
    let overlap = overlap(top, p);
    let enabled = optional(top, "enabled").and_then(|top| top.flag("enabled", p)).unwrap_or(true);
    let (at, template) = template(top, limits, p);
    let mut invalid = Invalid { request: problems, ..Invalid::default() };
    let Some(template) = template else { return Err(invalid) };
    let description = description.map(Cow::into_owned);
    let definition = Definition { name, expression, timezone, overlap, enabled, description, template };
    if let Err(other) = check_job(engine, &definition, limits, now) {
        invalid.add(at, other);
    }
    if invalid.is_empty() { Ok(definition) } else { Err(invalid) }
}

/// The object, unless its member is absent or `null`.
fn optional<'m, 'a>(top: &'m Members<'a>, key: &str) -> Option<&'m Members<'a>> {
    top.get(key).filter(|value| value.get() != "null").map(|_| top)
}

fn schedule_name(top: &Members<'_>, in_path: Option<&str>, limits: &Limits, p: &mut Vec<Problem>) -> String {
    if in_path.is_none() && !top.has("name") {
        top.wrong("name", "the name of the schedule, such as \"daily-report\",", p);
    }
    let name = top.queue_name("name", limits, p);
    match (name, in_path) {
        (Some(name), Some(in_path)) if name != in_path => {
            top.wrong("name", &format!("the name in the path, \"{in_path}\", or none"), p);
            in_path.to_owned()
        }
        (name, in_path) => name.as_deref().or(in_path).unwrap_or_default().to_owned(),
    }
}

/// The expression, under either of its names, and the time zone.
fn schedule(top: &Members<'_>, now: Moment, p: &mut Vec<Problem>) -> (String, String) {
    let key = if top.has("expression") { "expression" } else { "cron" };
    let before = p.len();
    let expression = top.text(key, p);
    if key == "expression" && top.has("cron") && top.text("cron", p) != expression {
        top.wrong("cron", "what \"expression\" is, or none", p);
    }
    if !top.has(key) {
        top.wrong("cron", "a cron expression, such as \"0 9 * * MON-FRI\",", p);
    }
    let zone = optional(top, "timezone").and_then(|top| top.text("timezone", p)).unwrap_or(Cow::Borrowed(zone::UTC));
    let expression = expression.unwrap_or_default();
    if p.len() == before {
        match Schedule::read(&expression, &zone) {
            Ok(schedule) if schedule.next(now, now).is_none() => {
                let message = format!("\"{expression}\" is never due in {zone}: there is no such day or time");
                top.add_problem(key, Problem::with_message("", message), p);
            }
            Ok(_) => {}
            Err((of_expression, of_zone)) => {
                of_expression.into_iter().for_each(|problem| top.add_problem(key, problem, p));
                of_zone.into_iter().for_each(|problem| top.add_problem("timezone", problem, p));
            }
        }
    }
    (expression.into_owned(), zone.into_owned())
}

fn overlap(top: &Members<'_>, p: &mut Vec<Problem>) -> Overlap {
    const ALLOWED: &str = "\"skip\", \"allow\", \"cancel_previous\" or \"enqueue\"";
    let Some(top) = optional(top, "overlap_policy") else { return Overlap::default() };
    let named = |value| {
        let text = crate::json::text(value)?;
        Overlap::ALL.into_iter().find(|overlap| overlap.name() == text)
    };
    top.read("overlap_policy", ALLOWED, p, named).unwrap_or_default()
}

/// The job as a request to enqueue it, and its place in the request.
fn template<'a>(top: &Members<'a>, limits: &Limits, p: &mut Vec<Problem>) -> (&'static str, Option<Box<RawValue>>) {
    const FLAT: [&str; 4] = ["type", "args", "meta", OPTIONS];
    let (at, job) = if top.has("job_template") {
        for key in FLAT.into_iter().filter(|key| top.has(key)) {
            top.add_problem(key, Problem::with_message("", "belongs into \"job_template\", which is there too"), p);
        }
        ("/job_template", top.object("job_template", "/job_template", p))
    } else {
        ("", None)
    };
    if !at.is_empty() && job.is_none() {
        return (at, None);
    }
    let whole = job.is_some();
    let job = job.as_ref().unwrap_or(top);
    let before = p.len();
    let options = job.object(OPTIONS, "/options", p).unwrap_or_default();
    if p.len() > before {
        return (at, None);
    }
    // Without a template they are unknown members of the schedule.
    for (members, key) in [(job, "id"), (job, "idempotency_key"), (&options, "idempotency_key")] {
        if (whole || std::ptr::eq(members, &options)) && members.has(key) {
            let message = "each job of a schedule has an id of its own, and is enqueued once; leave it out";
            members.add_problem(key, Problem::with_message("", message), p);
        }
    }
    let mut out = vec![b'{'];
    for key in ["type", "args"] {
        // A schedule without arguments is allowed, a job without them is not.
        let absent = if key == "args" { Some("[]") } else { None };
        if let Some(value) = job.get(key).map(RawValue::get).or(absent) {
            member(&mut out, key);
            out.extend_from_slice(value.as_bytes());
        }
    }
    if let Some(meta) = job.get("meta").or_else(|| options.get("meta")) {
        if let Err(message) = check_nested(meta, limits.nesting) {
            job.add_problem("meta", Problem::with_message("", message), p);
            return (at, None);
        }
        member(&mut out, "meta");
        out.extend_from_slice(meta.get().as_bytes());
    }
    // What a job may have at its top as well as under its options is moved there, so that all templates look alike.
    let moved = |key: &str| whole && !FLAT.contains(&key) && !MANAGED.contains(&key) && !options.has(key);
    let others = job.iter().filter(|(key, _)| moved(key));
    let mut others = options.iter().filter(|(key, _)| &***key != "meta").chain(others).peekable();
    if others.peek().is_some() {
        member(&mut out, OPTIONS);
        out.push(b'{');
        for (key, value) in others {
            push_key(&mut out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
    }
    out.push(b'}');
    let text = String::from_utf8(out).ok();
    (at, text.and_then(|text| RawValue::from_string(text).ok()))
}

/// Reads the job as it will be read whenever the schedule is due.
fn check_job(engine: &Engine, definition: &Definition, limits: &Limits, now: Moment) -> Result<(), Invalid> {
    let unreadable = |message| Invalid::request(Problem::with_message("", message));
    let document = definition.document(now, now).map_err(unreadable)?;
    let text = std::str::from_utf8(&document).map_err(|error| unreadable(error.to_string()))?;
    let members = Members::parse(text).map_err(|error| unreadable(error.to_string()))?;
    submission(engine, &members, None, limits, now).map(drop)
}
