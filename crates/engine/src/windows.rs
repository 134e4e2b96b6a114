//! Groups that allow no run before a time: who waits for one of their jobs is woken then.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_policy::Moment;
use tokio::sync::Notify;

/// When which groups open.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    opens: Mutex<BTreeSet<(Moment, Arc<str>)>>,
    earlier: Notify,
}

impl Windows {
    fn opens(&self) -> MutexGuard<'_, BTreeSet<(Moment, Arc<str>)>> {
        self.opens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody waits for a group that opens at this time.
    pub(crate) fn note(&self, at: Moment, group: &Arc<str>) {
        let mut opens = self.opens();
        let first = opens.first().map(|(first, _)| *first);
        if opens.insert((at, Arc::clone(group))) && first.is_none_or(|first| at < first) {
            drop(opens);
            self.earlier.notify_one();
        }
    }

    /// When the first of them opens.
    pub(crate) fn first(&self) -> Option<Moment> {
        self.opens().first().map(|(at, _)| *at)
    }

    /// Completes when another one is the first.
    pub(crate) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    /// Takes out those that are open.
    pub(crate) fn take(&self, now: Moment) -> Vec<Arc<str>> {
        let mut opens = self.opens();
        let mut open = Vec::new();
        while opens.first().is_some_and(|(at, _)| *at <= now) {
            open.extend(opens.pop_first().map(|(_, group)| group));
        }
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_taken_out_once() {
        let windows = Windows::default();
        let at = Moment::from_micros;
        for (time, group) in [(7, "a"), (5, "b"), (7, "a"), (9, "c")] {
            windows.note(at(time), &group.into());
        }
        assert_eq!(windows.first(), Some(at(5)));
        assert_eq!(windows.take(at(7)), ["b".into(), "a".into()]);
        assert_eq!((windows.take(at(8)), windows.first()), (Vec::new(), Some(at(9))));
    }
}
