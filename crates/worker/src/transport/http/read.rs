//! Answers of a server.

use super::super::{DeadPage, Delivery, Directive, FetchRequest, HeartbeatAnswer, Lease, Settled, Start, Token};
use super::call::read_error;
use crate::info::JobData;
use crate::job::Text;
use crate::run::Run;
use crate::{Cancelled, ClientError, Job, Refused};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

fn parsed<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, ClientError> {
    serde_json::from_slice(answer)
        .map_err(|error| ClientError::Garbled(format!("this is not a server of Open Job Spec: {error}")))
}

#[derive(Deserialize)]
struct Fetched<'a> {
    #[serde(borrow, default)]
    jobs: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    queue: Cow<'a, str>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(default)]
    attempt: u32,
    max_attempts: Option<u32>,
    #[serde(default)]
    releases: u32,
    visibility_timeout_ms: Option<u64>,
    timeout_ms: Option<u64>,
    #[serde(borrow)]
    lease_token: Option<Cow<'a, str>>,
}

/// The jobs of a fetch. One that cannot be read is skipped: its lease expires, and the history of
/// the job shows it.
pub(super) fn deliveries(answer: &[u8], request: &FetchRequest) -> Result<Vec<Delivery>, ClientError> {
    let fetched: Fetched<'_> = parsed(answer)?;
    let mut kinds: Vec<Arc<str>> = Vec::new();
    Ok(fetched.jobs.into_iter().filter_map(|job| delivery(job.get(), request, &mut kinds)).collect())
}

fn delivery(text: &str, request: &FetchRequest, kinds: &mut Vec<Arc<str>>) -> Option<Delivery> {
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    let args = envelope.args.map_or(0..0, |args| {
        let start = args.get().as_ptr().addr() - text.as_ptr().addr();
        start..start + args.get().len()
    });
    let job = Job {
        id: envelope.id.into(),
        kind: shared(kinds, &envelope.kind),
        queue: request
            .queues
            .iter()
            .find(|queue| ***queue == envelope.queue)
            .cloned()
            .unwrap_or_else(|| Arc::from(&*envelope.queue)),
        attempt: envelope.attempt,
        max_attempts: envelope.max_attempts,
        releases: envelope.releases,
        text: Text::Envelope { whole: text.into(), args },
    };
    let lease = Lease {
        token: Token::Wire(envelope.lease_token.map(Into::into)),
        // The lease of the job takes precedence over that of the worker.
        span: envelope.visibility_timeout_ms.map_or(request.lease, Duration::from_millis),
        timeout: envelope.timeout_ms.map(Duration::from_millis),
    };
    Some(Delivery { job, lease })
}

/// Shares one text between many jobs of a type.
fn shared(known: &mut Vec<Arc<str>>, text: &str) -> Arc<str> {
    if let Some(known) = known.iter().find(|known| ***known == *text) {
        return Arc::clone(known);
    }
    let text: Arc<str> = Arc::from(text);
    known.push(Arc::clone(&text));
    text
}

#[derive(Deserialize)]
struct Results<'a> {
    #[serde(borrow)]
    results: Vec<SettleResult<'a>>,
}

#[derive(Deserialize)]
struct SettleResult<'a> {
    #[serde(default)]
    status: Option<u16>,
    #[serde(borrow, default)]
    state: Cow<'a, str>,
    retry_delay_ms: Option<f64>,
    #[serde(default)]
    dead_letter: bool,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl SettleResult<'_> {
    fn settled(self) -> Settled {
        let status = self.status.unwrap_or(200);
        if (200..300).contains(&status) {
            let retry_after = self.retry_delay_ms.filter(|ms| *ms >= 0.0).map(|ms| Duration::from_millis(ms as u64));
            return Settled::Accepted { state: self.state.into(), retry_after, dead: self.dead_letter };
        }
        let error: Value = self.error.and_then(|error| serde_json::from_str(error.get()).ok()).unwrap_or_default();
        // Some servers send the error itself, others wrap it.
        let error = if error["error"].is_object() { &error["error"] } else { &error };
        match read_error(status, error) {
            ClientError::Refused(refused) => Settled::Refused(refused),
            other => Settled::Refused(Refused { status, code: "error".into(), message: other.to_string() }),
        }
    }
}

pub(super) fn settlements(answer: &[u8]) -> Result<Vec<Settled>, ClientError> {
    let results: Results<'_> = parsed(answer)?;
    Ok(results.results.into_iter().map(SettleResult::settled).collect())
}

/// The answer to a single report. A refusal is an answer, unless the same report may succeed later.
pub(super) fn single(answer: Result<bytes::Bytes, ClientError>) -> Result<Settled, ClientError> {
    match answer {
        Ok(answer) => parsed::<SettleResult<'_>>(&answer).map(SettleResult::settled),
        Err(ClientError::Refused(refused)) if !ClientError::Refused(refused.clone()).is_temporary() => {
            Ok(Settled::Refused(refused))
        }
        Err(error) => Err(error),
    }
}

#[derive(Deserialize)]
struct HeartbeatBody<'a> {
    #[serde(borrow, default)]
    state: Cow<'a, str>,
    #[serde(borrow, default)]
    jobs_refused: Vec<RefusedJob<'a>>,
}

#[derive(Deserialize)]
struct RefusedJob<'a> {
    #[serde(borrow)]
    job_id: Cow<'a, str>,
    #[serde(borrow, default)]
    current_state: Cow<'a, str>,
}

impl RefusedJob<'_> {
    fn why(&self) -> Cancelled {
        if self.current_state == "cancelled" { Cancelled::JobCancelled } else { Cancelled::LeaseLost }
    }
}

pub(super) fn heartbeat(answer: &[u8], runs: &[Arc<Run>]) -> Result<HeartbeatAnswer, ClientError> {
    let body: HeartbeatBody<'_> = parsed(answer)?;
    let directive = match &*body.state {
        "quiet" => Directive::Quiet,
        "terminate" => Directive::Terminate,
        _ => Directive::Run,
    };
    let lost = |(index, run): (usize, &Arc<Run>)| {
        let refused = body.jobs_refused.iter().find(|refused| refused.job_id == *run.job.id)?;
        Some((index, refused.why()))
    };
    Ok(HeartbeatAnswer { lost: runs.iter().enumerate().filter_map(lost).collect(), directive })
}

/// The job of an answer, under `job` or at the top.
pub(super) fn job(answer: &[u8]) -> Result<JobData, ClientError> {
    let mut document: Value = parsed(answer)?;
    let Some(mut job) = document.get_mut("job").map(Value::take) else { return Ok(JobData::Value(document)) };
    // What only Redrive reports may stand beside the job.
    if let (Some(explanation), Some(members)) = (document.get("redrive"), job.as_object_mut())
        && !members.contains_key("redrive")
    {
        members.insert("redrive".to_owned(), explanation.clone());
    }
    Ok(JobData::Value(job))
}

#[derive(Deserialize)]
struct Batch {
    jobs: Vec<Box<RawValue>>,
}

/// The jobs of a batch. The answer does not say which of them existed before.
pub(super) fn batch(answer: &[u8]) -> Result<Vec<(JobData, bool)>, ClientError> {
    let batch: Batch = parsed(answer)?;
    Ok(batch.jobs.into_iter().map(|job| (JobData::Text(job), true)).collect())
}

#[derive(Deserialize)]
struct Dead {
    #[serde(default)]
    jobs: Vec<Box<RawValue>>,
    #[serde(default)]
    pagination: Value,
}

/// The page that starts at `start`, of at most `limit`. Servers without cursors continue by offset.
pub(super) fn dead_page(answer: &[u8], start: &Start, limit: usize) -> Result<DeadPage, ClientError> {
    let Dead { jobs, pagination } = parsed(answer)?;
    let exact = pagination["total_at_least"].as_bool() != Some(true);
    let total = pagination["total"].as_u64().filter(|_| exact).and_then(|total| usize::try_from(total).ok());
    let has_more = pagination["has_more"].as_bool().unwrap_or(jobs.len() >= limit);
    let next = match (pagination["next_cursor"].as_str(), start) {
        _ if !has_more => None,
        (Some(cursor), _) => Some(Start::Cursor(cursor.to_owned())),
        (None, Start::Offset(offset)) if !jobs.is_empty() => Some(Start::Offset(offset + jobs.len())),
        (None, _) => None,
    };
    Ok(DeadPage { total, next, jobs: jobs.into_iter().map(JobData::Text).collect() })
}
