//! Who has sent a request, and what that allows.

use super::rule::{Access, Queues, Rule};
use super::stored::StoredKey;
use super::{QueuePattern, Scope};
use crate::api_error::{ApiError, Code};
use crate::app::App;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use redrive_engine::EngineError;
use redrive_store::{JobId, Refusal};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

/// Who has sent a request.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// Someone on a server that needs no key.
    Anyone,
    /// The holder of a configured key: its number among them, from 1.
    Configured(usize),
    /// The holder of a stored key, and the id of the secret that was presented.
    Holder(Arc<StoredKey>, Arc<str>),
}

/// The edge has found out already. Without that nothing is allowed.
impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::new(Code::InternalError, "it is not known who has sent the request"))
    }
}

impl Caller {
    /// What to call it in records.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Anyone => "no key".into(),
            Self::Configured(number) => format!("configured key {number}").into(),
            Self::Holder(key, _) => key.name.as_str().into(),
        }
    }

    fn has(&self, scope: Scope) -> bool {
        match self {
            Self::Anyone | Self::Configured(_) => true,
            Self::Holder(key, _) => key.scopes.contain(scope),
        }
    }

    /// The queues that it is limited to, if it is.
    pub(crate) fn limits(&self) -> Option<&[QueuePattern]> {
        match self {
            Self::Holder(key, _) if !key.queues.is_empty() => Some(&key.queues),
            _ => None,
        }
    }

    /// Whether it may do things in a queue.
    pub(crate) fn may_use(&self, queue: &str) -> bool {
        self.limits().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.fits(queue)))
    }

    /// Refuses a caller that may not use one of these queues, which it has named.
    pub(crate) fn check_queues<'q>(&self, queues: impl IntoIterator<Item = &'q str>) -> Result<(), ApiError> {
        match queues.into_iter().find(|queue| !self.may_use(queue)) {
            None => Ok(()),
            Some(queue) => Err(self.limited(format!("the request is about the queue {queue:?}"))),
        }
    }

    /// Refuses a caller that may not use the queue of one of these jobs. What the queue is it is not told.
    pub(crate) async fn check_jobs(&self, app: &App, ids: &[JobId]) -> Result<(), ApiError> {
        if self.limits().is_none() {
            return Ok(());
        }
        for id in ids {
            match app.engine.job(*id).await {
                Ok(job) if !self.may_use(&job.spec.queue) => {
                    return Err(self.limited(format!("the job {id} is in another queue")));
                }
                Ok(_) | Err(EngineError::Refused(_, Refusal::NotFound)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Refuses a caller that does not have the scope of an endpoint, or is limited to queues that the endpoint cannot
    /// tell apart.
    pub(super) fn check(&self, rule: Rule) -> Result<(), ApiError> {
        let (Access::Needs(scope), Self::Holder(key, _)) = (rule.access, self) else { return Ok(()) };
        if !self.has(scope) {
            let (name, names) = (&key.name, key.scopes.names());
            let message = format!("this needs the scope {scope}; the key \"{name}\" has {}", names.join(", "));
            let details = json!({ "required_scope": scope.name(), "scopes": names, "key": name });
            return Err(ApiError::new(Code::Forbidden, message).with_details(details));
        }
        if rule.queues == Queues::All && self.limits().is_some() {
            return Err(self.limited("this is not about single queues, and needs a key for all of them"));
        }
        Ok(())
    }

    /// That the key is not for the queue.
    pub(super) fn limited(&self, why: impl std::fmt::Display) -> ApiError {
        let queues: Vec<&str> = self.limits().unwrap_or_default().iter().map(|pattern| &*pattern.0).collect();
        let message = format!("{why}; the key \"{}\" is for the queues {}", self.name(), queues.join(", "));
        let details = json!({ "queues": queues, "key": self.name() });
        ApiError::new(Code::Forbidden, message).with_details(details)
    }
}
