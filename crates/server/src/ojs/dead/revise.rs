//! A job that runs again as something slightly else: another queue, other arguments, more metadata, another
//! policy, another time to live.

use super::super::body;
use super::super::intake::{self, Wrong};
use super::super::policies::Resolved;
use super::super::schedule::{self, Said};
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::json::{Members, member, push_key};
use redrive_policy::Problem;
use redrive_store::{Job, Redrive, Spec};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;

const EXPIRES: &str = "expires_at";
const FIELDS: [&str; 5] = ["queue", "meta", "retry", "args", EXPIRES];
/// Who takes a job back, where the request does not say.
const UNNAMED: &str = "api";

/// How a job is to run again, and who says so.
pub(in crate::ojs) fn redrive(app: &App, members: &Members<'_>, job: &Job) -> Result<Redrive, ApiError> {
    let mut wrong = Wrong::default();
    let by = members.operator_name(&app.limits, &mut wrong.request);
    let spec = spec(app, members, job, wrong)?;
    Ok(Redrive { spec, by: Arc::from(by.as_deref().unwrap_or(UNNAMED)) })
}

/// What is said about the job from now on; `None` where nothing changes but that it does not expire.
fn spec(app: &App, members: &Members<'_>, job: &Job, mut wrong: Wrong) -> Result<Option<Arc<Spec>>, ApiError> {
    let p = &mut wrong.request;
    members.only(&["override", "by"], p);
    let Some(revised) = members.object("override", "/override", p) else {
        return if p.is_empty() { Ok(None) } else { Err(wrong.into()) };
    };
    revised.only(&FIELDS, p);
    let queue = revised.queue_name("queue", &app.limits, p);
    let args = revised.has("args").then(|| intake::args(&revised, &app.limits, p)).flatten();
    let meta = intake::meta(&revised, &app.limits, p);
    let expires = schedule::expiry(&revised, app.engine.now(), p);
    let queue: Arc<str> = queue.map_or_else(|| Arc::clone(&job.spec.queue), |queue| Arc::from(&*queue));
    let resolved = match resolved(app, &revised, job, &queue) {
        Ok(resolved) => resolved,
        Err(problems) => {
            wrong.add("/override/retry", Wrong { policy: problems, ..Wrong::default() });
            return Err(wrong.into());
        }
    };
    if !wrong.is_empty() {
        return Err(wrong.into());
    }
    let body = rewritten(job, &resolved, &Revised { args, meta, expires: expires.as_ref() })?;
    let (policy, expires) = (Arc::clone(&resolved.policy), expires.map(|said| said.at));
    Ok(Some(Arc::new(Spec { queue, body: Arc::from(body), policy, expires, ..(*job.spec).clone() })))
}

/// What is different in the body of a job.
struct Revised<'a> {
    args: Option<&'a str>,
    meta: Option<&'a str>,
    expires: Option<&'a Said<'a>>,
}

/// The policy that it brings, else the one that it had; both under the caps of its queue.
fn resolved(app: &App, revised: &Members<'_>, job: &Job, queue: &str) -> Result<Arc<Resolved>, Vec<Problem>> {
    let layers = &app.engine.settings().layers;
    match revised.get("retry") {
        Some(own) => app.policies.resolve(layers, Some(own), &job.spec.kind, queue).map_err(|problems| problems.0),
        None => {
            let origin = body::split(&job.spec.body).origin;
            Ok(Arc::new(Resolved::moved(layers, &job.spec.policy, origin, queue)))
        }
    }
}

/// The kept body with other values; what is not revised stays as it was, byte for byte.
fn rewritten(job: &Job, resolved: &Resolved, revised: &Revised<'_>) -> Result<Vec<u8>, ApiError> {
    let broken = || ApiError::new(Code::InternalError, format!("what is kept of job {} cannot be read", job.id));
    let kept = std::str::from_utf8(body::split(&job.spec.body).members).map_err(|_| broken())?;
    let whole = format!("{{{kept}}}");
    let members = Members::parse(&whole).map_err(|_| broken())?;
    let text = |key| members.get(key).map(RawValue::get);
    let args = revised.args.or(text("args")).unwrap_or("[]");
    let merged = revised.meta.map(|new| merged(text("meta").unwrap_or("{}"), new));
    let meta = merged.as_deref().or(text("meta"));
    let mut out = body::begin(resolved, args, meta, text("tags"), whole.len());
    if let Some(expires) = revised.expires {
        member(&mut out, EXPIRES);
        expires.push(&mut out);
    }
    let replaced = |key: &str| key == EXPIRES && revised.expires.is_some();
    let others = members.iter().filter(|(key, _)| !matches!(&***key, "args" | "meta" | "tags") && !replaced(key));
    for (key, value) in others {
        push_key(&mut out, key);
        out.extend_from_slice(value.get().as_bytes());
    }
    Ok(out)
}

/// Metadata with further members; the new ones win.
fn merged(old: &str, new: &str) -> String {
    let read = |text| serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
    let mut meta = read(old);
    meta.extend(read(new));
    Value::Object(meta).to_string()
}
