//! How many jobs there are: every transaction writes which jobs went from which state to which, and the sum of that
//! says how many are where.

use super::core::Core;
use super::db_error::DbError;
use super::pool::Session;
use super::text;
use super::value::{Reader, Statement};
use crate::{Filter, State};
use std::sync::Arc;

/// The jobs of each queue by the states in which they are counted.
const COUNT: &str = "SELECT q.name, c.state, c.jobs FROM (\
       SELECT queue, state, sum(jobs)::bigint AS jobs FROM (\
         SELECT queue, state, jobs FROM counts WHERE state IS NOT NULL UNION ALL \
         SELECT queue, was, - jobs FROM counts WHERE was IS NOT NULL) c GROUP BY queue, state) c \
     JOIN queue_names q ON q.id = c.queue WHERE c.jobs <> 0";
/// Replaces all rows by their sums. Of two nodes that do it at the same time, the second one finds the rows of the
/// first one gone, and leaves its sums alone.
const FOLD: &str = "WITH gone AS (DELETE FROM counts RETURNING queue, was, state, jobs) \
     INSERT INTO counts (queue, state, jobs) SELECT queue, state, sum(jobs) FROM (\
       SELECT queue, state, jobs FROM gone WHERE state IS NOT NULL UNION ALL \
       SELECT queue, was, - jobs FROM gone WHERE was IS NOT NULL) c GROUP BY queue, state HAVING sum(jobs) <> 0";

/// The jobs that one queue has in one state.
#[derive(Debug)]
pub(super) struct Count {
    pub(super) queue: Arc<str>,
    /// As the database numbers them.
    pub(super) state: usize,
    pub(super) dead: bool,
    pub(super) jobs: usize,
}

impl Count {
    fn fits(&self, filter: &Filter) -> bool {
        filter.queue.as_ref().is_none_or(|queue| *queue == self.queue)
            && filter.state.is_none_or(|state| State::ALL.get(self.state) == Some(&state))
            && filter.dead.is_none_or(|dead| dead == self.dead)
    }
}

/// How many jobs each queue has in each state, as the transaction sees it that is open.
pub(super) async fn all(session: &mut Session) -> Result<Vec<Count>, DbError> {
    let rows = session.query(&Statement::new(COUNT, Vec::new())).await?;
    let mut counts = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut row = Reader::new(row);
        let queue = text::read(row.next()?).into();
        let (state, jobs): (i16, i64) = (row.next()?, row.next()?);
        let (state, jobs) = (usize::try_from(state).unwrap_or(usize::MAX), usize::try_from(jobs).unwrap_or(0));
        // Dead letters are counted behind all states.
        let dead = state == State::ALL.len();
        counts.push(Count { queue, state: if dead { State::Discarded as usize } else { state }, dead, jobs });
    }
    Ok(counts)
}

/// How many jobs fit a filter that asks for queue, state and dead letters only.
pub(super) async fn fitting(core: &Core, filter: &Filter) -> Result<usize, DbError> {
    let all = all(&mut core.session().await?).await?;
    Ok(all.iter().filter(|count| count.fits(filter)).map(|count| count.jobs).sum())
}

/// Replaces what was counted by its sum.
pub(super) async fn fold(session: &mut Session) -> Result<(), DbError> {
    session.write(&Statement::new(FOLD, Vec::new())).await.map(drop)
}
