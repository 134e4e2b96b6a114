//! Attempts on a line of time, for the terminal.

use super::super::axis::Axis;
use super::super::words::short;
use super::{Attempts, End, Retry};
use crate::Span;

const NARROWEST: usize = 40;
const WIDEST: usize = 100;

/// The retries below each other, on the same line of time of at most `width` columns.
#[must_use]
pub fn attempts_text(chart: &Attempts, width: usize) -> String {
    let width = width.clamp(NARROWEST, WIDEST);
    let mut out = format!("{}\n{}\n", chart.title, chart.subtitle);
    let (retries, omitted) = chart.drawn();
    if omitted > 0 {
        out.push_str(&format!("\n{omitted} earlier retries are not shown\n"));
    }
    let end = chart.end_ms();
    // One cell more than the last moment: what ends there has a mark.
    let axis = Axis::linear(end, 0.0, (width - 1) as f64);
    for retry in retries {
        out.push_str(&format!("\n{}: {}\n", retry.name, retry.state));
        out.push_str(&format!("{}\n", line(chart, retry, &axis, width).trim_end()));
        let label = short(Span::saturating_ms(end));
        out.push_str(&format!("0{label:>pad$}\n", pad = width - 1));
        list(&mut out, retry);
    }
    out
}

/// `█` an attempt, `✗` and `✓` how it ended, `─` a wait, `▶` what is next.
fn line(chart: &Attempts, retry: &Retry, axis: &Axis, width: usize) -> String {
    let mut cells = vec![' '; width];
    let cell = |ms: f64| (axis.at(ms) as usize).min(width - 1);
    let mut fill = |from: usize, to: usize, sign: char| {
        for place in &mut cells[from..=to.max(from)] {
            *place = sign;
        }
    };
    let first = retry.attempts.first().map(|attempt| cell(attempt.from_ms));
    let last = retry.next.as_ref().map(|(at, _)| cell(*at));
    let ends = retry.attempts.iter().map(|attempt| cell(attempt.to_ms.unwrap_or(chart.now_ms)));
    if let Some(first) = first {
        fill(first, ends.chain(last).max().unwrap_or(first), '─');
    }
    for attempt in &retry.attempts {
        let to = cell(attempt.to_ms.unwrap_or(chart.now_ms));
        fill(cell(attempt.from_ms), to, '█');
        let sign = match attempt.end {
            End::Runs => '█',
            End::Success => '✓',
            End::Failure => '✗',
            End::Interrupted => '■',
        };
        fill(to, to, sign);
    }
    if let Some(last) = last {
        fill(last, last, '▶');
    }
    cells.into_iter().collect()
}

fn list(out: &mut String, retry: &Retry) {
    let (listed, omitted) = retry.listed();
    if omitted > 0 {
        out.push_str(&format!("  {omitted} earlier attempts\n"));
    }
    for attempt in listed {
        let mut head = format!("  attempt {}", attempt.number);
        for says in &attempt.says {
            out.push_str(&format!("{head:<14}{says}\n"));
            head.clear();
        }
        if attempt.says.is_empty() {
            out.push_str(&format!("{head}\n"));
        }
    }
    if let Some((_, says)) = &retry.next {
        out.push_str(&format!("{:<14}{says}\n", "  next"));
    }
}
