//! A simulation as a picture: attempts over time, one panel for each policy, all on the same axes.

use super::Candidate;
use super::axis::{Axis, Tick};
use super::frame::{Frame, marks};
use super::svg::{Anchor, Svg};
use super::words::{count, scenario_sentence, short, summary, verdict};
use crate::lab::simulate::{Outcome, Scenario};

const WIDTH: f64 = 980.0;
const MARGIN: f64 = 28.0;
const LEFT: f64 = 104.0;
const RIGHT: f64 = WIDTH - MARGIN;
/// The height of a panel: two lines of text, the plot, and the room below it.
const PANEL: f64 = 244.0;
const HEADING: f64 = 62.0;
const PLOT: f64 = 148.0;
const TOP: f64 = 112.0;

/// Draws the outcomes of one scenario under several policies.
#[must_use]
pub fn simulation_svg(scenario: &Scenario, candidates: &[Candidate<'_>]) -> String {
    draw(scenario, candidates, false)
}

pub(super) fn draw(scenario: &Scenario, candidates: &[Candidate<'_>], part_of_page: bool) -> String {
    // A page says in its own words what is shown.
    let top = if part_of_page { TOP - 68.0 } else { TOP };
    let height = top + PANEL * candidates.len() as f64 + 8.0;
    let title = format!("{} jobs meet an outage of {}", count(scenario.jobs.into()), short(scenario.outage));
    let said: Vec<String> = candidates
        .iter()
        .map(|c| format!("{}: {}. {}.", c.name, verdict(scenario, c.outcome).0, summary(scenario, c.outcome)))
        .collect();
    let description = format!("{} {}", scenario_sentence(scenario), said.join(" "));
    let mut svg = Svg::new(WIDTH, height, &title, &description, part_of_page);
    if !part_of_page {
        svg.text(MARGIN, 44.0, Anchor::Start, "r-title", &title);
        svg.text(MARGIN, 67.0, Anchor::Start, "r-sub", &scenario_sentence(scenario));
    }
    legend(&mut svg, scenario, top - 16.0);
    let frame = Frame::of(scenario, candidates);
    let time = Axis::linear(frame.end_ms, LEFT, RIGHT);
    for (index, candidate) in candidates.iter().enumerate() {
        let top = top + PANEL * index as f64;
        let rate = rate_axis(&frame, top + HEADING);
        Panel { svg: &mut svg, scenario, outcome: candidate.outcome, time, rate }.draw(candidate.name, top);
    }
    svg.finish()
}

fn legend(svg: &mut Svg, scenario: &Scenario, y: f64) {
    let mut x = MARGIN;
    let mut entry = |class: &str, text: &str| {
        svg.rounded(x, y - 9.0, 14.0, 10.0, 2.0, class);
        svg.text(x + 20.0, y, Anchor::Start, "r-head", text);
        x += 34.0 + text.chars().count() as f64 * 6.1;
    };
    entry("r-tries", "attempts in the busiest second of each bin");
    entry("r-served", "served");
    if !scenario.outage.is_zero() {
        entry("r-outage", "outage");
    }
}

/// The axis of attempts in a panel whose plot begins at `top`, with some air above the highest.
fn rate_axis(frame: &Frame, top: f64) -> Axis {
    let (from, to) = (top + PLOT, top);
    if frame.logarithmic {
        Axis::logarithmic(0.5, frame.highest * 2.5, from, to)
    } else {
        Axis::linear(frame.highest * 1.18, from, to)
    }
}

struct Panel<'a> {
    svg: &'a mut Svg,
    scenario: &'a Scenario,
    outcome: &'a Outcome,
    time: Axis,
    rate: Axis,
}

impl Panel<'_> {
    fn draw(&mut self, name: &str, top: f64) {
        let (said, fine) = verdict(self.scenario, self.outcome);
        self.svg.text(MARGIN, top + 18.0, Anchor::Start, "r-name", name);
        self.svg.text(RIGHT, top + 18.0, Anchor::End, if fine { "r-fine" } else { "r-alarm" }, &said);
        self.svg.text(MARGIN, top + 37.0, Anchor::Start, "r-sub", &summary(self.scenario, self.outcome));
        let (plot_top, bottom) = (top + HEADING, top + HEADING + PLOT);
        self.outage(plot_top, bottom);
        self.grid(plot_top, bottom);
        self.columns();
        self.capacity();
        self.peaks(plot_top);
        self.svg.line((LEFT, bottom + 0.5), (RIGHT, bottom + 0.5), "r-base");
    }

    fn outage(&mut self, top: f64, bottom: f64) {
        if self.scenario.outage.is_zero() {
            return;
        }
        let end = self.time.at(self.scenario.outage.ms());
        self.svg.rect(LEFT, top, end - LEFT, bottom - top, "r-outage");
        self.svg.line((end, top), (end, bottom), "r-outage-edge");
        let (x, anchor) = if end - LEFT > 120.0 { (end - 6.0, Anchor::End) } else { (end + 6.0, Anchor::Start) };
        let text = format!("outage ends at {}", short(self.scenario.outage));
        self.svg.text(x, top + 14.0, anchor, "r-outage-label", &text);
    }

    fn grid(&mut self, top: f64, bottom: f64) {
        for Tick { at, label } in self.rate.count_ticks(22.0) {
            self.svg.line((LEFT, at), (RIGHT, at), "r-grid");
            self.svg.text(LEFT - 8.0, at + 4.0, Anchor::End, "r-tick", &label);
        }
        self.svg.text(
            LEFT - 8.0,
            top - 4.0,
            Anchor::End,
            "r-tick",
            if self.rate.is_logarithmic() { "per s, log" } else { "per second" },
        );
        for Tick { at, label } in self.time.time_ticks(90.0) {
            self.svg.line((at, bottom), (at, bottom + 5.0), "r-base");
            self.svg.text(at, bottom + 19.0, Anchor::Middle, "r-tick", &label);
        }
    }

    /// Attempts, and in front of them those that were served.
    fn columns(&mut self) {
        let series = &self.outcome.series;
        let tries = self.steps(&series.peak_per_s);
        self.svg.path(&self.area(&tries), true, "r-tries");
        self.svg.path(&tries, false, "r-tries-line");
        let served = self.steps(&series.served_peak_per_s);
        self.svg.path(&self.area(&served), true, "r-served");
    }

    /// The outline of the bins; runs of equal ones are drawn in one go.
    fn steps(&self, per_s: &[u32]) -> Vec<(f64, f64)> {
        let bin = self.outcome.series.bin.ms();
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (index, count) in per_s.iter().enumerate() {
            let (from, to) = (self.time.at(index as f64 * bin), self.time.at((index + 1) as f64 * bin));
            let y = self.rate.at(f64::from(*count));
            match points.last_mut() {
                Some(last) if last.1 == y => last.0 = to,
                _ => points.extend([(from, y), (to, y)]),
            }
        }
        points
    }

    fn area(&self, line: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let ground = self.rate.at(0.0);
        let ends = (line.first(), line.last());
        let (Some(first), Some(last)) = ends else { return Vec::new() };
        std::iter::once((first.0, ground)).chain(line.iter().copied()).chain([(last.0, ground)]).collect()
    }

    fn capacity(&mut self) {
        let Some(capacity) = self.scenario.capacity_per_s else { return };
        let (from, y) = (self.time.at(self.scenario.outage.ms()), self.rate.at(f64::from(capacity)));
        self.svg.line((from, y), (RIGHT, y), "r-limit");
        self.svg.text(RIGHT, y - 5.0, Anchor::End, "r-limit-label", &format!("capacity {}", count(capacity.into())));
    }

    fn peaks(&mut self, top: f64) {
        let bin = self.outcome.series.bin.ms();
        let mut labelled: Option<(f64, f64)> = None;
        for peak in marks(self.scenario, self.outcome) {
            let middle = ((peak.at.ms() / bin).floor() + 0.5) * bin;
            let (x, y) = (self.time.at(middle), self.rate.at(f64::from(peak.per_s)));
            self.svg.dot(x, y, 3.5, "r-mark");
            // Two labels in one place cannot be read; the one after the outage matters more.
            if labelled.is_some_and(|(other_x, other_y)| (x - other_x).abs() < 90.0 && (y - other_y).abs() < 18.0) {
                continue;
            }
            labelled = Some((x, y));
            let (label_x, anchor) = if x > RIGHT - 90.0 { (x - 8.0, Anchor::End) } else { (x + 8.0, Anchor::Start) };
            let text = format!("{}/s", count(peak.per_s.into()));
            self.svg.text(label_x, (y - 4.0).max(top + 10.0), anchor, "r-tag", &text);
        }
    }
}
