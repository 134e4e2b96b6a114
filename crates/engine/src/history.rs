//! How many jobs were enqueued, completed and failed in the last hours and days, and how long they waited for a worker:
//! by queue and minute, and after a day by hour. It is in memory, of this process, and bounded.

use crate::Engine;
use redrive_policy::{Moment, Span};
use redrive_store::{EventKind, Transition};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MINUTE_US: i64 = 60_000_000;
const MINUTES_OF_HOUR: i64 = 60;
/// For how long there are minutes, and for how long hours: those of a day, and of thirty days.
const MINUTES_STORED: i64 = 24 * MINUTES_OF_HOUR;
const HOURS_STORED: i64 = 30 * 24;
/// How many queues are told apart within a minute. What happens in others is counted together.
const MOST_QUEUES: usize = 500;
/// How many minutes of queues are stored, and how many hours. The oldest leave first.
const MOST_MINUTES: usize = 20_000;
const MOST_HOURS: usize = 10_000;
/// Waits are told apart by a fifth of their length: four steps for each doubling, from a millisecond to some hours.
const STEPS: usize = 96;

/// What happened within a time.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counted {
    /// Jobs that were enqueued.
    pub enqueued: u64,
    /// Runs that succeeded.
    pub completed: u64,
    /// Runs that failed.
    pub failed: u64,
    waits: Waits,
}

impl Counted {
    /// The time for which this share of the jobs that were claimed had waited at most, such as 0.99; `None` where none
    /// was claimed. It is a fifth too long at most.
    #[must_use]
    pub fn waited(&self, share: f64) -> Option<Span> {
        self.waits.quantile(share)
    }

    fn add(&mut self, other: &Self) {
        self.enqueued += other.enqueued;
        self.completed += other.completed;
        self.failed += other.failed;
        self.waits.add(&other.waits);
    }

    fn count(&mut self, transition: &Transition) {
        match transition.event {
            EventKind::Enqueued => self.enqueued += 1,
            EventKind::Completed => self.completed += 1,
            EventKind::RetryScheduled | EventKind::Discarded => self.failed += 1,
            EventKind::Claimed => {
                if let Some(wait) = transition.wait_time() {
                    self.waits.count(wait);
                }
            }
            _ => {}
        }
    }
}

/// How many jobs waited for how long.
#[derive(Clone, Debug, Default, PartialEq)]
struct Waits(Vec<u32>);

impl Waits {
    fn count(&mut self, wait: Span) {
        let step = if wait.ms() < 1.0 { 0.0 } else { (4.0 * wait.ms().log2()).floor() + 1.0 };
        let step = (step as usize).min(STEPS - 1);
        if self.0.len() <= step {
            self.0.resize(step + 1, 0);
        }
        self.0[step] = self.0[step].saturating_add(1);
    }

    fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
    }

    fn quantile(&self, share: f64) -> Option<Span> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let wanted = ((all as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let step = self.0.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        });
        step.map(|step| Span::saturating_ms((step as f64 / 4.0).exp2()))
    }
}

/// What is stored.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Kept>);

type Slots = BTreeMap<(i64, Arc<str>), Counted>;

#[derive(Debug, Default)]
struct Kept {
    /// The minute that is being counted, and what has happened in it by queue.
    minute: i64,
    open: HashMap<Arc<str>, Counted>,
    minutes: Slots,
    hours: Slots,
    /// Minutes and hours up to these were dropped, though they are not old: there were too many.
    dropped_minutes: Option<i64>,
    dropped_hours: Option<i64>,
}

impl Kept {
    /// Ends the minute that was counted.
    fn close(&mut self, next: i64) {
        for (queue, counted) in self.open.drain() {
            let hour = self.minute.div_euclid(MINUTES_OF_HOUR);
            self.hours.entry((hour, Arc::clone(&queue))).or_default().add(&counted);
            self.minutes.entry((self.minute, queue)).or_default().add(&counted);
        }
        self.minute = next;
        let hour = next.div_euclid(MINUTES_OF_HOUR);
        trim(&mut self.minutes, next - MINUTES_STORED, MOST_MINUTES, &mut self.dropped_minutes);
        trim(&mut self.hours, hour - HOURS_STORED, MOST_HOURS, &mut self.dropped_hours);
    }
}

/// Drops what is old, and what is too much.
fn trim(slots: &mut Slots, oldest: i64, most: usize, dropped: &mut Option<i64>) {
    while let Some(first) = slots.first_entry() {
        let slot = first.key().0;
        if slot > oldest && slots.len() <= most {
            break;
        }
        if slot > oldest {
            *dropped = Some(dropped.map_or(slot, |before| before.max(slot)));
        }
        slots.pop_first();
    }
}

impl History {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what happened. The wall clock is ahead of the times of events by so much.
    pub(crate) fn count<'a>(&self, transitions: impl Iterator<Item = &'a Transition>, ahead_us: i64) {
        let mut kept = self.kept();
        for transition in transitions {
            let minute = transition.at.micros().saturating_add(ahead_us).div_euclid(MINUTE_US);
            if minute != kept.minute {
                kept.close(minute);
            }
            let queue = &transition.job.spec.queue;
            match kept.open.get_mut(queue) {
                Some(counted) => counted.count(transition),
                None => {
                    let name = if kept.open.len() < MOST_QUEUES { Arc::clone(queue) } else { Arc::from("") };
                    kept.open.entry(name).or_default().count(transition);
                }
            }
        }
    }
}

/// How long each part of a history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// So many minutes; at most an hour.
    Minutes(i64),
    /// So many hours.
    Hours(i64),
}

/// A history: what happened in each part of a time.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HistoryOf {
    /// From when on everything was counted; nothing before is known.
    pub since: Moment,
    /// The parts, oldest first, each with the time at which it begins. Nothing is left out.
    pub parts: Vec<(Moment, Counted)>,
}

impl Engine {
    /// What happened from one time to another, of one queue or of all, as far as this process knows it. Times are those
    /// of the wall clock; parts begin at whole multiples of the period, and there are at most `most`.
    #[must_use]
    pub fn history(
        &self,
        queue: Option<&str>,
        (since, until): (Moment, Moment),
        period: Period,
        most: usize,
    ) -> HistoryOf {
        let kept = self.history.kept();
        let begun = self.shown(self.begun);
        let (slots, unit_us, of_part, oldest, dropped) = match period {
            Period::Minutes(minutes) => {
                (&kept.minutes, MINUTE_US, minutes, kept.minute - MINUTES_STORED + 1, kept.dropped_minutes)
            }
            Period::Hours(hours) => {
                let oldest = kept.minute.div_euclid(MINUTES_OF_HOUR) - HOURS_STORED + 1;
                (&kept.hours, MINUTE_US * MINUTES_OF_HOUR, hours, oldest, kept.dropped_hours)
            }
        };
        let known = begun.max(start_of(oldest.max(dropped.map_or(i64::MIN, |slot| slot + 1)), unit_us));
        let part_us = unit_us.saturating_mul(of_part.max(1));
        let part = |at: Moment| at.micros().div_euclid(part_us);
        let (first, last) = (part(since.max(known)), part(until));
        let mut parts: BTreeMap<i64, Counted> =
            (first..=last).take(most).map(|part| (part, Counted::default())).collect();
        let mut add = |slot: i64, name: &Arc<str>, counted: &Counted| {
            let part = slot.saturating_mul(unit_us).div_euclid(part_us);
            if let Some(sum) = parts.get_mut(&part).filter(|_| queue.is_none_or(|queue| **name == *queue)) {
                sum.add(counted);
            }
        };
        slots.iter().for_each(|((slot, name), counted)| add(*slot, name, counted));
        let open = kept.minute.saturating_mul(MINUTE_US).div_euclid(unit_us);
        kept.open.iter().for_each(|(name, counted)| add(open, name, counted));
        let parts = parts.into_iter().map(|(part, counted)| (start_of(part, part_us), counted)).collect();
        HistoryOf { since: known, parts }
    }

    /// What happened in a queue within the last minutes, this one included.
    #[must_use]
    pub fn lately(&self, queue: &str, minutes: i64) -> Counted {
        let kept = self.history.kept();
        let now = self.now().micros().div_euclid(MINUTE_US);
        let first = now - minutes + 1;
        let mut sum = Counted::default();
        let recent = kept.minutes.range((first, Arc::from(""))..).filter(|((_, name), _)| **name == *queue);
        recent.for_each(|(_, counted)| sum.add(counted));
        if let Some(counted) = kept.open.get(queue).filter(|_| kept.minute >= first) {
            sum.add(counted);
        }
        sum
    }
}

fn start_of(slot: i64, unit_us: i64) -> Moment {
    Moment::from_micros(slot.saturating_mul(unit_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_apart_by_a_fifth_and_never_told_too_short() {
        for ms in [0.2, 1.0, 3.0, 17.5, 250.0, 99_999.0] {
            let mut waits = Waits::default();
            waits.count(Span::saturating_ms(ms));
            let told = waits.quantile(0.5).unwrap().ms();
            assert!(told >= ms && (told <= ms * 1.2 || told <= 1.0), "{ms} is told as {told}");
        }
        let mut waits = Waits::default();
        assert_eq!(waits.quantile(0.5), None);
        (0..99).for_each(|_| waits.count(Span::from_millis(10)));
        waits.count(Span::from_secs(60));
        assert!(waits.quantile(0.99).unwrap() < Span::from_millis(13));
        assert!(waits.quantile(1.0).unwrap() >= Span::from_secs(60));
        waits.count(Span::MAX);
        assert!(waits.0.len() <= STEPS);
    }

    #[test]
    fn what_is_old_or_too_much_leaves_and_what_left_too_early_is_remembered() {
        let slot = |slot: i64| ((slot, Arc::from("q")), Counted::default());
        let mut slots: Slots = (0..10).map(slot).collect();
        let mut dropped = None;
        trim(&mut slots, 3, 100, &mut dropped);
        assert_eq!((slots.len(), dropped), (6, None), "only old ones");
        trim(&mut slots, 3, 2, &mut dropped);
        assert_eq!((slots.len(), dropped), (2, Some(7)));
    }
}
