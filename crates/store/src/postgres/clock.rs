//! One time for the cluster: the database's clock, and a correction for each time that it was set.

use super::core::Core;
use super::db_error::DbError;
use super::value::{Param, Reader, Statement};
use crate::clock::{Clock, STEP_US, Step, Wall, elapsed_us};
use redrive_policy::Moment;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How often the database is asked what time it is.
const REFRESH: Duration = Duration::from_secs(2);
/// How often it is asked each time; the quickest answer counts.
const LOOKS: usize = 3;
/// With an answer that took longer, a step cannot be distinguished from a busy network.
const LONGEST_ROUND_US: i64 = 500_000;
/// How often the nodes write down how far the time has come.
const KEEP_EVERY_US: i64 = 5_000_000;

const LOOK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, offset_us, revision, latest_us \
     FROM clock";
const CORRECT: &str = "UPDATE clock SET offset_us = offset_us + $1, revision = revision + 1 WHERE revision = $2 \
     RETURNING offset_us, revision";
const KEEP: &str = "UPDATE clock SET latest_us = $1 WHERE latest_us < $1 RETURNING latest_us";

/// A node's count of microseconds, from anywhere; it need not know what day it is.
type OwnTime = dyn Fn() -> i64 + Send + Sync;

/// The time of all nodes on one database. It never steps: leases and delays are promises about elapsed time.
///
/// Between two looks at the database it goes by the node's monotonic clock, which cannot be set, so that a
/// node whose own clock is an hour off is on time all the same. Where the database's clock has stepped against that
/// count, the node that notices it first takes the step back out, for all of them.
pub struct DatabaseClock {
    own: Box<OwnTime>,
    /// What has to be added to the own time, in microseconds.
    ahead_us: AtomicI64,
    latest_us: AtomicI64,
    seen: Mutex<Seen>,
}

/// The result of the last look.
#[derive(Debug, Default)]
struct Seen {
    looked: bool,
    offset_us: i64,
    revision: i64,
    wall: Wall,
    /// A step that was not reported on this node yet.
    unreported: Option<Step>,
}

/// The database's answer, and between which moments of the own time it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    asked: i64,
    answered: i64,
    database_us: i64,
    offset_us: i64,
    revision: i64,
    /// How far the time had come, as far as that was written down.
    latest_us: i64,
}

impl Look {
    /// The cluster's time, most likely in the middle of the round, and at most half of it off.
    const fn ahead_us(&self) -> i64 {
        let middle = self.asked.saturating_add(self.answered.saturating_sub(self.asked) / 2);
        self.database_us.saturating_add(self.offset_us).saturating_sub(middle)
    }
}

/// What a look leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The time is as it should be.
    Right,
    /// The step of the database's clock in microseconds that has not been reported yet.
    Stepped(i64),
}

impl fmt::Debug for DatabaseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseClock")
            .field("ahead_us", &self.ahead_us)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl DatabaseClock {
    /// A clock that goes by the node's elapsed time.
    pub(super) fn new() -> Self {
        Self::on(elapsed_us)
    }

    fn on(own: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        let [ahead_us, latest_us] = [0, i64::MIN].map(AtomicI64::new);
        Self { own: Box::new(own), ahead_us, latest_us, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the time of the database, or finds that its clock has stepped.
    fn note(&self, look: Look) -> Found {
        let mut seen = self.seen();
        let off_us = look.ahead_us().saturating_sub(self.ahead_us.load(Ordering::Acquire));
        let others = look.revision != seen.revision;
        if !seen.looked {
            let behind = look.latest_us.saturating_sub(look.database_us.saturating_add(look.offset_us));
            if behind > STEP_US {
                return Found::Stepped(-behind);
            }
            seen.wall.ahead_us = -look.offset_us;
        } else if off_us.abs() > STEP_US {
            if look.answered.saturating_sub(look.asked) > LONGEST_ROUND_US {
                return Found::Right;
            }
            // Another node has a later time: this node stood still. Time does not go back.
            if !others || off_us < 0 {
                return Found::Stepped(off_us);
            }
        }
        if seen.looked && others {
            let at = Moment::from_micros(look.database_us.saturating_add(look.offset_us));
            let by_us = seen.offset_us.saturating_sub(look.offset_us);
            seen.step(Step { at, by_us });
        }
        (seen.looked, seen.offset_us, seen.revision) = (true, look.offset_us, look.revision);
        self.ahead_us.store(look.ahead_us(), Ordering::Release);
        Found::Right
    }

    /// Asks the database; takes out a step of its clock.
    pub(super) async fn look(&self, core: &Core) -> Result<(), DbError> {
        let mut session = core.session().await?;
        for _ in 0..LOOKS {
            let mut best: Option<Look> = None;
            for _ in 0..LOOKS {
                let asked = (self.own)();
                let rows = session.query(&Statement::new(LOOK, Vec::new())).await?;
                let answered = (self.own)();
                let Some(row) = rows.first() else { continue };
                let mut row = Reader::new(row);
                let (database_us, offset_us, revision, latest_us) =
                    (row.next()?, row.next()?, row.next()?, row.next()?);
                let look = Look { asked, answered, database_us, offset_us, revision, latest_us };
                if best.is_none_or(|best| answered - asked < best.answered - best.asked) {
                    best = Some(look);
                }
            }
            let Some(look) = best else { return Err(DbError::Broken("the table clock has no row".to_owned())) };
            let Found::Stepped(by_us) = self.note(look) else {
                let now = self.now().micros();
                if now.saturating_sub(look.latest_us) > KEEP_EVERY_US {
                    session.write(&Statement::new(KEEP, vec![Box::new(now)])).await?;
                }
                return Ok(());
            };
            let params: Vec<Param<'_>> = vec![Box::new(by_us.saturating_neg()), Box::new(look.revision)];
            // Where another node was faster, the next look shows what it did.
            if let Some(row) = session.write(&Statement::new(CORRECT, params)).await?.first() {
                let mut row = Reader::new(row);
                let (offset_us, revision) = (row.next()?, row.next()?);
                self.corrected(Look { offset_us, revision, ..look }, by_us);
            }
        }
        Ok(())
    }

    /// Records that this node has taken out a step.
    fn corrected(&self, look: Look, by_us: i64) {
        let mut seen = self.seen();
        seen.wall.ahead_us = -look.offset_us.saturating_add(by_us);
        let at = Moment::from_micros(look.database_us.saturating_add(look.offset_us));
        seen.step(Step { at, by_us });
        (seen.looked, seen.offset_us, seen.revision) = (true, look.offset_us, look.revision);
        self.ahead_us.store(look.ahead_us(), Ordering::Release);
    }
}

impl Seen {
    fn step(&mut self, step: Step) {
        self.wall.stepped(step);
        self.unreported = Some(step);
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Moment {
        let micros = (self.own)().saturating_add(self.ahead_us.load(Ordering::Acquire));
        Moment::from_micros(self.latest_us.fetch_max(micros, Ordering::AcqRel).max(micros))
    }

    fn wall(&self) -> Wall {
        self.seen().wall
    }

    /// The comparison itself is that of the last look at the database.
    fn check_wall(&self) -> Option<Step> {
        self.seen().unreported.take()
    }
}

/// Looks at the database's clock now and then, for as long as the store is there. While the database is
/// away, the clock goes on by the monotonic clock.
pub(super) async fn follow(clock: Arc<DatabaseClock>, core: Weak<Core>) {
    loop {
        tokio::time::sleep(REFRESH).await;
        let Some(core) = core.upgrade() else { return };
        // Callers that need the database for more than its time get the error.
        let _ = clock.look(&core).await;
    }
}

#[cfg(test)]
mod tests;
