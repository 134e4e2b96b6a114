//! Requests as JSON text, written without building a tree for each job.

use super::super::document::document;
use super::super::{DeadFilter, Ending, FetchRequest, ProgressUpdate, ReportDefaults, RunReport, Start, Token};
use super::manifest::Extensions;
use crate::failure::FailureAction;
use crate::http::escaped;
use crate::run::Run;
use crate::{Failure, NewJob};
use redrive_ojs::json::push_str;
use redrive_policy::Span;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// A list of reports ends before it is longer than this, in bytes; servers take a megabyte.
const MAX_LIST_BYTES: usize = 512 << 10;
/// The largest number of reports in one list.
const MAX_REPORTS: usize = 1_000;

pub(super) fn fetch(request: &FetchRequest, wait: Duration) -> Vec<u8> {
    let queues: Vec<&str> = request.queues.iter().map(|queue| &**queue).collect();
    let mut body = json!({
        "queues": queues,
        "count": request.count,
        "worker_id": &*request.worker,
        "visibility_timeout_ms": millis(request.lease),
    });
    if !wait.is_zero() {
        body["wait_ms"] = millis(wait).into();
    }
    body.to_string().into_bytes()
}

/// As many of these reports as fit into one list, and how many they are.
pub(super) fn settlements(
    reports: &[RunReport],
    report_defaults: &ReportDefaults,
    extensions: Extensions,
) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(64 + reports.len() * 128);
    out.extend_from_slice(b"{\"settlements\":[");
    let mut count = 0;
    for report in reports.iter().take(MAX_REPORTS) {
        let start = out.len();
        out.extend_from_slice(if count > 0 { b",{\"action\":" } else { b"{\"action\":" });
        out.extend_from_slice(if matches!(report.ending, Ending::Done(_)) { b"\"ack\"," } else { b"\"nack\"," });
        push_report(&mut out, report, report_defaults, extensions);
        out.push(b'}');
        if out.len() > MAX_LIST_BYTES && count > 0 {
            out.truncate(start);
            break;
        }
        count += 1;
    }
    out.extend_from_slice(b"]}");
    (out, count)
}

/// A single report, and its path.
pub(super) fn single(
    report: &RunReport,
    report_defaults: &ReportDefaults,
    extensions: Extensions,
) -> (&'static str, Vec<u8>) {
    let mut out = vec![b'{'];
    push_report(&mut out, report, report_defaults, extensions);
    out.push(b'}');
    let path = match report.ending {
        Ending::Done(_) => "/ojs/v1/workers/ack",
        _ => "/ojs/v1/workers/nack",
    };
    (path, out)
}

/// The members of a report, without braces.
fn push_report(out: &mut Vec<u8>, report: &RunReport, report_defaults: &ReportDefaults, extensions: Extensions) {
    push_lease(out, &report.run, report_defaults, extensions.lease_tokens);
    match &report.ending {
        Ending::Done(None) => {}
        Ending::Done(Some(result)) => push_raw(out, "result", result.get()),
        Ending::Released(delay) | Ending::Declined { wait: delay, .. } => {
            push_raw(out, "requeue", "true");
            if extensions.snooze {
                push_raw(out, "snooze_ms", &millis(*delay).to_string());
            }
        }
        Ending::Failed(failure) => push_failure(out, &report.run, failure, report_defaults, extensions),
    }
}

fn push_lease(out: &mut Vec<u8>, run: &Run, report_defaults: &ReportDefaults, tokens: bool) {
    out.extend_from_slice(b"\"job_id\":");
    push_str(out, &run.job.id);
    match token_of(run) {
        Some(token) if tokens => {
            out.extend_from_slice(b",\"lease_token\":");
            push_str(out, token);
        }
        _ => {
            out.extend_from_slice(b",\"worker_id\":");
            push_str(out, &report_defaults.worker);
        }
    }
}

fn token_of(run: &Run) -> Option<&str> {
    match &run.lease.token {
        Token::Wire(token) => token.as_deref(),
        #[cfg(feature = "embedded")]
        Token::Lease(..) => None,
    }
}

fn push_failure(
    out: &mut Vec<u8>,
    run: &Run,
    failure: &Failure,
    report_defaults: &ReportDefaults,
    extensions: Extensions,
) {
    let mut retryable = !failure.is_final();
    if let Some(retry) = &report_defaults.retry {
        if extensions.worker_policies {
            push_raw(out, "retry", &retry.text);
        } else {
            // A server without the extension obeys at least this.
            retryable &= retry.policy.attempts.max_runs().is_none_or(|runs| run.job.attempt < runs);
        }
    }
    if let FailureAction::After(delay) = failure.action
        && extensions.retry_after
    {
        push_raw(out, "retry_after", &Span::from(delay).secs().to_string());
    }
    out.extend_from_slice(b",\"error\":{\"type\":");
    push_str(out, &failure.type_name);
    out.extend_from_slice(b",\"message\":");
    push_str(out, &failure.message);
    if let Some(code) = failure.code() {
        out.extend_from_slice(b",\"code\":");
        push_str(out, code);
    }
    // Servers that do not know the codes obey this.
    push_raw(out, "retryable", if retryable { "true" } else { "false" });
    if let Some(details) = failure.details_object() {
        push_raw(out, "details", &details);
    }
    out.push(b'}');
}

pub(super) fn heartbeat(runs: &[Arc<Run>], report_defaults: &ReportDefaults, tokens: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + runs.len() * 96);
    out.extend_from_slice(b"{\"worker_id\":");
    push_str(&mut out, &report_defaults.worker);
    // A server that knows each lease by its token extends each by its own span.
    if let Some(longest) = runs.iter().map(|run| run.lease.span).max().filter(|_| !tokens) {
        push_raw(&mut out, "visibility_timeout_ms", &millis(longest).to_string());
    }
    out.extend_from_slice(b",\"active_jobs\":[");
    for (index, run) in runs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match token_of(run) {
            Some(_) if tokens => {
                out.push(b'{');
                push_lease(&mut out, run, report_defaults, true);
                out.push(b'}');
            }
            _ => push_str(&mut out, &run.job.id),
        }
    }
    out.extend_from_slice(b"]}");
    out
}

pub(super) fn progress(run: &Run, progress: &ProgressUpdate) -> Vec<u8> {
    let mut body = json!({
        "job_id": &*run.job.id,
        "percentage": progress.percent,
        "message": progress.message,
    });
    if let Some(token) = token_of(run) {
        body["lease_token"] = token.into();
    }
    if let Some(data) = &progress.data {
        body["data"] = serde_json::from_str(data.get()).unwrap_or_default();
    }
    body.to_string().into_bytes()
}

/// The path of a page of dead letters.
pub(super) fn dead_path(filter: &DeadFilter, start: &Start, limit: usize) -> String {
    let start = match start {
        Start::Offset(offset) => format!("offset={offset}"),
        Start::Cursor(cursor) => format!("cursor={}", escaped(cursor)),
    };
    let mut path = format!("/ojs/v1/dead-letter?limit={limit}&{start}");
    for (key, value) in [("queue", &filter.queue), ("type", &filter.kind), ("error_type", &filter.error_type)] {
        if let Some(value) = value {
            path.push_str(&format!("&{key}={}", escaped(value)));
        }
    }
    path
}

/// New jobs as a server takes them.
pub(super) fn batch(jobs: &[NewJob]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + jobs.len() * 200);
    out.extend_from_slice(b"{\"jobs\":[");
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_job(&mut out, job);
    }
    out.extend_from_slice(b"]}");
    out
}

/// A new job as a server takes it.
pub(super) fn push_job(out: &mut Vec<u8>, job: &NewJob) {
    // Writing into a vector cannot fail, nor can a document whose keys are all strings.
    let _ = serde_json::to_writer(out, &document(job));
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).min(Span::MAX.ms() as u64)
}

fn push_raw(out: &mut Vec<u8>, key: &str, json: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(json.as_bytes());
}
