//! Time in which a server could not hear its workers, and what follows for their leases.

use crate::Lease;
use redrive_policy::{Moment, Span};

/// A time in which the server stood still: it was stopped, suspended, or not running at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standstill {
    /// When it was over.
    pub ended: Moment,
    /// How long it was.
    pub length: Span,
}

/// What runs are granted because the server stood still while they were under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grace(Vec<Standstill>);

impl Grace {
    /// Records a standstill. One that was neither later nor longer has no effect any more.
    pub(crate) fn add(&mut self, standstill: Standstill) {
        self.0.retain(|known| known.ended > standstill.ended || known.length > standstill.length);
        self.0.push(standstill);
    }

    /// When a run is overdue: at its deadline or at the end of its lease, whichever is first. After a standstill
    /// without a heartbeat since, it is not before one span of the lease has passed, or as much time as the
    /// standstill took, where that is less.
    pub(crate) fn overdue(&self, lease: &Lease) -> Moment {
        let granted = self.0.iter().filter(|standstill| lease.alive < standstill.ended);
        let granted = granted.map(|standstill| standstill.ended.after(lease.span.at_most(standstill.length)));
        granted.fold(ends(lease), Moment::max)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn standstills(&self) -> &[Standstill] {
        &self.0
    }
}

/// When the lease or the time of the run is over, whichever comes first.
pub(crate) fn ends(lease: &Lease) -> Moment {
    lease.deadline.map_or(lease.until, |deadline| deadline.min(lease.until))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeaseToken;

    /// A lease of 60 s that was taken at 0.
    fn lease(alive_s: u32) -> Lease {
        let (token, span) = (LeaseToken { number: 1, nonce: 0 }, Span::from_secs(60));
        let alive = at(alive_s);
        Lease { token, worker: "w".into(), alive, until: alive.after(span), span, deadline: Some(at(100)) }
    }

    fn at(secs: u32) -> Moment {
        Moment::ORIGIN.after(Span::from_secs(secs))
    }

    fn after(standstills: &[(u32, u32)]) -> Grace {
        let mut grace = Grace::default();
        for (ended, length) in standstills {
            grace.add(Standstill { ended: at(*ended), length: Span::from_secs(*length) });
        }
        grace
    }

    #[test]
    fn a_run_has_one_span_from_the_end_of_a_standstill() {
        assert_eq!(after(&[]).overdue(&lease(0)), at(60));
        assert_eq!(after(&[(500, 450)]).overdue(&lease(0)), at(560), "the lease, and the deadline too");
        assert_eq!(after(&[(30, 20)]).overdue(&lease(0)), at(60), "what ends later anyway");
        assert_eq!(after(&[(70, 60)]).overdue(&lease(70)), at(100), "heard since: the deadline holds");
    }

    #[test]
    fn short_standstills_again_and_again_do_not_keep_a_silent_run_for_ever() {
        let mut grace = Grace::default();
        // Two seconds of every ten; the server looks at the run just before each of them.
        for ended in (10..1_000).step_by(10) {
            if grace.overdue(&lease(0)) <= at(ended - 2) {
                assert_eq!(ended, 70, "the run is overdue at 62, and the server looks then");
                return;
            }
            grace.add(Standstill { ended: at(ended), length: Span::from_secs(2) });
            assert_eq!(grace.0.len(), 1, "what has no effect any more is forgotten");
        }
        panic!("the run was never overdue");
    }

    #[test]
    fn a_short_standstill_does_not_cut_the_grace_of_a_long_one() {
        assert_eq!(after(&[(500, 450), (510, 2)]).overdue(&lease(0)), at(560));
        assert_eq!(after(&[(500, 20), (510, 450)]).overdue(&lease(0)), at(570));
    }
}
