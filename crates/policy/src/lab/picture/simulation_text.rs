//! A simulation for the terminal.

use super::Candidate;
use super::axis::Axis;
use super::frame::Frame;
use super::words::{count, scenario_sentence, short, summary, verdict};
use crate::Span;
use crate::lab::simulate::{Outcome, Scenario};

const ROWS: usize = 6;
/// The column of the labels on the left.
const LABEL: usize = 11;
const NARROWEST: usize = 40;
/// A cell filled from below, by eighths.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The outcomes of one scenario under several policies, as column charts of `width` columns on the
/// same axes: the busiest second in each column.
#[must_use]
pub fn simulation_text(scenario: &Scenario, candidates: &[Candidate<'_>], width: usize) -> String {
    let cells = width.clamp(NARROWEST, 400) - LABEL - 2;
    let frame = Frame::of(scenario, candidates);
    let eighths = (ROWS * 8) as f64;
    let chart = Chart {
        time: Axis::linear(frame.end_ms, 0.0, cells as f64),
        rate: match frame.logarithmic {
            true => Axis::logarithmic(0.5, frame.highest, 0.0, eighths),
            false => Axis::linear(frame.highest, 0.0, eighths),
        },
        cells,
        highest: frame.highest as u64,
        scenario,
    };
    let scale = if frame.logarithmic { ", on a logarithmic scale" } else { "" };
    let mut text = format!(
        "{} jobs meet an outage of {}\n{}\nEach column is its busiest second, in attempts{scale}.\n",
        count(scenario.jobs.into()),
        short(scenario.outage),
        scenario_sentence(scenario)
    );
    for candidate in candidates {
        let (said, _) = verdict(scenario, candidate.outcome);
        text.push_str(&format!("\n{}: {said}\n{}\n", plain(candidate.name), summary(scenario, candidate.outcome)));
        for line in chart.of(candidate.outcome) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// A name without characters that would command the terminal.
fn plain(name: &str) -> String {
    name.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// What all charts share.
struct Chart<'a> {
    time: Axis,
    /// Attempts per second into eighths of a row.
    rate: Axis,
    cells: usize,
    highest: u64,
    scenario: &'a Scenario,
}

impl Chart<'_> {
    fn of(&self, outcome: &Outcome) -> Vec<String> {
        let heights: Vec<usize> = self.columns(outcome).into_iter().map(|peak| self.eighths(peak)).collect();
        let capacity = self.scenario.capacity_per_s.map(|capacity| (self.eighths(capacity) / 8).min(ROWS - 1));
        let outage_end = (self.time.at(self.scenario.outage.ms()) as usize).min(self.cells);
        let row = |row: usize| {
            let label = match row {
                _ if row == ROWS - 1 => format!("{}/s", count(self.highest)),
                _ if Some(row) == capacity => "capacity".to_owned(),
                _ => String::new(),
            };
            let cell = |place: usize| match heights[place].saturating_sub(row * 8).min(8) {
                0 if Some(row) == capacity && place >= outage_end => '┈',
                filled => EIGHTHS[filled],
            };
            format!("{label:>LABEL$} │{}", (0..self.cells).map(cell).collect::<String>())
        };
        let mut lines: Vec<String> = (0..ROWS).rev().map(row).collect();
        let ground: String = (0..self.cells).map(|place| if place < outage_end { '━' } else { '─' }).collect();
        lines.push(format!("{:>LABEL$} └{ground}", if outage_end > 0 { "outage ━" } else { "" }));
        lines.push(format!("{:>LABEL$}  {}", "", self.times(outage_end)));
        lines
    }

    /// The highest peak in each column.
    fn columns(&self, outcome: &Outcome) -> Vec<u32> {
        let mut columns = vec![0; self.cells];
        let bin = outcome.series.bin.ms();
        for (index, peak) in outcome.series.peak_per_s.iter().enumerate() {
            let from = (self.time.at(index as f64 * bin) as usize).min(self.cells - 1);
            let to = (self.time.at((index as f64 + 1.0) * bin).ceil() as usize).clamp(from + 1, self.cells);
            for column in &mut columns[from..to] {
                *column = (*column).max(*peak);
            }
        }
        columns
    }

    /// At least one eighth for whatever is not nothing.
    fn eighths(&self, per_s: u32) -> usize {
        if per_s == 0 { 0 } else { (self.rate.at(f64::from(per_s)).round() as usize).max(1) }
    }

    /// Zero, the end of the outage, and the end of the chart.
    fn times(&self, outage_end: usize) -> String {
        let mut line = vec![' '; self.cells];
        let mut put = |at: usize, label: &str| {
            let length = label.chars().count();
            let start = at.min(self.cells.saturating_sub(length));
            let room = start.saturating_sub(1)..(start + length + 1).min(self.cells);
            if line[room].iter().all(|character| *character == ' ') {
                for (place, character) in (start..self.cells).zip(label.chars()) {
                    line[place] = character;
                }
            }
        };
        put(0, "0");
        if outage_end > 0 {
            put(outage_end, &short(self.scenario.outage));
        }
        put(self.cells, &short(Span::saturating_ms(self.time.end())));
        line.into_iter().collect()
    }
}
