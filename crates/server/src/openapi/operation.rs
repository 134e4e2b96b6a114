//! What the description says of one endpoint, beside what the registry of endpoints knows: its method, its path and
//! its query parameters.

use crate::api_error::Code;

/// One endpoint, described.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) about: &'static str,
    pub(super) body: Option<Body>,
    pub(super) headers: &'static [&'static str],
    pub(super) answers: &'static [Answer],
    pub(super) errors: &'static [Code],
}

/// The body of a request: the name of its schema, and whether it may be left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    pub(super) schema: &'static str,
    pub(super) is_required: bool,
}

/// A status, and the name of the schema of the body; or a media type, for a body that is no JSON; or nothing, for an
/// answer without a body.
pub(crate) type Answer = (u16, &'static str);

/// Endpoints that belong together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) operations: &'static [Operation],
}

/// `GET`, by its path.
pub(crate) const fn get(path: &'static str, summary: &'static str) -> Operation {
    Operation::new("GET", path, summary)
}

/// `POST`, by its path.
pub(crate) const fn post(path: &'static str, summary: &'static str) -> Operation {
    Operation::new("POST", path, summary)
}

/// `PUT`, by its path.
pub(crate) const fn put(path: &'static str, summary: &'static str) -> Operation {
    Operation::new("PUT", path, summary)
}

/// `PATCH`, by its path.
pub(crate) const fn patch(path: &'static str, summary: &'static str) -> Operation {
    Operation::new("PATCH", path, summary)
}

/// `DELETE`, by its path.
pub(crate) const fn delete(path: &'static str, summary: &'static str) -> Operation {
    Operation::new("DELETE", path, summary)
}

impl Operation {
    const fn new(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self { method, path, summary, about: "", body: None, headers: &[], answers: &[], errors: &[] }
    }

    /// What its summary has no room for.
    pub(crate) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// A body of this schema is required.
    pub(crate) const fn takes(self, schema: &'static str) -> Self {
        Self { body: Some(Body { schema, is_required: true }), ..self }
    }

    /// A body of this schema may be sent.
    pub(crate) const fn may_take(self, schema: &'static str) -> Self {
        Self { body: Some(Body { schema, is_required: false }), ..self }
    }

    /// Headers that it reads, besides those that all endpoints read.
    pub(crate) const fn reads(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }

    /// What it answers when it was carried out.
    pub(crate) const fn gives(self, answers: &'static [Answer]) -> Self {
        Self { answers, ..self }
    }

    /// Errors besides those that every endpoint of its kind can answer.
    pub(crate) const fn fails(self, errors: &'static [Code]) -> Self {
        Self { errors, ..self }
    }

    /// All errors: its own, and those of every endpoint of its kind.
    pub(super) fn all_errors(&self, is_open: bool) -> impl Iterator<Item = Code> {
        const EVERYWHERE: [Code; 6] = [
            Code::InvalidRequest,
            Code::Forbidden,
            Code::Misdirected,
            Code::BackendError,
            Code::InternalError,
            Code::Unavailable,
        ];
        const OF_BODIES: [Code; 3] = [Code::InvalidPayload, Code::RequestTimeout, Code::PayloadTooLarge];
        let (errors, has_body, is_ojs) = (self.errors, self.body.is_some(), self.is_ojs());
        Code::ALL.into_iter().filter(move |code| {
            errors.contains(code)
                || EVERYWHERE.contains(code)
                || has_body && OF_BODIES.contains(code)
                || is_ojs && *code == Code::Unsupported
                || !is_open && *code == Code::Unauthorized
        })
    }

    /// Whether it belongs to flows.
    pub(super) fn is_flow(&self) -> bool {
        self.path.starts_with("/flows/")
    }

    /// Whether it belongs to Open Job Spec, whose header names a version.
    pub(super) fn is_ojs(&self) -> bool {
        self.path.starts_with("/ojs/")
    }

    /// Whether it belongs to Exosphere's API, whose errors have a form of their own.
    pub(super) fn is_exosphere(&self) -> bool {
        self.path.starts_with("/v0/")
    }
}
