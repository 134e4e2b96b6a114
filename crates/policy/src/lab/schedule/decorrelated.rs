//! The law of the decorrelated jitter, which depends on all the delays before it.
//!
//! The n-th delay is uniform from the initial delay to three times the one before, cut at a cap.
//! There is no closed form beyond the second retry, so the distribution itself is carried from one
//! retry to the next, on a grid of cells between the initial delay and the cap that widen by a
//! constant factor, beside the mass that sits on the cap. A cell keeps its mass and its mean, and
//! both are moved on exactly. That makes the mean exact as long as the cap is out of reach, and
//! leaves an error of the square of a cell's width (some 10⁻⁶ of the delay) where it is not. Cells
//! of equal mass would not do: the mean of a long chain rests on very rare, very long delays.

use super::uniform::{Uniform, cap_after};
use crate::{Backoff, Rounding};

const CELLS: usize = 2048;
/// Two distributions that differ by no more mass than this are one.
const SETTLED: f64 = 1e-12;

/// The distribution of the delay at one retry after another.
#[derive(Clone, Debug)]
pub(super) struct Decorrelated {
    low: f64,
    cap: f64,
    rounding: Rounding,
    /// The borders of the cells in milliseconds, from `low` to `cap`.
    edges: Vec<f64>,
    cells: Vec<Cell>,
    /// The mass on the cap.
    at_cap: f64,
    settled: bool,
}

/// A set of delays that are close to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    mass: f64,
    mean: f64,
}

impl Decorrelated {
    /// Before the first retry, where the initial delay stands for the previous one. `None` where
    /// nothing is left to chance: a cap at or below the initial delay, or no delay at all.
    pub(super) fn new(backoff: &Backoff) -> Option<Self> {
        let (low, cap) = (backoff.initial.ms(), cap_after(backoff).ms());
        if low <= 0.0 || cap <= low {
            return None;
        }
        let ratio = cap / low;
        let edges = (0..=CELLS).map(|k| if k == CELLS { cap } else { low * ratio.powf(k as f64 / CELLS as f64) });
        let cells = vec![Cell { mass: 1.0, mean: low }];
        Some(Self { low, cap, rounding: backoff.rounding, edges: edges.collect(), cells, at_cap: 0.0, settled: false })
    }

    /// The mean delay at this retry.
    pub(super) fn mean(&self) -> f64 {
        self.cells.iter().map(|cell| cell.mass * cell.mean).sum::<f64>() + self.at_cap * self.delay_at_cap()
    }

    /// The share of all jobs that the cap gives one single delay.
    pub(super) fn at_cap(&self) -> f64 {
        self.at_cap
    }

    /// True where the distribution does not change any more.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Moves on to the next retry.
    pub(super) fn advance(&mut self) {
        if self.settled {
            return;
        }
        // From the longest previous delay down, so that small masses are added before large ones.
        let previous = std::iter::once(Cell { mass: self.at_cap, mean: self.delay_at_cap() })
            .chain(self.cells.iter().rev().copied())
            .filter(|cell| cell.mass > 0.0);
        let mut next = Spread::new(self);
        for cell in previous {
            next.add(cell);
        }
        let (cells, at_cap) = next.finish();
        let moved: f64 = if cells.len() == self.cells.len() {
            cells.iter().zip(&self.cells).map(|(a, b)| (a.mass - b.mass).abs()).sum()
        } else {
            f64::INFINITY
        };
        self.settled = moved + (at_cap - self.at_cap).abs() <= SETTLED;
        (self.cells, self.at_cap) = (cells, at_cap);
    }

    fn delay_at_cap(&self) -> f64 {
        if self.rounding == Rounding::FloorMs { self.cap.floor() } else { self.cap }
    }
}

/// The next distribution in the making: the uniform pieces of all previous delays, longest first,
/// laid over the cells from the top one down.
struct Spread<'a> {
    distribution: &'a Decorrelated,
    cells: Vec<Cell>,
    at_cap: f64,
    /// The cell that is being filled, and how far down: from its upper border to here.
    cell: usize,
    filled_to: f64,
    /// The mass per millisecond of all pieces that reach up to `filled_to`.
    density: f64,
}

impl<'a> Spread<'a> {
    fn new(distribution: &'a Decorrelated) -> Self {
        let cells = distribution.edges[..CELLS].iter().map(|edge| Cell { mass: 0.0, mean: *edge }).collect();
        Self { distribution, cells, at_cap: 0.0, cell: CELLS - 1, filled_to: distribution.cap, density: 0.0 }
    }

    /// Adds the piece that a previous delay gives: uniform from `low` to three times that delay.
    fn add(&mut self, previous: Cell) {
        let high = 3.0 * previous.mean;
        let width = high - self.distribution.low;
        if width <= 0.0 {
            // Only a delay that was cut to zero leads here, and it stays zero.
            self.pour(0, previous.mass, self.distribution.low, self.distribution.low);
            return;
        }
        if high > self.distribution.cap {
            self.at_cap += previous.mass * (high - self.distribution.cap) / width;
        } else {
            self.fill_down_to(high);
        }
        self.density += previous.mass / width;
    }

    /// Lays the pieces so far over everything down to `ms`.
    fn fill_down_to(&mut self, ms: f64) {
        while self.filled_to > ms {
            let bottom = self.distribution.edges[self.cell].max(ms);
            self.pour(self.cell, self.density * (self.filled_to - bottom), bottom, self.filled_to);
            self.filled_to = bottom;
            if bottom <= self.distribution.edges[self.cell] {
                if self.cell == 0 {
                    return;
                }
                self.cell -= 1;
            }
        }
    }

    fn pour(&mut self, cell: usize, mass: f64, from: f64, to: f64) {
        if mass <= 0.0 {
            return;
        }
        let piece =
            Uniform { low: from, width: to - from, cap: self.distribution.cap, rounding: self.distribution.rounding };
        let cell = &mut self.cells[cell];
        let all = cell.mass + mass;
        cell.mean += (piece.mean() - cell.mean) * (mass / all);
        cell.mass = all;
    }

    fn finish(mut self) -> (Vec<Cell>, f64) {
        self.fill_down_to(self.distribution.low);
        (self.cells, self.at_cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cap, CapPlace, Draw, Entropy, Jitter, Seeded, Span};

    fn backoff(initial_ms: f64, cap_ms: Option<f64>) -> Backoff {
        let cap = cap_ms.map(|at| Cap { at: Span::saturating_ms(at), place: CapPlace::AfterJitter });
        Backoff { cap, jitter: Jitter::Decorrelated, ..Backoff::fixed(Span::saturating_ms(initial_ms)) }
    }

    #[test]
    fn without_a_cap_the_mean_follows_its_recurrence() {
        let mut distribution = Decorrelated::new(&backoff(1000.0, None)).unwrap();
        let mut exact = 1000.0;
        // 3^22 s is still below the longest span there is.
        for retry in 1..=22 {
            distribution.advance();
            exact = (1000.0 + 3.0 * exact) / 2.0;
            let mean = distribution.mean();
            assert!((mean / exact - 1.0).abs() < 1e-9, "retry {retry}: {mean} is not {exact}");
        }
    }

    /// The second retry by hand: the previous delay is uniform from 1 s to 3 s, so the mean is an
    /// integral over it, and so is the mass on a cap of 4 s.
    #[test]
    fn the_second_retry_agrees_with_its_integral() {
        let mut distribution = Decorrelated::new(&backoff(1000.0, Some(4000.0))).unwrap();
        distribution.advance();
        assert!((distribution.mean() - 2000.0).abs() < 1e-9);
        distribution.advance();
        const STEPS: u32 = 200_000;
        let (mut mean, mut at_cap) = (0.0, 0.0);
        for k in 0..STEPS {
            let high = 3.0 * (1000.0 + 2000.0 * (f64::from(k) + 0.5) / f64::from(STEPS));
            let above = (1.0 - 3000.0 / (high - 1000.0)).max(0.0);
            let below_mean = f64::midpoint(1000.0, f64::min(high, 4000.0));
            mean += (above * 4000.0 + (1.0 - above) * below_mean) / f64::from(STEPS);
            at_cap += above / f64::from(STEPS);
        }
        assert!((distribution.mean() / mean - 1.0).abs() < 1e-6, "{} is not {mean}", distribution.mean());
        assert!((distribution.at_cap() - at_cap).abs() < 1e-6, "{} is not {at_cap}", distribution.at_cap());
    }

    #[test]
    fn later_retries_agree_with_a_large_sample() {
        const JOBS: u32 = 200_000;
        for (initial, cap, rounding) in [
            (1000.0, Some(60_000.0), Rounding::Exact),
            (3.7, Some(50.5), Rounding::FloorMs),
            (0.4, None, Rounding::FloorMs),
        ] {
            let backoff = Backoff { rounding, ..backoff(initial, cap) };
            let mut distribution = Decorrelated::new(&backoff).unwrap();
            let mut entropy = Seeded::new(41);
            let mut previous: Vec<Option<Span>> = vec![None; JOBS as usize];
            for retry in 1..=8 {
                distribution.advance();
                let (mut sum, mut squares, mut capped) = (0.0, 0.0, 0_u32);
                for previous in &mut previous {
                    let draw: Draw = entropy.draw();
                    let delay = backoff.delay(retry, *previous, draw);
                    *previous = Some(delay.delay);
                    sum += delay.delay.ms();
                    squares += delay.delay.ms().powi(2);
                    capped += u32::from(delay.capped_at.is_some());
                }
                let jobs = f64::from(JOBS);
                let (mean, share) = (sum / jobs, f64::from(capped) / jobs);
                let mean_sd = ((squares / jobs - mean * mean) / jobs).sqrt();
                let share_sd = (share * (1.0 - share) / jobs).sqrt();
                let found = distribution.mean();
                assert!((found - mean).abs() <= 5.0 * mean_sd + 1e-6 * mean, "retry {retry}: {found}, sample {mean}");
                let found = distribution.at_cap();
                assert!((found - share).abs() <= 5.0 * share_sd + 1e-6, "retry {retry}: {found}, sample {share}");
            }
        }
    }

    #[test]
    fn the_distribution_settles_even_over_the_widest_range() {
        for (initial, cap) in [(1e-6, None), (1.0, None), (1000.0, Some(1001.0)), (1000.0, Some(300_000.0))] {
            let mut distribution = Decorrelated::new(&backoff(initial, cap)).unwrap();
            let rows = (1..=5_000).find(|_| {
                distribution.advance();
                distribution.is_settled()
            });
            assert!(rows.is_some(), "initial {initial} ms, cap {cap:?} ms");
            let all: f64 = distribution.cells.iter().map(|cell| cell.mass).sum::<f64>() + distribution.at_cap;
            assert!((all - 1.0).abs() < 1e-9, "{all}");
        }
    }
}
