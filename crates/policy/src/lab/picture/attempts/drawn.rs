//! Attempts on a line of time, as SVG.

use super::super::axis::{Axis, Tick};
use super::super::flow::cut;
use super::super::svg::{Anchor, Svg};
use super::{Attempt, Attempts, End, Retry};

const WIDTH: f64 = 980.0;
const MARGIN: f64 = 28.0;
const TOP: f64 = 92.0;
const HEAD: f64 = 26.0;
const BAR: f64 = 20.0;
const TICKS: f64 = 26.0;
const ROW: f64 = 19.0;
const BETWEEN: f64 = 26.0;
const LEGEND: f64 = 40.0;
/// The column of numbers in the list.
const NUMBER: f64 = 74.0;
/// How many characters fit into a line of the list.
const TEXT: usize = 118;

impl End {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Success, "succeeded"),
        (Self::Failure, "failed"),
        (Self::Interrupted, "interrupted"),
        (Self::Runs, "runs"),
    ];

    const fn class(self) -> &'static str {
        match self {
            Self::Runs => "r-step r-step-running",
            Self::Success => "r-step r-step-completed",
            Self::Failure => "r-step r-step-failed",
            Self::Interrupted => "r-step r-step-cancelled",
        }
    }
}

/// Draws the retries below each other, on the same line of time.
#[must_use]
pub fn attempts_svg(chart: &Attempts) -> String {
    let (retries, omitted) = chart.drawn();
    let more = if omitted > 0 { ROW } else { 0.0 };
    let height = TOP + more + retries.iter().map(tall).sum::<f64>() + LEGEND;
    let mut svg = Svg::new(WIDTH, height, &chart.title, &chart.subtitle, false);
    svg.text(MARGIN, 38.0, Anchor::Start, "r-title", &cut(&chart.title, 70));
    svg.text(MARGIN, 60.0, Anchor::Start, "r-sub", &cut(&chart.subtitle, 110));
    let mut y = TOP;
    if omitted > 0 {
        let says = format!("{omitted} earlier retries are not drawn");
        svg.text(MARGIN, y, Anchor::Start, "r-soft", &says);
        y += ROW;
    }
    let axis = Axis::linear(chart.end_ms(), MARGIN, WIDTH - MARGIN - 14.0);
    for retry in retries {
        draw(&mut svg, chart, retry, &axis, y);
        y += tall(retry);
    }
    legend(&mut svg, height - 20.0);
    svg.finish()
}

/// How much room a retry takes.
fn tall(retry: &Retry) -> f64 {
    let (listed, omitted) = retry.listed();
    let lines: usize = listed.iter().map(|attempt| attempt.says.len().max(1)).sum();
    let others = usize::from(omitted > 0) + usize::from(retry.next.is_some());
    HEAD + BAR + TICKS + (lines + others) as f64 * ROW + BETWEEN
}

fn draw(svg: &mut Svg, chart: &Attempts, retry: &Retry, axis: &Axis, top: f64) {
    svg.text(MARGIN, top + 14.0, Anchor::Start, "r-name", &cut(&retry.name, 80));
    let state = if retry.next.is_some() { "r-limit-label" } else { "r-sub" };
    svg.text(WIDTH - MARGIN, top + 14.0, Anchor::End, state, &cut(&retry.state, 40));
    let bar = top + HEAD;
    svg.line((MARGIN, bar + BAR), (WIDTH - MARGIN, bar + BAR), "r-base");
    for Tick { at, label } in axis.time_ticks(90.0) {
        svg.line((at, bar + BAR), (at, bar + BAR + 4.0), "r-base");
        svg.text(at, bar + BAR + 16.0, Anchor::Middle, "r-tick", &label);
    }
    // A wait is the line between two attempts.
    let middle = bar + BAR / 2.0;
    for pair in retry.attempts.windows(2) {
        let from = axis.at(pair[0].to_ms.unwrap_or(pair[0].from_ms));
        svg.line((from, middle), (axis.at(pair[1].from_ms).max(from), middle), "r-edge-failure");
    }
    if let (Some((at, says)), Some(last)) = (&retry.next, retry.attempts.last()) {
        let (from, to) = (axis.at(last.to_ms.unwrap_or(last.from_ms)), axis.at(*at));
        svg.group(says);
        svg.line((from, middle), (to.max(from), middle), "r-edge-failure");
        svg.rounded(to, bar + 2.0, 9.0, BAR - 4.0, 2.5, "r-step r-step-retrying");
        svg.end_group();
    }
    for attempt in &retry.attempts {
        let (from, to) = (axis.at(attempt.from_ms), axis.at(attempt.to_ms.unwrap_or(chart.now_ms)));
        svg.group(&format!("attempt {}\n{}", attempt.number, attempt.says.join("\n")));
        svg.rounded(from, bar + 2.0, (to - from).max(5.0), BAR - 4.0, 2.5, attempt.end.class());
        svg.end_group();
    }
    list(svg, retry, bar + BAR + TICKS + 12.0);
}

fn list(svg: &mut Svg, retry: &Retry, mut y: f64) {
    let (listed, omitted) = retry.listed();
    if omitted > 0 {
        svg.text(MARGIN, y, Anchor::Start, "r-soft", &format!("{omitted} earlier attempts"));
        y += ROW;
    }
    for Attempt { number, says, .. } in listed {
        svg.text(MARGIN, y, Anchor::Start, "r-head", &format!("attempt {number}"));
        for (at, line) in says.iter().enumerate() {
            let class = if at == 0 { "r-text" } else { "r-soft" };
            svg.text(MARGIN + NUMBER, y + at as f64 * ROW, Anchor::Start, class, &cut(line, TEXT));
        }
        y += says.len().max(1) as f64 * ROW;
    }
    if let Some((_, says)) = &retry.next {
        svg.text(MARGIN, y, Anchor::Start, "r-head", "next");
        svg.text(MARGIN + NUMBER, y, Anchor::Start, "r-limit-label", &cut(says, TEXT));
    }
}

fn legend(svg: &mut Svg, y: f64) {
    let mut x = MARGIN;
    for (end, word) in End::ALL {
        svg.rounded(x, y - 9.0, 12.0, 12.0, 3.0, end.class());
        svg.text(x + 18.0, y + 1.0, Anchor::Start, "r-head", word);
        x += 36.0 + 6.2 * word.len() as f64;
    }
    svg.rounded(x, y - 9.0, 12.0, 12.0, 3.0, "r-step r-step-retrying");
    svg.text(x + 18.0, y + 1.0, Anchor::Start, "r-head", "next attempt");
    svg.line((x + 110.0, y - 3.0), (x + 128.0, y - 3.0), "r-edge-failure");
    svg.text(x + 134.0, y + 1.0, Anchor::Start, "r-head", "wait");
}
