//! Cancelling a handler.

use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;

/// Why a handler should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cancelled {
    /// The lease is lost: it expired, or another worker has the job. The outcome of the handler changes
    /// nothing.
    LeaseLost,
    /// The job was cancelled while it ran. The outcome of the handler changes nothing.
    JobCancelled,
    /// The run has taken longer than it may.
    TimedOut,
    /// The worker stops, and the time that it waits for running handlers is over. The job is released
    /// and runs again elsewhere.
    Stopping,
}

impl Cancelled {
    /// Whether the lease is lost, so that there is nothing to report.
    pub(crate) const fn ends_the_lease(self) -> bool {
        matches!(self, Self::LeaseLost | Self::JobCancelled)
    }

    const fn code(self) -> u8 {
        match self {
            Self::LeaseLost => 1,
            Self::TimedOut => 2,
            Self::Stopping => 3,
            Self::JobCancelled => 4,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::LeaseLost),
            2 => Some(Self::TimedOut),
            3 => Some(Self::Stopping),
            4 => Some(Self::JobCancelled),
            _ => None,
        }
    }
}

/// A signal that is sent at most once, and lasts.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    /// 0 until the signal is sent. The first reason stays.
    reason: AtomicU8,
    notify: Notify,
}

impl Cancellation {
    /// Sends the signal; returns true for the first one.
    pub(crate) fn cancel(&self, why: Cancelled) -> bool {
        let first = self.reason.compare_exchange(0, why.code(), Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            self.notify.notify_waiters();
        }
        first
    }

    pub(crate) fn reason(&self) -> Option<Cancelled> {
        Cancelled::of(self.reason.load(Ordering::Acquire))
    }

    /// Completes once the signal is sent.
    pub(crate) async fn cancelled(&self) -> Cancelled {
        loop {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            // Registered before the check, so that a signal in between is not missed.
            notified.as_mut().enable();
            if let Some(why) = self.reason() {
                return why;
            }
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_reaches_early_and_late_waiters_and_the_first_reason_stays() {
        let signal = Cancellation::default();
        assert_eq!(signal.reason(), None);
        let waiting = async { signal.cancelled().await };
        let giving = async {
            assert!(signal.cancel(Cancelled::TimedOut));
            assert!(!signal.cancel(Cancelled::Stopping));
        };
        let (why, ()) = tokio::join!(waiting, giving);
        assert_eq!(why, Cancelled::TimedOut);
        assert_eq!(signal.cancelled().await, Cancelled::TimedOut);
    }
}
