//! Whether the limits of a group allow another run.

use super::{Bounds, Starts};
use redrive_policy::Moment;

/// Whether another run of a group may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It may.
    Open,
    /// Too many are active: not before one of them ends.
    Busy,
    /// Too many have started: not before this time.
    Until(Moment),
}

/// Whether another run may start at `now` in a group in which so many jobs are active.
pub(crate) fn room(bounds: &Bounds, active: usize, starts: &Starts, now: Moment) -> Room {
    if bounds.concurrency.is_some_and(|most| active >= most as usize) {
        return Room::Busy;
    }
    let rate = bounds.rate.map(|rate| starts.below(rate.limit, rate.period, now));
    let throttle = bounds.throttle.and_then(|throttle| Some(starts.last()?.after(throttle.interval())));
    match rate.into_iter().chain(throttle).max() {
        Some(opens) if opens > now => Room::Until(opens),
        _ => Room::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rate;
    use super::*;
    use redrive_policy::Span;

    fn at(ms: i64) -> Moment {
        Moment::from_micros(ms * 1_000)
    }

    #[test]
    fn every_bound_has_to_allow_a_run() {
        let second = Span::from_secs(1);
        let mut starts = Starts::default();
        starts.push(at(0), second);
        let bounds = Bounds {
            concurrency: Some(2),
            rate: Some(Rate { limit: 2, period: second }),
            throttle: Some(Rate { limit: 4, period: second }),
        };
        assert_eq!(room(&bounds, 2, &starts, at(500)), Room::Busy);
        assert_eq!(room(&bounds, 1, &starts, at(100)), Room::Until(at(250)));
        assert_eq!(room(&bounds, 1, &starts, at(250)), Room::Open);
        starts.push(at(250), second);
        assert_eq!(room(&bounds, 0, &starts, at(600)), Room::Until(at(1_000)));
        assert_eq!(room(&Bounds { concurrency: Some(0), ..Bounds::default() }, 0, &starts, at(600)), Room::Busy);
    }
}
