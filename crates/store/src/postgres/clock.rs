//! One clock for the cluster: the database's.

use super::core::Core;
use super::trouble::Trouble;
use super::value::{Order, Reader};
use redrive_policy::Moment;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often the database is asked what time it is.
const REFRESH: Duration = Duration::from_secs(5);
/// How often it is asked each time; the quickest answer counts.
const LOOKS: usize = 3;

/// A node's count of microseconds, from anywhere; it need not know what day it is.
type OwnTime = dyn Fn() -> i64 + Send + Sync;

/// The time as the database has it. It never steps back: leases and delays are promises about elapsed time.
///
/// Between two looks at the database it goes by the node's count of elapsed time, which nobody sets, so
/// that a node whose own clock is an hour off is on time all the same.
pub struct DatabaseClock {
    own: Box<OwnTime>,
    /// What has to be added to the own time, in microseconds.
    ahead_us: AtomicI64,
    latest_us: AtomicI64,
}

impl fmt::Debug for DatabaseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseClock").field("ahead_us", &self.ahead_us).finish_non_exhaustive()
    }
}

impl DatabaseClock {
    /// A clock that goes by the node's elapsed time.
    pub(super) fn new() -> Self {
        let start = Instant::now();
        Self::on(move || i64::try_from(start.elapsed().as_micros()).unwrap_or(i64::MAX))
    }

    fn on(own: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self { own: Box::new(own), ahead_us: AtomicI64::new(0), latest_us: AtomicI64::new(i64::MIN) }
    }

    /// The time.
    pub fn now(&self) -> Moment {
        let micros = (self.own)().saturating_add(self.ahead_us.load(Ordering::Acquire));
        Moment::from_micros(self.latest_us.fetch_max(micros, Ordering::AcqRel).max(micros))
    }

    /// Takes note that the database said `database` between `asked` and `answered` of the own time: most
    /// likely in the middle, and at most half of the time between them off.
    fn note(&self, asked: i64, database: i64, answered: i64) {
        let middle = asked.saturating_add(answered.saturating_sub(asked) / 2);
        self.ahead_us.store(database.saturating_sub(middle), Ordering::Release);
    }

    /// Asks the database.
    pub(super) async fn look(&self, core: &Core) -> Result<(), Trouble> {
        const TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let mut session = core.session().await?;
        let mut best: Option<(i64, i64, i64)> = None;
        for _ in 0..LOOKS {
            let asked = (self.own)();
            let rows = session.query(&Order::new(TIME, Vec::new())).await?;
            let answered = (self.own)();
            let Some(row) = rows.first() else { continue };
            let database = Reader::new(row).next()?;
            if best.is_none_or(|(from, _, to)| answered - asked < to - from) {
                best = Some((asked, database, answered));
            }
        }
        if let Some((asked, database, answered)) = best {
            self.note(asked, database, answered);
        }
        Ok(())
    }
}

/// Looks at the database's clock now and then, for as long as the store is there. While the database is
/// away, the clock goes on by itself.
pub(super) async fn follow(clock: Arc<DatabaseClock>, core: Weak<Core>) {
    loop {
        tokio::time::sleep(REFRESH).await;
        let Some(core) = core.upgrade() else { return };
        // What is wrong is told to whoever needs the database for more than its time.
        let _ = clock.look(&core).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock on a node that counts from `start`, and the hand that moves it.
    fn node(start: i64) -> (DatabaseClock, Arc<AtomicI64>) {
        let hand = Arc::new(AtomicI64::new(start));
        let own = Arc::clone(&hand);
        (DatabaseClock::on(move || own.load(Ordering::SeqCst)), hand)
    }

    #[test]
    fn nodes_an_hour_apart_show_the_same_time() {
        const HOUR_US: i64 = 3_600_000_000;
        let database = 1_700_000_000_000_000;
        for start in [database, database - HOUR_US, database + HOUR_US, 0] {
            let (clock, hand) = node(start);
            clock.note(start, database, start + 400);
            hand.store(start + 400, Ordering::SeqCst);
            assert_eq!(clock.now().micros(), database + 200, "from {start}");
            hand.fetch_add(1_000_000, Ordering::SeqCst);
            assert_eq!(clock.now().micros(), database + 1_000_200, "a second later, from {start}");
        }
    }

    #[test]
    fn it_stands_still_rather_than_step_back() {
        let (clock, hand) = node(0);
        clock.note(0, 1_000, 0);
        assert_eq!(clock.now().micros(), 1_000);
        clock.note(0, 400, 0);
        assert_eq!(clock.now().micros(), 1_000);
        hand.store(599, Ordering::SeqCst);
        assert_eq!(clock.now().micros(), 1_000);
        hand.store(601, Ordering::SeqCst);
        assert_eq!(clock.now().micros(), 1_001);
    }
}
