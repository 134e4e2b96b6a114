//! Writing jobs: one statement for each kind of change, whatever the number of jobs.

use super::catalogue::{Catalogue, StoredPolicy};
use super::db_error::DbError;
use super::pool::Session;
use super::row::{encode, encode_failures, state_number};
use super::stored_row::{Place, StoredRow, counted, uuids};
use super::tally::{Tally, number};
use super::value::{Param, Statement};
use super::{block, ended, limits, sql, text};
use crate::{Job, NewJob};
use redrive_policy::{Moment, Span};

/// Returns the number of a queue.
pub(super) type QueueNumber<'q> = dyn Fn(&str) -> Option<i32> + 'q;

/// The statements that write what has changed of jobs that are locked and not active.
pub(super) fn changes<'j>(jobs: &[&'j StoredRow], queue: &QueueNumber<'_>) -> Result<Vec<Statement<'j>>, DbError> {
    let moved = |over: bool| -> Vec<&'j StoredRow> {
        let here = |stored: &&&StoredRow| {
            stored.changed && matches!(stored.place, Place::Live(_)) && stored.job.state.is_terminal() == over
        };
        jobs.iter().filter(here).copied().collect()
    };
    let mut statements = Vec::new();
    let stay = moved(false);
    if !stay.is_empty() {
        let mut params = waiting(&stay, queue)?;
        params.truncate(6);
        params.push(tids(stay.iter().copied()));
        statements.push(tallied(&sql::CHANGE, params, Tally::of(stay, queue)?));
    }
    let gone = moved(true);
    if !gone.is_empty() {
        let (mut params, _) = ended::params(gone.iter().map(|stored| (None, *stored)), queue)?;
        params.push(tids(gone.iter().copied()));
        statements.push(tallied(&sql::END, params, Tally::of(gone, queue)?));
    }
    Ok(statements)
}

/// The statement that makes a locked job wait that has ended. `from` is the number of the queue in which it ended.
pub(super) fn redriven<'j>(
    stored: &'j StoredRow,
    from: i32,
    queue: &QueueNumber<'_>,
) -> Result<Statement<'j>, DbError> {
    let mut tally = Tally::default();
    tally.add(from, Some(stored.was), None);
    tally.add(number(queue, &stored.job.spec.queue)?, None, Some(counted(&stored.job)));
    let mut statement = tallied(&sql::REDRIVE, waiting(&[stored], queue)?, tally);
    statement.params.push(Box::new(stored.tid()));
    Ok(statement)
}

/// The statement that removes locked jobs that have ended.
pub(super) fn removed(jobs: &[StoredRow], queue: &QueueNumber<'_>) -> Result<Statement<'static>, DbError> {
    let mut tally = Tally::default();
    for stored in jobs {
        tally.add(number(queue, &stored.job.spec.queue)?, Some(stored.was), None);
    }
    let ids: Param<'static> = Box::new(uuids(jobs.iter().map(|stored| &stored.job.id)));
    let mut statement = tallied(&sql::REMOVE, vec![ids], tally);
    statement.params.push(tids(jobs.iter()));
    Ok(statement)
}

/// The statements that store jobs of another store, as they are.
pub(super) fn arrivals<'j>(jobs: &'j [StoredRow], queue: &QueueNumber<'_>) -> Result<Vec<Statement<'j>>, DbError> {
    let of = |place: fn(&Place) -> bool| -> Vec<&'j StoredRow> {
        jobs.iter().filter(|stored| place(&stored.place)).collect()
    };
    let new = |jobs: &[&StoredRow]| {
        let mut tally = Tally::default();
        for stored in jobs {
            tally.add(number(queue, &stored.job.spec.queue)?, None, Some(counted(&stored.job)));
        }
        Ok::<_, DbError>(tally)
    };
    let (here, gone) = (of(|place| matches!(place, Place::Live(_))), of(|place| matches!(place, Place::Ended(_))));
    let active = of(|place| matches!(place, Place::Claim(..)));
    let (over, _) = ended::params(gone.iter().map(|stored| (None, *stored)), queue)?;
    let mut statements = vec![
        tallied(&sql::ARRIVE_LIVE, waiting(&here, queue)?, new(&here)?),
        tallied(&sql::ARRIVE_ENDED, over, new(&gone)?),
    ];
    if !active.is_empty() {
        let tally = new(&active)?;
        let params = block::params(&mut block::new_blocks(active, queue)?);
        statements.push(tallied(&sql::ARRIVE_ACTIVE, params, tally));
    }
    Ok(statements)
}

/// The rows in which jobs wait.
pub(super) fn tids<'j>(jobs: impl Iterator<Item = &'j StoredRow>) -> Param<'static> {
    Box::new(jobs.filter_map(StoredRow::tid).collect::<Vec<_>>())
}

pub(super) fn tallied<'j>(sql: &'static str, mut params: Vec<Param<'j>>, tally: Tally) -> Statement<'j> {
    params.extend(tally.params());
    Statement::new(sql, params)
}

/// What is written of jobs that wait.
pub(super) fn waiting<'j>(jobs: &[&'j StoredRow], queue: &QueueNumber<'_>) -> Result<Vec<Param<'j>>, DbError> {
    let queues: Result<Vec<i32>, DbError> = jobs.iter().map(|stored| number(queue, &stored.job.spec.queue)).collect();
    Ok(vec![
        Box::new(uuids(jobs.iter().map(|stored| &stored.job.id))),
        Box::new(jobs.iter().map(|stored| state_number(stored.job.state)).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|stored| encode(&stored.job)).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|stored| encode_failures(&stored.job)).collect::<Vec<_>>()),
        Box::new(moments(jobs, |job| job.times.available)),
        Box::new(moments(jobs, |job| job.due)),
        Box::new(moments(jobs, |job| job.spec.expires)),
        Box::new(queues?),
        Box::new(jobs.iter().map(|stored| stored.job.spec.priority).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|stored| limits::lane(&stored.job.spec)).collect::<Vec<_>>()),
    ])
}

fn moments(jobs: &[&StoredRow], moment: fn(&Job) -> Option<Moment>) -> Vec<Option<i64>> {
    jobs.iter().map(|stored| moment(&stored.job).map(Moment::micros)).collect()
}

/// The statement that stores new jobs, with their policies as they are to be stored. `stored` are the
/// same jobs as they begin.
pub(super) fn enqueued<'j>(
    jobs: &[&'j NewJob],
    stored: &[Job],
    policies: Vec<StoredPolicy>,
    queues: Vec<i32>,
    sources: Vec<i64>,
) -> Statement<'j> {
    let spans = |span: fn(&NewJob) -> Option<Span>| -> Vec<Option<f64>> {
        jobs.iter().map(|new| span(new).map(Span::ms)).collect()
    };
    let moments = |moment: fn(&Job) -> Option<Moment>| -> Vec<Option<i64>> {
        stored.iter().map(|job| moment(job).map(Moment::micros)).collect()
    };
    let mut tally = Tally::default();
    queues.iter().zip(stored).for_each(|(queue, job)| tally.add(*queue, None, Some(counted(job))));
    let (numbers, own): (Vec<_>, Vec<_>) = policies.into_iter().map(StoredPolicy::into_columns).unzip();
    let params: Vec<Param<'j>> = vec![
        Box::new(uuids(jobs.iter().map(|new| &new.id))),
        Box::new(jobs.iter().map(|new| text::stored(&new.spec.kind)).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|new| &*new.spec.body).collect::<Vec<_>>()),
        Box::new(numbers),
        Box::new(own),
        Box::new(spans(|new| new.spec.timeout)),
        Box::new(spans(|new| new.spec.lease)),
        Box::new(jobs.iter().map(|new| limits::limits(&new.spec)).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|new| new.idempotency_key.as_deref().map(str::as_bytes)).collect::<Vec<_>>()),
        Box::new(sources),
        Box::new(moments(|job| job.times.available)),
        Box::new(moments(|job| job.due)),
        Box::new(moments(|job| job.spec.expires)),
        Box::new(queues),
        Box::new(jobs.iter().map(|new| new.spec.priority).collect::<Vec<_>>()),
        Box::new(stored.iter().map(|job| state_number(job.state)).collect::<Vec<_>>()),
        Box::new(stored.iter().map(encode).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|new| limits::lane(&new.spec)).collect::<Vec<_>>()),
    ];
    let limited = jobs.iter().any(|new| new.spec.limits.is_some());
    tallied(if limited { &sql::ENQUEUE_LIMITED } else { &sql::ENQUEUE }, params, tally)
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
