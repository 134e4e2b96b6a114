//! When runs of a group started: what a window needs, in bounded space.

use crate::codec::{Decoder, Encode, Malformed, Unreadable};
use redrive_policy::{Moment, Span};

/// How many entries are stored at most. Beyond that, starts that are close to each other become one entry at the time
/// of the latest, so that a start is forgotten late, and never early.
const MOST: usize = 128;

/// The starts of a group, the oldest first, as far as they matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Starts {
    entries: Vec<(Moment, u32)>,
    /// For how long a start matters: the longest of all bounds that asked.
    memory: Span,
}

impl Starts {
    pub(crate) const EMPTY: Self = Self { entries: Vec::new(), memory: Span::ZERO };

    /// A run starts.
    pub(crate) fn push(&mut self, now: Moment, memory: Span) {
        if memory > self.memory {
            self.memory = memory;
        }
        self.forget(now);
        // Clocks of nodes may differ by a little: the order stays.
        let now = self.last().map_or(now, |last| last.max(now));
        match self.entries.last_mut() {
            Some((at, count)) if *at == now => *count = count.saturating_add(1),
            _ => self.entries.push((now, 1)),
        }
        if self.entries.len() > MOST {
            self.merge();
        }
    }

    /// How many runs started within this time.
    pub(crate) fn within(&self, period: Span, now: Moment) -> u64 {
        let first = self.entries.partition_point(|(at, _)| at.after(period) <= now);
        self.entries[first..].iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// When fewer than `limit` runs will have started within this time, if none starts until then.
    pub(crate) fn below(&self, limit: u32, period: Span, now: Moment) -> Moment {
        let mut count = self.within(period, now);
        let first = self.entries.partition_point(|(at, _)| at.after(period) <= now);
        for (at, starts) in &self.entries[first..] {
            if count < u64::from(limit) {
                break;
            }
            count -= u64::from(*starts);
            if count < u64::from(limit) {
                return at.after(period);
            }
        }
        now
    }

    /// The last start.
    pub(crate) fn last(&self) -> Option<Moment> {
        self.entries.last().map(|(at, _)| *at)
    }

    /// When none of them matters any more; `None` where none does.
    pub(crate) fn over(&self) -> Option<Moment> {
        self.last().map(|last| last.after(self.memory))
    }

    fn forget(&mut self, now: Moment) {
        let over = self.entries.partition_point(|(at, _)| at.after(self.memory) <= now);
        self.entries.drain(..over);
    }

    /// Merges entries of one slice of time. Slices are powers of two long, so that those of a later merge contain them.
    fn merge(&mut self) {
        let (Some((first, _)), Some((last, _))) = (self.entries.first(), self.entries.last()) else { return };
        let long = last.micros().saturating_sub(first.micros()).max(1) as u64;
        let slice = (long / (MOST as u64 / 2)).max(1).next_power_of_two() as i64;
        let mut merged: Vec<(Moment, u32)> = Vec::with_capacity(MOST);
        for (at, count) in self.entries.drain(..) {
            match merged.last_mut() {
                Some((latest, sum)) if latest.micros().div_euclid(slice) == at.micros().div_euclid(slice) => {
                    *latest = at;
                    *sum = sum.saturating_add(count);
                }
                _ => merged.push((at, count)),
            }
        }
        self.entries = merged;
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.span(self.memory);
        out.count(self.entries.len() as u64);
        let mut before = Moment::ORIGIN;
        for (place, (at, count)) in self.entries.iter().enumerate() {
            if place == 0 {
                out.moment(*at);
            } else {
                out.count(at.micros().saturating_sub(before.micros()).max(0) as u64);
            }
            out.count(u64::from(*count));
            before = *at;
        }
    }

    pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        let memory = from.span()?;
        let length = from.count()?;
        if length > MOST as u64 {
            return Err(Malformed("a list of starts is too long"));
        }
        let mut entries: Vec<(Moment, u32)> = Vec::new();
        for _ in 0..length {
            let at = match entries.last() {
                None => from.moment()?,
                Some((before, _)) => {
                    let later = i64::try_from(from.count()?).ok().and_then(|us| before.micros().checked_add(us));
                    Moment::from_micros(later.ok_or(Malformed("a start is too late"))?)
                }
            };
            entries.push((at, from.small()?));
        }
        Ok(Self { entries, memory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Moment {
        Moment::from_micros(ms * 1_000)
    }

    #[test]
    fn a_start_counts_for_one_period() {
        let mut starts = Starts::default();
        let second = Span::from_secs(1);
        for ms in [0, 0, 400] {
            starts.push(at(ms), second);
        }
        assert_eq!([at(400), at(999), at(1_000), at(1_400)].map(|now| starts.within(second, now)), [3, 3, 1, 0]);
        assert_eq!(starts.below(3, second, at(400)), at(1_000));
        assert_eq!(starts.below(1, second, at(400)), at(1_400));
        assert_eq!(starts.below(4, second, at(400)), at(400));
        assert_eq!(starts.over(), Some(at(1_400)));
    }

    #[test]
    fn many_starts_take_bounded_space_and_are_never_forgotten_early() {
        let minute = Span::from_secs(60);
        let mut starts = Starts::default();
        let mut all: Vec<i64> = Vec::new();
        for ms in (0..180_000).step_by(7) {
            starts.push(at(ms), minute);
            all.push(ms);
            assert!(starts.entries.len() <= MOST);
            if ms % 1_001 == 0 {
                let exact = all.iter().filter(|start| **start + 60_000 > ms).count() as u64;
                let within = starts.within(minute, at(ms));
                assert!(within >= exact, "{within} of {exact} at {ms} ms");
                // Late by two slices at most, each a thirty-second of the period.
                assert!(within <= exact + exact / 8 + 2, "{within} for {exact} at {ms} ms");
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut starts = Starts::default();
        for ms in [5, 5, 9, 1_000] {
            starts.push(at(ms), Span::from_secs(9));
        }
        let mut bytes = Vec::new();
        starts.encode(&mut bytes);
        let mut from = Decoder::new(&bytes);
        assert_eq!(Starts::decode(&mut from).unwrap(), starts);
        assert!(from.is_empty());
    }
}
