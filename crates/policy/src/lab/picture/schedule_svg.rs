//! A schedule as a picture: each retry a row, its delay on the left, the time since the first
//! failure on the right.

use super::axis::{Axis, Tick};
use super::svg::{Anchor, Svg};
use super::words::{findings, percent, range, short, timing};
use crate::Span;
use crate::lab::schedule::{Row, Schedule, Track};

const WIDTH: f64 = 980.0;
const MARGIN: f64 = 28.0;
const ROW: f64 = 26.0;
const SUBTITLE: f64 = 67.0;
/// Where the rows begin.
const TOP: f64 = 128.0;
/// The two plots, and the right ends of the columns of figures beside them.
const DELAY: (f64, f64) = (86.0, 410.0);
const MEAN_END: f64 = 492.0;
const SINCE: (f64, f64) = (530.0, 762.0);
const SINCE_END: f64 = 846.0;
const SHARE_END: f64 = WIDTH - MARGIN;
/// More rows than these make no better picture; the last ones are all alike by then.
const MOST_ROWS: usize = 40;
/// A factor between the shortest and the longest delay above which an even axis shows no detail.
const WIDE: f64 = 12.0;

/// Draws a schedule.
#[must_use]
pub fn schedule_svg(title: &str, schedule: &Schedule) -> String {
    draw(title, schedule, false)
}

pub(super) fn draw(title: &str, schedule: &Schedule, part_of_page: bool) -> String {
    let rows = &schedule.rows[..schedule.rows.len().min(MOST_ROWS)];
    let findings = findings(schedule);
    let bottom = if rows.is_empty() { SUBTITLE - 12.0 } else { TOP + ROW * rows.len() as f64 };
    let height = bottom + 44.0 + 20.0 * findings.len() as f64 + 18.0;
    let description = format!("{}. {}", timing(&schedule.backoff), findings.join(" "));
    let mut svg = Svg::new(WIDTH, height, title, &description, part_of_page);
    svg.text(MARGIN, 44.0, Anchor::Start, "r-title", title);
    svg.text(MARGIN, SUBTITLE, Anchor::Start, "r-sub", &timing(&schedule.backoff));
    let jittered = !schedule.backoff.jitter.is_none();
    let plot = Plot { delay: delay_axis(rows, schedule), since: since_axis(rows), bottom, jittered };
    if !rows.is_empty() {
        plot.frame(&mut svg, rows.len());
        plot.limits(&mut svg, schedule, rows);
        plot.path(&mut svg, rows);
        for (index, row) in rows.iter().enumerate() {
            plot.row(&mut svg, index, row);
        }
    }
    let mut y = bottom + 44.0;
    if schedule.rows.len() > rows.len() {
        let rest = format!("The first {} of {} rows.", rows.len(), schedule.rows.len());
        svg.text(SHARE_END, y + 6.0, Anchor::End, "r-soft", &rest);
    }
    for finding in findings {
        y += 20.0;
        svg.text(MARGIN, y - 6.0, Anchor::Start, "r-text", &finding);
    }
    svg.finish()
}

/// The axis of the delays: even where they are alike, logarithmic where they span orders.
fn delay_axis(rows: &[Row], schedule: &Schedule) -> Axis {
    let cap = schedule.backoff.cap.map(|cap| cap.at.ms());
    let longest = rows.iter().map(|row| row.delay.longest.ms()).fold(0.0, f64::max);
    // The cap is worth a place unless it is far out of reach.
    let high = cap.filter(|cap| *cap < 3.0 * longest).unwrap_or(longest).max(longest);
    let positive = |pick: fn(&Track) -> Span| {
        rows.iter().map(|row| pick(&row.delay).ms()).filter(|ms| *ms > 0.0).fold(f64::INFINITY, f64::min)
    };
    let shortest = positive(|delay| delay.shortest);
    // A delay that may be nothing has no place on a logarithmic axis; its mean has.
    let from_zero = rows.iter().any(|row| row.delay.shortest.is_zero());
    let low = if from_zero { positive(|delay| delay.mean) / 4.0 } else { shortest };
    if low.is_finite() && high / low > WIDE {
        Axis::logarithmic(low, high * 1.15, DELAY.0, DELAY.1)
    } else {
        Axis::linear(high * 1.04, DELAY.0, DELAY.1)
    }
}

fn since_axis(rows: &[Row]) -> Axis {
    let high = rows.last().map_or(0.0, |row| row.since_start.longest.ms());
    Axis::linear(high * 1.04, SINCE.0, SINCE.1)
}

struct Plot {
    delay: Axis,
    since: Axis,
    bottom: f64,
    /// Whether there is a jitter that a cap could undo.
    jittered: bool,
}

impl Plot {
    /// Headings, stripes, grid and axes.
    fn frame(&self, svg: &mut Svg, rows: usize) {
        for index in (0..rows).step_by(2) {
            svg.rect(MARGIN - 8.0, TOP + ROW * index as f64, WIDTH - 2.0 * MARGIN + 16.0, ROW, "r-stripe");
        }
        let delay =
            if self.delay.is_logarithmic() { "delay before the retry (log scale)" } else { "delay before the retry" };
        let heads = [
            (MARGIN, Anchor::Start, "retry"),
            (DELAY.0, Anchor::Start, delay),
            (MEAN_END, Anchor::End, "mean"),
            (SINCE.0, Anchor::Start, "time since the first failure"),
            (SINCE_END, Anchor::End, "mean"),
            (SHARE_END, Anchor::End, "at one instant"),
        ];
        for (x, anchor, head) in heads {
            svg.text(x, TOP - 30.0, anchor, "r-head", head);
        }
        for (axis, (from, to), apart) in [(self.delay, DELAY, 52.0), (self.since, SINCE, 58.0)] {
            for Tick { at, label } in axis.time_ticks(apart) {
                svg.line((at, TOP - 4.0), (at, self.bottom + 5.0), "r-grid");
                svg.text(at, self.bottom + 20.0, Anchor::Middle, "r-tick", &label);
            }
            svg.line((from, self.bottom + 0.5), (to, self.bottom + 0.5), "r-base");
        }
    }

    /// The cap on the left, the limit on elapsed time on the right.
    fn limits(&self, svg: &mut Svg, schedule: &Schedule, rows: &[Row]) {
        let mut mark = |axis: &Axis, at: Span, farthest: Option<Span>, name: &str| {
            if farthest.is_some_and(|farthest| at.ms() <= 3.0 * farthest.ms()) {
                let x = axis.at(at.ms());
                svg.line((x, TOP - 8.0), (x, self.bottom), "r-limit");
                svg.text(x, TOP - 12.0, Anchor::Middle, "r-limit-label", &format!("{name} {}", short(at)));
            }
        };
        let longest = rows.iter().map(|row| row.delay.longest).reduce(|a, b| if b > a { b } else { a });
        if let Some(cap) = schedule.backoff.cap {
            mark(&self.delay, cap.at, longest, "cap");
        }
        if let (Some(limit), Some(last)) = (schedule.elapsed_limit, rows.last())
            && limit.limit <= last.since_start.longest
        {
            mark(&self.since, limit.limit, Some(limit.limit), "limit");
        }
    }

    /// The thin line that leads from mean to mean.
    fn path(&self, svg: &mut Svg, rows: &[Row]) {
        let points = |axis: &Axis, pick: fn(&Row) -> Span| -> Vec<(f64, f64)> {
            rows.iter().enumerate().map(|(index, row)| (axis.at(pick(row).ms()), middle(index))).collect()
        };
        svg.path(&points(&self.delay, |row| row.delay.mean), false, "r-path");
        svg.path(&points(&self.since, |row| row.since_start.mean), false, "r-path");
    }

    fn row(&self, svg: &mut Svg, index: usize, row: &Row) {
        let y = middle(index);
        svg.text(MARGIN + 22.0, y + 4.5, Anchor::End, "r-text", &row.retry.to_string());
        svg.group(&format!("retry {}: {}, mean {}", row.retry, range(row.delay), short(row.delay.mean)));
        band(svg, &self.delay, row.delay, y);
        if row.on_one_instant > 0.0 && row.capped && self.jittered {
            // The pile at the cap: as tall as the share that it holds.
            let tall = (ROW - 6.0) * row.on_one_instant;
            svg.rounded(self.delay.at(row.delay.longest.ms()) - 2.5, y - tall / 2.0, 5.0, tall, 1.5, "r-pile");
        }
        svg.dot(self.delay.at(row.delay.mean.ms()), y, 4.0, "r-mean");
        svg.end_group();
        svg.text(MEAN_END, y + 4.5, Anchor::End, "r-text", &short(row.delay.mean));
        svg.group(&format!("retry {} starts {} after the first failure", row.retry, range(row.since_start)));
        band(svg, &self.since, row.since_start, y);
        svg.dot(self.since.at(row.since_start.mean.ms()), y, 4.0, "r-mean");
        svg.end_group();
        svg.text(SINCE_END, y + 4.5, Anchor::End, "r-text", &short(row.since_start.mean));
        let class = if row.on_one_instant >= 0.1 { "r-alarm" } else { "r-soft" };
        let share = if row.on_one_instant > 0.0 { percent(row.on_one_instant) } else { "–".to_owned() };
        svg.text(SHARE_END, y + 4.5, Anchor::End, class, &share);
    }
}

fn band(svg: &mut Svg, axis: &Axis, track: Track, y: f64) {
    let (from, to) = (axis.at(track.shortest.ms()), axis.at(track.longest.ms()));
    if to - from >= 1.0 {
        svg.rounded(from, y - 6.0, to - from, 12.0, 3.0, "r-band");
        svg.rounded(from, y - 6.0, to - from, 12.0, 3.0, "r-band-edge");
    }
}

fn middle(index: usize) -> f64 {
    TOP + ROW * (index as f64 + 0.5)
}
