//! What happens on other nodes, where several share one store.

use crate::Engine;
use crate::admission::line_of;
use redrive_store::Group;
use std::sync::Arc;

impl Engine {
    /// Another node made so many jobs of a queue available: as many of those who wait here look for them.
    pub fn notified_available(&self, queue: &Arc<str>, jobs: usize) {
        self.admission.available_elsewhere(queue, jobs);
    }

    /// So many runs of a group that has limits have ended on another node: as many of those who wait for it look.
    pub fn notified_opened(&self, group: &Group, runs: usize) {
        self.admission.opened(&line_of(group), runs);
    }

    /// Anything may have happened on another node: all callers that wait look.
    pub fn notified_anything(&self) {
        self.admission.anything_elsewhere();
        self.inbox.notify_one();
        self.notified_runs();
    }

    /// Runs got something to do on another node. It does it itself, unless it has ended: they are looked for soon.
    pub fn notified_runs(&self) {
        self.runs.elsewhere.notify_one();
    }

    /// An application has left something in the store.
    pub fn notified_inbox(&self) {
        self.inbox.notify_one();
    }
}
