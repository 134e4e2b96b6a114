//! Writing jobs: one statement for each kind of change, whatever the number of jobs.

use super::catalogue::{Catalogue, StoredPolicy};
use super::db_error::DbError;
use super::pool::Session;
use super::row::{alive, due, encode, encode_failures, lease_us, state_number};
use super::stored_row::{StoredRow, uuids};
use super::value::{Param, Statement};
use super::{sql, text};
use crate::{Job, NewJob};
use redrive_policy::{Moment, Span};

/// The statements that write what has changed, each returning which jobs it wrote. `queue` returns the number
/// of a queue.
pub(super) fn changes<'j>(
    jobs: &[&'j StoredRow],
    queue: &dyn Fn(&str) -> Option<i32>,
) -> Result<Vec<Statement<'j>>, DbError> {
    let moved = |from: bool, to: bool| -> Vec<&'j StoredRow> {
        let here =
            |stored: &&&StoredRow| stored.changed && stored.ended == from && stored.job.state.is_terminal() == to;
        jobs.iter().filter(here).copied().collect()
    };
    let mut statements = Vec::new();
    let stay = moved(false, false);
    if !stay.is_empty() {
        statements.push(Statement::new(&sql::CHANGE, waiting(&stay)));
    }
    let gone = moved(false, true);
    if !gone.is_empty() {
        statements.push(Statement::new(&sql::END, ended(&gone)));
    }
    let back = moved(true, false);
    if !back.is_empty() {
        statements.push(Statement::new(&sql::REDRIVE, placed(waiting(&back), &back, queue)?));
    }
    Ok(statements)
}

/// The statements that store jobs of another store, as they are.
pub(super) fn arrivals<'j>(
    jobs: &'j [StoredRow],
    queue: &dyn Fn(&str) -> Option<i32>,
) -> Result<Vec<Statement<'j>>, DbError> {
    let (gone, here): (Vec<_>, Vec<_>) = jobs.iter().partition(|stored| stored.ended);
    let live = Statement::new(&sql::ARRIVE_LIVE, placed(waiting(&here), &here, queue)?);
    let ended = Statement::new(&sql::ARRIVE_ENDED, placed(ended(&gone), &gone, queue)?);
    Ok(vec![live, ended])
}

/// What is written of any job.
fn common<'j>(jobs: &[&'j StoredRow]) -> Vec<Param<'j>> {
    vec![
        Box::new(uuids(jobs.iter().map(|stored| &stored.job.id))),
        Box::new(jobs.iter().map(|stored| stored.revision).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|stored| state_number(stored.job.state)).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|stored| encode(&stored.job)).collect::<Vec<_>>()),
        Box::new(
            jobs.iter().map(|stored| encode_failures(&stored.job).filter(|_| stored.new_failure)).collect::<Vec<_>>(),
        ),
    ]
}

/// What is written of a job that can still run.
fn waiting<'j>(jobs: &[&'j StoredRow]) -> Vec<Param<'j>> {
    let mut params = common(jobs);
    params.push(Box::new(moments(jobs, |job| job.times.available)));
    params.push(Box::new(moments(jobs, due)));
    params.push(Box::new(moments(jobs, alive)));
    params.push(Box::new(jobs.iter().map(|stored| lease_us(&stored.job)).collect::<Vec<_>>()));
    params
}

/// What is written of a job that has ended.
fn ended<'j>(jobs: &[&'j StoredRow]) -> Vec<Param<'j>> {
    let mut params = common(jobs);
    params.push(Box::new(moments(jobs, |job| job.times.finished)));
    params.push(Box::new(jobs.iter().map(|stored| stored.job.dead).collect::<Vec<_>>()));
    params
}

/// And the columns that do not change while a job stays in its table.
fn placed<'j>(
    mut params: Vec<Param<'j>>,
    jobs: &[&'j StoredRow],
    queue: &dyn Fn(&str) -> Option<i32>,
) -> Result<Vec<Param<'j>>, DbError> {
    params.push(Box::new(moments(jobs, |job| job.spec.expires)));
    params.push(Box::new(numbers(jobs, queue)?));
    params.push(Box::new(jobs.iter().map(|stored| stored.job.spec.priority).collect::<Vec<_>>()));
    Ok(params)
}

fn moments(jobs: &[&StoredRow], moment: fn(&Job) -> Option<Moment>) -> Vec<Option<i64>> {
    jobs.iter().map(|stored| moment(&stored.job).map(Moment::micros)).collect()
}

fn numbers(jobs: &[&StoredRow], queue: &dyn Fn(&str) -> Option<i32>) -> Result<Vec<i32>, DbError> {
    let number = |stored: &&StoredRow| {
        let name = &stored.job.spec.queue;
        queue(name).ok_or_else(|| DbError::Broken(format!("the queue \"{name}\" has no number")))
    };
    jobs.iter().map(number).collect()
}

/// The statement that stores new jobs, with their policies as they are to be stored. `stored` are the
/// same jobs as they begin.
pub(super) fn enqueued<'j>(
    jobs: &[&'j NewJob],
    stored: &[Job],
    policies: Vec<StoredPolicy>,
    queues: Vec<i32>,
) -> Statement<'j> {
    let spans = |span: fn(&NewJob) -> Option<Span>| -> Vec<Option<f64>> {
        jobs.iter().map(|new| span(new).map(Span::ms)).collect()
    };
    let moments = |moment: fn(&Job) -> Option<Moment>| -> Vec<Option<i64>> {
        stored.iter().map(|job| moment(job).map(Moment::micros)).collect()
    };
    let (numbers, own): (Vec<_>, Vec<_>) = policies.into_iter().map(StoredPolicy::into_columns).unzip();
    Statement::new(
        &sql::ENQUEUE,
        vec![
            Box::new(uuids(jobs.iter().map(|new| &new.id))),
            Box::new(jobs.iter().map(|new| text::stored(&new.spec.kind)).collect::<Vec<_>>()),
            Box::new(jobs.iter().map(|new| &*new.spec.body).collect::<Vec<_>>()),
            Box::new(numbers),
            Box::new(own),
            Box::new(spans(|new| new.spec.timeout)),
            Box::new(spans(|new| new.spec.lease)),
            Box::new(jobs.iter().map(|new| new.idempotency_key.as_deref().map(str::as_bytes)).collect::<Vec<_>>()),
            Box::new(moments(|job| job.times.available)),
            Box::new(moments(due)),
            Box::new(moments(|job| job.spec.expires)),
            Box::new(queues),
            Box::new(jobs.iter().map(|new| new.spec.priority).collect::<Vec<_>>()),
            Box::new(stored.iter().map(|job| state_number(job.state)).collect::<Vec<_>>()),
            Box::new(stored.iter().map(encode).collect::<Vec<_>>()),
        ],
    )
}

/// How the policies of new jobs are stored.
pub(super) async fn policies(
    session: &mut Session,
    catalogue: &Catalogue,
    jobs: &[&NewJob],
) -> Result<Vec<StoredPolicy>, DbError> {
    let mut written = Vec::with_capacity(jobs.len());
    for new in jobs {
        written.push(catalogue.write(session, &new.spec.policy).await?);
    }
    Ok(written)
}
