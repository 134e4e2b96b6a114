//! Reading jobs whole: the row, what was said about the job, and its failures.

use super::catalogue::{Catalogue, parsed};
use super::kept::{Kept, uuids};
use super::pool::Session;
use super::sql;
use super::text;
use super::trouble::Trouble;
use super::value::{Order, Reader};
use crate::{FailedRun, Job, JobId, Lease, LeaseToken, Spec, State, Times};
use redrive_policy::{History, Moment, Policy};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

/// Reads the jobs of rows, in the order of the rows, with all that belongs to them.
pub(super) async fn jobs(session: &mut Session, catalogue: &Catalogue, rows: &[Row]) -> Result<Vec<Kept>, Trouble> {
    let column = |error: tokio_postgres::Error| Trouble::Broken(error.to_string());
    let (mut queues, mut policies) = (Vec::new(), Vec::new());
    for row in rows {
        queues.push(row.try_get("queue").map_err(column)?);
        policies.extend(row.try_get::<_, Option<i32>>("policy").map_err(column)?);
    }
    catalogue.learn_queues(session, &queues).await?;
    catalogue.learn_policies(session, &policies).await?;
    let mut jobs = rows.iter().map(|row| job(row, catalogue)).collect::<Result<Vec<_>, _>>()?;
    failures(session, &mut jobs).await?;
    Ok(jobs)
}

async fn failures(session: &mut Session, jobs: &mut [Kept]) -> Result<(), Trouble> {
    let failed = uuids(jobs.iter().filter(|kept| kept.failed > 0).map(|kept| &kept.job.id));
    if failed.is_empty() {
        return Ok(());
    }
    let rows = session.query(&Order::new(sql::FAILURES, vec![Box::new(failed)])).await?;
    let mut failures: HashMap<JobId, Vec<FailedRun>> = HashMap::new();
    for row in &rows {
        let mut row = Reader::new(row);
        let id = JobId::from_bytes(row.next::<Uuid>()?.into_bytes());
        failures.entry(id).or_default().push(failed_run(&mut row)?);
    }
    for kept in jobs {
        kept.job.failures = failures.remove(&kept.job.id).unwrap_or_default();
    }
    Ok(())
}

fn failed_run(row: &mut Reader<'_>) -> Result<FailedRun, Trouble> {
    let (life, attempt) = (row.count()?, row.count()?);
    let at = Moment::from_micros(row.next()?);
    let error: &[u8] = row.next()?;
    let verdict = serde_json::from_str(row.next()?)
        .map_err(|error| Trouble::Broken(format!("a kept verdict cannot be read: {error}")))?;
    Ok(FailedRun { life, attempt, at, error: error.into(), verdict })
}

/// A job without its failures. The columns come in the order of the list of columns.
fn job(row: &Row, catalogue: &Catalogue) -> Result<Kept, Trouble> {
    let mut row = Reader::new(row);
    let id = JobId::from_bytes(row.next::<Uuid>()?.into_bytes());
    let created = Moment::from_micros(row.next()?);
    let times = Times { created, available: row.moment()?, started: row.moment()?, finished: row.moment()? };
    let (due, expires) = (row.moment()?, row.moment()?);
    let (alive, until, deadline, span) = (row.moment()?, row.moment()?, row.moment()?, row.span()?);
    let (nonce, last_delay) = (row.next::<Option<i64>>()?, row.span()?);
    let (queue, priority) = (row.next()?, row.next()?);
    let (attempt, leases, revivals, releases) = (row.count()?, row.count()?, row.count()?, row.count()?);
    let (failed, state, dead) = (row.count()?, state(row.next()?)?, row.next()?);
    let worker: Option<&str> = row.next()?;
    let token = nonce.map(|nonce| LeaseToken { number: leases, nonce: nonce.cast_unsigned() });
    let lease = match (token, worker, alive, until, span) {
        (Some(token), Some(worker), Some(alive), Some(until), Some(span)) => {
            Some(Lease { token, worker: text::read(worker).into(), alive, until, span, deadline })
        }
        _ => None,
    };
    let history = history(row.next()?, created)?;
    let result: Option<&[u8]> = row.next()?;
    let spec = Spec {
        queue: catalogue.queue_name(queue).ok_or_else(|| missing("queue", queue))?,
        priority,
        expires,
        kind: text::read(row.next()?).into(),
        body: row.next::<&[u8]>()?.into(),
        policy: policy(row.next()?, row.next()?, catalogue)?,
        timeout: row.span()?,
        lease: row.span()?,
    };
    let settled = token.filter(|_| state == State::Completed);
    let job = Job {
        id,
        spec: Arc::new(spec),
        state,
        attempt,
        history,
        due,
        lease,
        leases,
        revivals,
        releases,
        dead,
        times,
        last_delay,
        failures: Vec::new(),
        result: result.map(Arc::from),
        settled,
    };
    Ok(Kept { job, failed, ended: state.is_terminal(), changed: false, new_failure: false })
}

fn state(number: i16) -> Result<State, Trouble> {
    let state = usize::try_from(number).ok().and_then(|place| State::ALL.get(place)).copied();
    state.ok_or_else(|| Trouble::Broken(format!("found a job in the state {number}; there are 0 to 7")))
}

fn history(text: Option<&str>, created: Moment) -> Result<History, Trouble> {
    let Some(text) = text else { return Ok(History::new(created)) };
    serde_json::from_str(text).map_err(|error| Trouble::Broken(format!("a kept history cannot be read: {error}")))
}

fn policy(number: Option<i32>, own: Option<&[u8]>, catalogue: &Catalogue) -> Result<Arc<Policy>, Trouble> {
    match (number, own) {
        (Some(number), _) => catalogue.policy(number).ok_or_else(|| missing("policy", number)),
        (None, Some(json)) => Ok(Arc::new(parsed(json)?)),
        (None, None) => Err(Trouble::Broken("found a job without a policy".to_owned())),
    }
}

fn missing(what: &str, number: i32) -> Trouble {
    Trouble::Broken(format!("found a job with the {what} {number}, which is not kept"))
}
