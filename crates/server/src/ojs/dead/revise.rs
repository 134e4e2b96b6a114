//! How a job is to run again, and which caller says so.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use redrive_ojs::json::Members;
use redrive_ojs::{Invalid, Override, PolicyOrigin, policy_text};
use redrive_policy::{Policy, Problems};
use redrive_store::{Job, Redrive, Spec, Unique};
use std::sync::Arc;

/// Who redrives a job, where the request does not say.
const UNNAMED: &str = "api";

/// Reads the request to redrive a job.
pub(in crate::ojs) fn redrive(app: &App, members: &Members<'_>, job: &Job) -> Result<Redrive, ApiError> {
    let mut invalid = Invalid::default();
    let by = members.operator_name(&app.limits.of_jobs(), &mut invalid.request);
    let (spec, unique) = spec(app, members, job, invalid)?.unzip();
    let by = Arc::from(by.as_deref().unwrap_or(UNNAMED));
    Ok(Redrive { spec, unique: unique.flatten(), by })
}

/// A specification, and what the job must be unique in.
type Revised = (Arc<Spec>, Option<Arc<Unique>>);

/// What is said about the job from now on, and what it must be unique in; `None` where nothing changes but that it does
/// not expire.
fn spec(app: &App, members: &Members<'_>, job: &Job, mut invalid: Invalid) -> Result<Option<Revised>, ApiError> {
    let p = &mut invalid.request;
    members.only(&["override", "by"], p);
    let Some(revised) = members.object("override", "/override", p) else {
        return if p.is_empty() { Ok(None) } else { Err(invalid.into()) };
    };
    let revised = Override::read(&revised, &app.limits.of_jobs(), app.engine.now(), p);
    let queue = revised.queue.as_deref().map_or_else(|| Arc::clone(&job.spec.queue), Arc::from);
    let (policy, origin) = match policy(app, &revised, job, &queue) {
        Ok(policy) => policy,
        Err(problems) => {
            invalid.add("/override/retry", Invalid::policy(problems));
            return Err(invalid.into());
        }
    };
    if !invalid.is_empty() {
        return Err(invalid.into());
    }
    let body = revised.body(&job.spec.body, &origin);
    let body = body.ok_or_else(|| {
        ApiError::new(Code::InternalError, format!("what is stored of job {} cannot be read", job.id))
    })?;
    let unique = revised.unique(job, &queue, &body, &mut invalid.request);
    if !invalid.is_empty() {
        return Err(invalid.into());
    }
    let (body, expires) = (Arc::from(body), revised.expires);
    let spec = Spec { queue, body, policy, expires, ..(*job.spec).clone() };
    Ok(Some((Arc::new(spec), unique.map(Arc::new))))
}

/// The policy that the redrive brings, else the one that the job had; both under the caps of its queue.
fn policy(app: &App, revised: &Override<'_>, job: &Job, queue: &str) -> Result<(Arc<Policy>, PolicyOrigin), Problems> {
    if let Some(own) = revised.retry() {
        let effective = app.engine.effective(Some(policy_text(own)), &job.spec.kind, queue)?;
        return Ok((Arc::clone(&effective.policy), PolicyOrigin::from(&*effective)));
    }
    let (policy, capped_by) = app.engine.settings().layers.capped(Arc::clone(&job.spec.policy), queue);
    let mut origin = PolicyOrigin::read(&job.spec.body);
    if !capped_by.is_empty() {
        origin.capped_by = capped_by.into_iter().map(Into::into).collect();
    }
    Ok((policy, origin))
}
