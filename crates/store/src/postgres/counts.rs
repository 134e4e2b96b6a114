//! How many jobs there are. PostgreSQL reads every row to count them; so a large store reuses a count for a while.

use super::core::Core;
use super::db_error::DbError;
use super::text;
use super::value::{Reader, Statement};
use crate::{Filter, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Up to this many jobs are counted each time, so that small stores always report the exact number.
const FEW: usize = 20_000;
/// A count is valid for this many times as long as it took: at most about a tenth of the time goes into counting.
const GOOD_FOR: u32 = 10;

/// One moment, and the tables read from front to back, which no index can do faster.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = on";
const COUNT: &str = "SELECT q.name, c.state, c.dead, c.jobs FROM (\
       SELECT queue, state, false AS dead, count(*) AS jobs FROM live GROUP BY queue, state UNION ALL \
       SELECT queue, state, dead, count(*) AS jobs FROM ended GROUP BY queue, state, dead) c \
     JOIN queues q ON q.id = c.queue";

/// The jobs that one queue has in one state.
#[derive(Debug)]
pub(super) struct Count {
    pub(super) queue: Arc<str>,
    /// As the database numbers them.
    pub(super) state: usize,
    dead: bool,
    pub(super) jobs: usize,
}

impl Count {
    fn fits(&self, filter: &Filter) -> bool {
        filter.queue.as_ref().is_none_or(|queue| *queue == self.queue)
            && filter.state.is_none_or(|state| State::ALL.get(self.state) == Some(&state))
            && filter.dead.is_none_or(|dead| dead == self.dead)
    }
}

/// What was counted last. The lock is held while counting, so that other callers wait for the same count.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<Option<Counted>>);

#[derive(Debug)]
struct Counted {
    counts: Arc<Vec<Count>>,
    at: Instant,
    took: Duration,
}

impl Counted {
    fn is_good(&self, now: Instant) -> bool {
        let jobs: usize = self.counts.iter().map(|count| count.jobs).sum();
        jobs > FEW && now.saturating_duration_since(self.at) < self.took.saturating_mul(GOOD_FOR)
    }
}

impl Counts {
    /// How many jobs each queue has in each state. Not to be called with a connection in hand: the count needs one.
    pub(super) async fn all(&self, core: &Core) -> Result<Arc<Vec<Count>>, DbError> {
        let mut last = self.0.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.is_good(Instant::now())) {
            return Ok(Arc::clone(&last.counts));
        }
        let begun = Instant::now();
        let counts = Arc::new(counted(core).await?);
        let at = Instant::now();
        *last = Some(Counted { counts: Arc::clone(&counts), at, took: at - begun });
        Ok(counts)
    }

    /// How many jobs fit a filter that asks for queue, state and dead letters only.
    pub(super) async fn fitting(&self, core: &Core, filter: &Filter) -> Result<usize, DbError> {
        let all = self.all(core).await?;
        Ok(all.iter().filter(|count| count.fits(filter)).map(|count| count.jobs).sum())
    }
}

async fn counted(core: &Core) -> Result<Vec<Count>, DbError> {
    let mut session = core.session().await?;
    let rows = session.begin(BEGIN, &Statement::new(COUNT, Vec::new())).await?;
    session.roll_back().await?;
    let mut counts = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut row = Reader::new(row);
        let queue = text::read(row.next()?).into();
        let (state, dead, jobs): (i16, bool, i64) = (row.next()?, row.next()?, row.next()?);
        let (state, jobs) = (usize::try_from(state).unwrap_or(usize::MAX), usize::try_from(jobs).unwrap_or(0));
        counts.push(Count { queue, state, dead, jobs });
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_used_again_only_in_a_large_store_and_for_ten_times_as_long_as_it_took() {
        let at = Instant::now();
        let counted = |jobs| {
            let count = Count { queue: "q".into(), state: 2, dead: false, jobs };
            Counted { counts: Arc::new(vec![count]), at, took: Duration::from_millis(300) }
        };
        assert!(!counted(FEW).is_good(at), "a small store is always exact");
        assert!(counted(FEW + 1).is_good(at + Duration::from_millis(2_999)));
        assert!(!counted(FEW + 1).is_good(at + Duration::from_secs(3)));
    }
}
