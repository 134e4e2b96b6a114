//! Tasks as jobs.

use crate::common::Task;
use crate::name::{kind_of, limit_key, name_of_kind};
use crate::orchestrator::CreateTaskRequest;
use crate::{LONGEST_ARGUMENT, Policies, effective, queue_of};
use redrive_engine::{Engine, JobPolicy, Submission};
use redrive_ojs::json::check_nested;
use redrive_ojs::{Limits, PolicyOrigin, body};
use redrive_policy::Span;
use redrive_store::{Blob, Bounds, Job, OnLimit, OwnLimit};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// What an operator sets for all tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskSettings {
    /// How long one attempt may take.
    pub timeout: Span,
    /// How many tasks of a domain run at once, where nothing else is set for its key; `None` for any number.
    pub concurrency: Option<u32>,
}

/// The group of shepherds of a task that names none.
const DEFAULT_GROUP: &str = "default";

/// A task as a job.
///
/// # Errors
/// Everything that is wrong with it, each in a sentence.
pub fn submission(
    engine: &Engine,
    policies: &Policies,
    request: &CreateTaskRequest,
    limits: &Limits,
    settings: TaskSettings,
) -> Result<Submission, Vec<String>> {
    let CreateTaskRequest { name, domain, retry_policy, args, kwargs, flow_instance_id, shepherd_group } = request;
    let mut wrong = Vec::new();
    let group = shepherd_group.as_deref().unwrap_or(DEFAULT_GROUP);
    let (queue, kind) = (queue_of(domain, group), kind_of(name));
    for (what, text, written) in [("the domain and the shepherd group", &queue, &queue), ("the name", name, &kind)] {
        wrong.extend(bad_name(what, text, written, limits.name_bytes));
    }
    let args = checked("args", args, limits, &mut wrong);
    if args.is_some_and(|args| !args.starts_with('[')) {
        wrong.push("Invalid args: allowed is an array, such as [1, \"two\"]".to_owned());
    }
    let kwargs = checked("kwargs", kwargs, limits, &mut wrong);
    if let Some(flow) = flow_instance_id.as_deref().filter(|flow| Uuid::try_parse(flow).is_err()) {
        wrong.push(format!("Invalid flow_instance_id: found {flow:?}; allowed is a UUID, or none"));
    }
    let policy = effective(engine, policies, retry_policy.as_ref(), &kind, &queue)
        .map_err(|problems| wrong.push(format!("Invalid retry policy: {problems}")));
    let (Some(args), Some(kwargs), Ok(policy), true) = (args, kwargs, policy, wrong.is_empty()) else {
        return Err(wrong);
    };
    let mut meta = Map::new();
    for (key, value) in [("domain", domain.as_str()), ("shepherd_group", group), ("task", name)] {
        meta.insert(key.to_owned(), value.into());
    }
    if let Some(flow) = flow_instance_id {
        meta.insert("flow_instance_id".to_owned(), flow.as_str().into());
    }
    // The text of the caller, with every digit of its numbers.
    let mut meta = Value::Object(meta).to_string();
    meta.pop();
    meta.push_str(&format!(",\"kwargs\":{kwargs}}}"));
    let mut text = body::begin(&PolicyOrigin::from(&*policy), args, Some(&meta), None, 1);
    text.push(b'}');
    Ok(Submission {
        timeout: Some(settings.timeout),
        policy: JobPolicy::Effective(policy),
        limit: Some(OwnLimit {
            key: limit_key(domain).into(),
            bounds: Bounds { concurrency: settings.concurrency, ..Bounds::default() },
            on_limit: OnLimit::Wait,
        }),
        ..Submission::new(kind, queue, Blob::from(text))
    })
}

/// Names go to the command line of a worker, and into the names of queues and types.
fn bad_name(what: &str, text: &str, written: &str, most: usize) -> Option<String> {
    if text.chars().any(char::is_control) {
        return Some(format!("found {what} {text:?}; allowed are texts without control characters"));
    }
    let found = written.len();
    (found > most)
        .then(|| format!("{what}: found {found} bytes, as {written:?}; at most {most} are allowed (limits.name_bytes)"))
}

/// JSON of the caller, without blanks around it.
fn checked<'t>(what: &str, text: &'t str, limits: &Limits, wrong: &mut Vec<String>) -> Option<&'t str> {
    let most = limits.args_bytes.min(LONGEST_ARGUMENT);
    let found = text.len();
    if found > most {
        let why = if most < LONGEST_ARGUMENT { "limits.args_bytes" } else { "workers get them on their command line" };
        wrong.push(format!("{what} too long: found {found} bytes; at most {most} are allowed ({why})"));
        return None;
    }
    let raw = serde_json::from_str(text).map_err(|error| redrive_ojs::json::plain(&error));
    let nested = raw.and_then(|raw: &RawValue| check_nested(raw, limits.nesting).map(|()| raw.get()));
    nested.map_err(|message| wrong.push(format!("Invalid {what} JSON: {message}"))).ok()
}

/// What a shepherd needs of the body of a job.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored<'b> {
    #[serde(borrow)]
    meta: Meta<'b>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta<'b> {
    task: Option<String>,
    #[serde(borrow)]
    kwargs: Option<&'b RawValue>,
}

/// A job as a task for a worker. One that an application has enqueued has the name of its type, and no kwargs.
#[must_use]
pub fn task_of(job: &Job) -> Task {
    let Meta { task, kwargs } = serde_json::from_slice::<Stored<'_>>(&job.spec.body).unwrap_or_default().meta;
    Task {
        task_id: job.id.to_string(),
        name: task.unwrap_or_else(|| name_of_kind(&job.spec.kind).to_owned()),
        args: body::args(&job.spec.body).to_owned(),
        kwargs: kwargs.map_or_else(|| json!({}).to_string(), |kwargs| kwargs.get().to_owned()),
        memory_limit: None,
        cpu_limit: None,
    }
}
