//! From one retry to the next, adding up.

use super::decorrelated::Decorrelated;
use super::uniform::{Uniform, is_steady};
use super::{ElapsedLimit, End, MOST_ROWS, Row, Track};
use crate::{Backoff, Draw, Jitter, Span};

/// The walk along the retries of one backoff.
pub(super) struct Walk<'a> {
    backoff: &'a Backoff,
    retries: Option<u32>,
    chain: Option<Decorrelated>,
    /// The last row; before the first retry, an empty one with the number 0.
    row: Row,
    /// True where every later row has the delay of the last one.
    steady: bool,
    elapsed_limit: Option<ElapsedLimit>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(backoff: &'a Backoff, retries: Option<u32>, max_elapsed: Option<Span>) -> Self {
        let chain = if backoff.jitter == Jitter::Decorrelated { Decorrelated::new(backoff) } else { None };
        let none = Track::default();
        let row = Row { retry: 0, delay: none, since_start: none, capped: false, on_one_instant: 0.0 };
        let elapsed_limit = max_elapsed.map(|limit| ElapsedLimit { limit, shortest: None, mean: None, longest: None });
        Self { backoff, retries, chain, row, steady: false, elapsed_limit }
    }

    pub(super) fn since_start(&self) -> Track {
        self.row.since_start
    }

    pub(super) fn elapsed_limit(&self) -> Option<ElapsedLimit> {
        self.elapsed_limit
    }

    /// The next retry.
    pub(super) fn advance(&mut self) -> Row {
        let before = self.row.since_start;
        self.row.retry += 1;
        if !self.steady {
            self.compute();
        }
        self.row.since_start = before.plus(self.row.delay);
        let (retry, delay) = (self.row.retry, self.row.delay);
        self.note_ends(
            |limit, start, step| (start.plus(step) >= limit).then_some(End { retry, at: start }),
            before,
            delay,
        );
        self.row
    }

    /// Walks to the end, in one stride once the delays rest; false where [`MOST_ROWS`] came first.
    pub(super) fn finish(&mut self) -> bool {
        while !self.is_finished() && !self.steady {
            if self.row.retry >= MOST_ROWS {
                return false;
            }
            self.advance();
        }
        if self.is_finished() {
            return true;
        }
        let (done, last, delay, start) =
            (self.row.retry, self.retries.unwrap_or(u32::MAX), self.row.delay, self.row.since_start);
        self.row.since_start = start.plus(delay.times(last - done));
        self.note_ends(|limit, start, step| end_at_rest(limit, start, step, done, last), start, delay);
        true
    }

    /// True where nothing that is still unknown lies ahead.
    fn is_finished(&self) -> bool {
        match (self.retries, self.elapsed_limit) {
            (Some(retries), _) => self.row.retry >= retries,
            (None, None) => true,
            (None, Some(ends)) => ends.shortest.is_some() && ends.mean.is_some() && ends.longest.is_some(),
        }
    }

    fn compute(&mut self) {
        let retry = self.row.retry;
        // The bounds of decorrelated jitter feed on the bounds before, as in `Bounds`.
        let previous = |span| (retry > 1).then_some(span);
        let low = self.backoff.delay(retry, previous(self.row.delay.shortest), Draw::LOWEST);
        let high = self.backoff.delay(retry, previous(self.row.delay.longest), Draw::SUPREMUM);
        let settled = (low.delay, high.delay) == (self.row.delay.shortest, self.row.delay.longest);
        let (mean, at_cap, steady) = match (Uniform::of(self.backoff, retry), &mut self.chain) {
            (Some(distribution), _) => (distribution.mean(), distribution.at_cap(), is_steady(self.backoff, retry)),
            (None, Some(chain)) => {
                chain.advance();
                (chain.mean(), chain.at_cap(), settled && chain.is_settled())
            }
            // Decorrelated with nothing left to chance.
            (None, None) => (high.delay.ms(), 1.0, settled),
        };
        // Rounding must not carry the mean over a bound that it is equal to.
        let mean = Span::saturating_ms(mean.min(high.delay.ms()).max(low.delay.ms()));
        self.row.delay = Track { shortest: low.delay, mean, longest: high.delay };
        self.row.capped = high.capped_at.is_some();
        self.row.on_one_instant = if low.delay == high.delay { 1.0 } else { at_cap };
        self.steady = steady;
    }

    /// Takes note of the ends that `find` sees, for each track that has none yet, from the limit,
    /// the time so far and the delay.
    fn note_ends(&mut self, find: impl Fn(Span, Span, Span) -> Option<End>, start: Track, delay: Track) {
        let Some(ends) = &mut self.elapsed_limit else { return };
        let limit = ends.limit;
        ends.shortest = ends.shortest.or_else(|| find(limit, start.shortest, delay.shortest));
        ends.mean = ends.mean.or_else(|| find(limit, start.mean, delay.mean));
        ends.longest = ends.longest.or_else(|| find(limit, start.longest, delay.longest));
    }
}

/// The end of a job that has waited for `start` after `done` retries and waits for `step` before
/// each of those that follow, up to the retry `last`.
fn end_at_rest(limit: Span, start: Span, step: Span, done: u32, last: u32) -> Option<End> {
    if step.is_zero() {
        return None;
    }
    let more = ((limit.ms() - start.ms()) / step.ms()).ceil().max(1.0);
    let retry = f64::from(done) + more;
    (retry <= f64::from(last)).then(|| End { retry: retry as u32, at: start.plus(step.times(more - 1.0)) })
}
