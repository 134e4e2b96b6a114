//! Jobs that are limited alike: where one of them has to wait, all of them have to.

use super::{Group, Limits};
use crate::{Bounds, Spec};
use std::sync::Arc;

/// The limits of a lane besides that of the queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    pub(crate) limits: Arc<Limits>,
    /// The type, where it is limited.
    pub(crate) kind: Option<Arc<str>>,
}

impl Lane {
    /// The lane of a job; `None` for jobs without limits of their own.
    pub(crate) fn of(spec: &Spec) -> Option<Self> {
        let limits = spec.limits.as_ref()?;
        Some(Self { limits: Arc::clone(limits), kind: limits.by_kind.then(|| Arc::clone(&spec.kind)) })
    }

    /// Its groups, each with the bounds that the jobs bring.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Group, Bounds)> {
        let own = self.limits.own.as_ref().map(|own| (Group::Key(Arc::clone(&own.key)), own.bounds));
        let kind = self.kind.as_ref().map(|kind| (Group::Kind(Arc::clone(kind)), Bounds::default()));
        own.into_iter().chain(kind)
    }
}
