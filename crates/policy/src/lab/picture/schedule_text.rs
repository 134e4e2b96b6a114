//! A schedule for the terminal.

use super::axis::{Axis, Tick};
use super::words::{findings, percent, short, timing};
use crate::lab::schedule::{Row, Schedule};

const RETRY: usize = 6;
/// The columns beside the plot, in the order in which a narrow terminal goes without them.
const COLUMNS: [(&str, usize); 3] = [("mean", 14), ("since start", 14), ("at once", 9)];
/// A plot that is narrower shows nothing, so that columns go first.
const NARROW_PLOT: usize = 24;
const NARROWEST: usize = 32;

/// The schedule as a bar chart of `width` columns: for each retry a bar from its shortest to its
/// longest delay, with the mean as a solid block and the cap as a dotted line.
#[must_use]
pub fn schedule_text(schedule: &Schedule, width: usize) -> String {
    let width = width.clamp(NARROWEST, 400);
    let beside = |columns: usize| -> usize { COLUMNS[..columns].iter().map(|(_, width)| width).sum() };
    let columns = (0..=COLUMNS.len()).rev().find(|n| RETRY + 2 + beside(*n) + NARROW_PLOT <= width).unwrap_or(0);
    let cells = width - RETRY - 2 - beside(columns);
    let mut lines = vec![timing(&schedule.backoff)];
    if !schedule.rows.is_empty() {
        lines.push(String::new());
        let heads: String = COLUMNS[..columns].iter().map(|(name, width)| format!("{name:>width$}")).collect();
        lines.push(format!("{:>RETRY$}  {:<cells$}{heads}", "retry", "delay"));
        let axis = axis(schedule, cells);
        let cap = schedule.backoff.cap.filter(|cap| cap.at.ms() <= axis.end());
        let cap = cap.map(|cap| cell(&axis, cap.at.ms(), cells));
        for row in &schedule.rows {
            let figures = [short(row.delay.mean), short(row.since_start.mean), share(row)];
            let beside = COLUMNS[..columns].iter().zip(figures);
            let beside: String = beside.map(|((_, width), figure)| format!("{figure:>width$}")).collect();
            lines.push(format!("{:>RETRY$}  {}{beside}", row.retry, bar(row, &axis, cap, cells)));
        }
        lines.extend(scale(&axis, cells));
    }
    lines.push(String::new());
    lines.extend(findings(schedule));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// From zero where the delays are alike; logarithmic where they span orders of magnitude.
fn axis(schedule: &Schedule, cells: usize) -> Axis {
    let longest = schedule.rows.iter().map(|row| row.delay.longest.ms()).fold(0.0, f64::max);
    let means = schedule.rows.iter().map(|row| row.delay.mean.ms()).filter(|ms| *ms > 0.0);
    let low = means.fold(f64::INFINITY, f64::min) / 2.0;
    if low.is_finite() && longest / low > 24.0 {
        Axis::logarithmic(low, longest, 0.0, cells as f64)
    } else {
        Axis::linear(longest, 0.0, cells as f64)
    }
}

fn cell(axis: &Axis, ms: f64, cells: usize) -> usize {
    (axis.at(ms) as usize).min(cells - 1)
}

fn share(row: &Row) -> String {
    if row.on_one_instant > 0.0 { percent(row.on_one_instant) } else { "–".to_owned() }
}

fn bar(row: &Row, axis: &Axis, cap: Option<usize>, cells: usize) -> String {
    let [from, mean, to] =
        [row.delay.shortest, row.delay.mean, row.delay.longest].map(|span| cell(axis, span.ms(), cells));
    let character = |place: usize| match place {
        _ if place == mean => '█',
        _ if (from..=to).contains(&place) => '▒',
        _ if cap == Some(place) => '┊',
        _ => ' ',
    };
    (0..cells).map(character).collect()
}

/// The axis line and its labels.
fn scale(axis: &Axis, cells: usize) -> [String; 2] {
    let (mut line, mut labels) = (vec!['─'; cells], vec![' '; cells]);
    let mut free_from = 0;
    for Tick { at, label } in axis.time_ticks(11.0) {
        let at = (at as usize).min(cells - 1);
        let length = label.chars().count();
        let start = at.saturating_sub(length / 2).min(cells.saturating_sub(length));
        if start < free_from {
            continue;
        }
        line[at] = '┴';
        for (place, character) in (start..cells).zip(label.chars()) {
            labels[place] = character;
        }
        free_from = start + length + 1;
    }
    [line, labels].map(|row| format!("{:>RETRY$}  {}", "", row.into_iter().collect::<String>()))
}
