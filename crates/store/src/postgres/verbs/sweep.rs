//! Sweeping: expired, due and overdue jobs.

use super::super::core::{BEGIN, Core};
use super::super::db_error::DbError;
use super::super::read::Found;
use super::super::row::micros;
use super::super::stored_row::StoredRow;
use super::super::value::{Param, Reader, Statement, limit};
use super::super::{limits, sql};
use super::due::{in_turn, names};
use crate::rules;
use crate::standstill::Grace;
use crate::{Decider, Held, Retention, Transition};
use redrive_policy::{Moment, Span};

/// No run is granted more than this, so that the database can add it to any time: 100 years.
const LONGEST: Span = Span::from_secs(100 * 365 * 86_400);

/// Ends runs that are overdue.
pub(in crate::postgres) async fn reclaim(
    core: &Core,
    decide: &Decider<'_>,
    most: usize,
    now: Moment,
) -> Result<Vec<Transition>, DbError> {
    let mut session = core.session().await?;
    let grace = core.grace();
    let (ended, lengths) = standstills(&grace);
    let params: Vec<Param<'_>> =
        vec![Box::new(now.micros()), Box::new(limit(most)), Box::new(ended), Box::new(lengths)];
    let statement = Statement::new(&sql::OVERDUE, params);
    let rows = session.begin(BEGIN, &statement).await?;
    let Found { mut jobs, blocks, .. } = core.read_locked(&mut session, &rows).await?;
    jobs.retain(|stored| rules::overdue(&stored.job, &grace, now).is_some());
    jobs.sort_by_key(|StoredRow { job, .. }| (rules::overdue(job, &grace, now).map(|(since, _)| since), job.id));
    jobs.truncate(most);
    let reclaimed = |stored: StoredRow| stored.changed_by(|job| rules::reclaim(job, decide, &grace, now)).ok();
    let (ended, jobs): (Vec<Transition>, Vec<StoredRow>) = jobs.into_iter().filter_map(reclaimed).unzip();
    core.commit(&mut session, &jobs.iter().collect::<Vec<_>>(), &blocks, &core.messages(&ended)).await?;
    Ok(ended)
}

/// Ends jobs that have expired, then makes due jobs available.
pub(in crate::postgres) async fn promote(
    core: &Core,
    held: &Held,
    most: usize,
    now: Moment,
) -> Result<Vec<Transition>, DbError> {
    let mut session = core.session().await?;
    let statement = Statement::new(&sql::EXPIRED, vec![Box::new(now.micros()), Box::new(limit(most))]);
    let rows = session.begin(BEGIN, &statement).await?;
    let Found { mut jobs, mut blocks, .. } = core.read_locked(&mut session, &rows).await?;
    let statement = Statement::new(&sql::EXPIRED_BLOCKS, vec![Box::new(now.micros()), Box::new(limit(most))]);
    let rows = session.query(&statement).await?;
    let expired = core.read_locked(&mut session, &rows).await?;
    jobs.extend(expired.jobs);
    blocks.extend(expired.blocks);
    jobs.sort_by_key(|StoredRow { job, .. }| (job.spec.expires, job.id));
    jobs.truncate(most);
    let expired = jobs.into_iter().filter_map(|stored| stored.changed_by(|job| rules::expire(job, now)).ok());
    let (mut moved, mut jobs): (Vec<Transition>, Vec<StoredRow>) = expired.unzip();
    let due = in_turn(core, &mut session, held, most - moved.len(), now, &mut blocks).await?;
    let due = due.into_iter().filter_map(|stored| stored.changed_by(|job| rules::fall_due(job, now)).ok());
    for (transition, stored) in due {
        moved.push(transition);
        jobs.push(stored);
    }
    core.commit(&mut session, &jobs.iter().collect::<Vec<_>>(), &blocks, &core.messages(&moved)).await?;
    Ok(moved)
}

/// Deletes jobs that ended long enough ago.
pub(in crate::postgres) async fn prune(
    core: &Core,
    retention: Retention,
    most: usize,
    now: Moment,
) -> Result<usize, DbError> {
    let mut pruned = 0;
    let mut session = core.session().await?;
    for (sql, span) in [(&sql::PRUNE_FINISHED, retention.finished), (&sql::PRUNE_DEAD, retention.dead)] {
        let params: Vec<Param<'_>> = vec![Box::new(before(now, span)), Box::new(limit(most - pruned))];
        let rows = session.write(&Statement::new(sql, params)).await?;
        let count: Option<i64> = rows.first().map(|row| Reader::new(row).next()).transpose()?;
        pruned += count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    }
    limits::prune(&mut session, now).await?;
    Ok(pruned)
}

/// What ended at this time or earlier, in microseconds, ended long enough ago.
fn before(now: Moment, span: Span) -> i64 {
    now.micros().saturating_sub(Moment::ORIGIN.after(span).micros())
}

/// When each standstill ended and how long it was, in microseconds.
fn standstills(grace: &Grace) -> (Vec<i64>, Vec<i64>) {
    let known = grace.standstills().iter();
    known.map(|standstill| (standstill.ended.micros(), micros(standstill.length.at_most(LONGEST)))).unzip()
}

/// The next moment at which there is something to reclaim or to promote.
pub(in crate::postgres) async fn next_wake(core: &Core, held: &Held) -> Result<Option<Moment>, DbError> {
    let mut session = core.session().await?;
    let (ended, lengths) = standstills(&core.grace());
    let params: Vec<Param<'_>> = vec![Box::new(names(held)), Box::new(ended), Box::new(lengths)];
    let rows = session.query(&Statement::new(&sql::NEXT_WAKE, params)).await?;
    Ok(rows.first().map(|row| Reader::new(row).moment()).transpose()?.flatten())
}
