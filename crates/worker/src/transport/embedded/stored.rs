//! A job as the engine of this process has it.

use redrive_engine::Progress;
use redrive_ojs::{Envelopes, body, push_explanation};
use redrive_store::Job;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A job, its progress, and what writes both as an envelope.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(super) job: Job,
    pub(super) progress: Option<Progress>,
    pub(super) envelopes: Arc<Envelopes>,
}

impl Stored {
    /// The arguments as JSON text.
    pub(crate) fn args(&self) -> &str {
        body::args(&self.job.spec.body)
    }

    /// The whole envelope as JSON text, as a server would send it.
    pub(crate) fn envelope_json(&self) -> String {
        let progress = self.progress.as_ref().map(|progress| redrive_ojs::Progress {
            fraction: progress.fraction,
            message: progress.message.as_deref(),
            data: progress.data.as_deref(),
            at: progress.at,
        });
        let mut out = Vec::new();
        self.envelopes.push_claimed(&mut out, &self.job, progress.as_ref());
        out.pop();
        push_explanation(&mut out, &self.job);
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }

    /// The whole envelope.
    pub(crate) fn envelope(&self) -> Value {
        serde_json::from_str(&self.envelope_json()).unwrap_or_default()
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.job.fmt(f)
    }
}
