//! What the log says about connections that are closed or refused: a line immediately, then one for all that
//! follow within ten seconds, so that a flood of connections is no flood of lines.

use super::connections::Limit;
use crate::limits::Limits;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long equal events are gathered before the next line.
const EVERY: Duration = Duration::from_secs(10);

/// Something that happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It waited for its client and made room for another one.
    ClosedForOthers(Limit),
    /// It was refused: all connections are in use.
    Refused(Limit),
    /// Its client did not take its answer.
    NotRead,
    /// The process has no file descriptor for it.
    NoDescriptor,
}

/// Tells events, gathered.
#[derive(Clone, Debug)]
pub(super) struct Notices(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: Limits,
    /// What has happened since the last line about the same; an entry for each kind whose time runs.
    gathered: Mutex<Vec<(Event, usize)>>,
}

impl Notices {
    pub(super) fn new(limits: Limits) -> Self {
        Self(Arc::new(Inner { limits, gathered: Mutex::default() }))
    }

    fn gathered(&self) -> MutexGuard<'_, Vec<(Event, usize)>> {
        self.0.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, event: Event, count: usize) {
        let mut gathered = self.gathered();
        if let Some((_, so_far)) = gathered.iter_mut().find(|(kind, _)| *kind == event) {
            *so_far += count;
            return;
        }
        gathered.push((event, 0));
        drop(gathered);
        self.line(event, count);
        let notices = self.clone();
        tokio::spawn(async move { while notices.again(event).await {} });
    }

    /// Tells what was gathered; false where nothing more happened.
    async fn again(&self, event: Event) -> bool {
        tokio::time::sleep(EVERY).await;
        let mut gathered = self.gathered();
        let count = gathered.iter_mut().find(|(kind, _)| *kind == event).map_or(0, |(_, count)| std::mem::take(count));
        if count == 0 {
            gathered.retain(|(kind, _)| *kind != event);
        }
        drop(gathered);
        if count > 0 {
            self.line(event, count);
        }
        count > 0
    }

    fn line(&self, event: Event, count: usize) {
        tracing::warn!(count, "{}", NoticeText(event, count, &self.0.limits));
    }
}

struct NoticeText<'l>(Event, usize, &'l Limits);

impl fmt::Display for NoticeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(event, count, limits) = self;
        let connections = if *count == 1 { "connection" } else { "connections" };
        match event {
            Event::ClosedForOthers(_) => {
                write!(f, "closed {count} {connections} that waited for the client, to make room for others: ")
            }
            Event::Refused(_) => write!(f, "refused {count} {connections} with 503: "),
            Event::NotRead => write!(f, "closed {count} {connections} whose client did not read its answer: "),
            Event::NoDescriptor => write!(f, "refused {count} {connections}: "),
        }?;
        match event {
            Event::ClosedForOthers(Limit::Connections) | Event::Refused(Limit::Connections) => {
                write!(f, "all {} are taken (limits.connections)", limits.connections)
            }
            Event::ClosedForOthers(Limit::OfNetwork) | Event::Refused(Limit::OfNetwork) => {
                write!(f, "one address has {} (limits.connections_per_address)", limits.connections_per_address)
            }
            Event::NotRead => write!(f, "{:?} passed (limits.write_timeout)", limits.write_timeout),
            Event::NoDescriptor => f.write_str("the process has no more file descriptors; raise its limit (ulimit -n)"),
        }
    }
}

#[cfg(test)]
#[path = "../../tests/common/log.rs"]
mod log;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_told_in_one_line_every_ten_seconds() {
        let lines = log::captured();
        let notices = Notices::new(Limits::default());
        for _ in 0..500 {
            notices.tell(Event::ClosedForOthers(Limit::Connections), 2);
        }
        notices.tell(Event::NotRead, 1);
        tokio::time::sleep(EVERY * 3).await;
        notices.tell(Event::NotRead, 1);
        let told = lines.lock().unwrap().clone();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told[0].starts_with("closed 2 connections") && told[0].ends_with("(limits.connections)"), "{told:?}");
        assert_eq!(
            told[1],
            "closed 1 connection whose client did not read its answer: 30s passed (limits.write_timeout)"
        );
        assert!(told[2].starts_with("closed 998 connections"), "{told:?}");
        assert_eq!(told[3], told[1]);
    }
}
