//! Jobs as they are answered.

use crate::app::App;
use redrive_engine::Progress;
use redrive_store::Job;

/// Writes a job as an object.
pub(crate) fn push_job(out: &mut Vec<u8>, job: &Job, app: &App) {
    let progress = progress(job, app);
    app.envelopes.push_job(out, job, progress.as_ref().map(shown).as_ref());
}

/// Writes a claimed job as an object.
pub(crate) fn push_claimed(out: &mut Vec<u8>, job: &Job, app: &App) {
    let progress = progress(job, app);
    app.envelopes.push_claimed(out, job, progress.as_ref().map(shown).as_ref());
}

/// Writes the members of a job, without braces.
pub(crate) fn push_members(out: &mut Vec<u8>, job: &Job, app: &App) {
    let progress = progress(job, app);
    app.envelopes.push_members(out, job, progress.as_ref().map(shown).as_ref());
}

/// Writes a job as an object for lists, without what can be large.
pub(crate) fn push_bare_job(out: &mut Vec<u8>, job: &Job, app: &App) {
    let progress = progress(job, app);
    app.envelopes.push_bare_job(out, job, progress.as_ref().map(shown).as_ref());
}

/// Only a running job has progress.
fn progress(job: &Job, app: &App) -> Option<Progress> {
    job.lease.as_ref().and_then(|_| app.engine.progress(job))
}

/// Progress as it is answered.
pub(super) fn shown(progress: &Progress) -> redrive_ojs::Progress<'_> {
    redrive_ojs::Progress {
        fraction: progress.fraction,
        message: progress.message.as_deref(),
        data: progress.data.as_deref(),
        at: progress.at,
    }
}

/// Writes an object both ways: its members at the top, and under `job`. Client libraries read one or the other.
pub(crate) fn flattened(members: &[u8]) -> Vec<u8> {
    [b"{", members, b",\"job\":{", members, b"}}"].concat()
}
