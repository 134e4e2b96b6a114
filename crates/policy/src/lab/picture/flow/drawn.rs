//! A flow chart as SVG.

use super::super::svg::{Anchor, Svg};
use super::layout::{Placed, PlacedCard, place};
use super::{Chart, Look, MAX_CARDS, MAX_PANELS, Mark, Panel, cut};

const CARD: f64 = 316.0;
const INSIDE: f64 = 12.0;
const HEAD: f64 = 30.0;
const LINE: f64 = 19.0;
const END: f64 = 7.0;
const GAP: f64 = 26.0;
const LANE: f64 = 12.0;
/// Between the card and the first lane.
const BESIDE: f64 = 20.0;
const MARGIN: f64 = 28.0;
const TOP: f64 = 84.0;
const BETWEEN: f64 = 26.0;
const LEGEND: f64 = 40.0;
/// How many characters fit into a card.
const NAME: usize = 30;
const TEXT: usize = 43;
const COLUMNS: usize = 3;

impl Look {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Call, "calls"),
        (Self::Inner, "decides"),
        (Self::Wait, "waits"),
        (Self::Success, "ends well"),
        (Self::Failure, "fails"),
    ];

    const fn class(self) -> &'static str {
        match self {
            Self::Call => "r-step r-step-running",
            Self::Inner => "r-step r-step-cancelled",
            Self::Wait => "r-step r-step-waiting",
            Self::Success => "r-step r-step-completed",
            Self::Failure => "r-step r-step-failed",
        }
    }
}

/// A panel with its measures.
struct Measured<'c> {
    panel: &'c Panel,
    placed: Placed,
    /// The height at which each row begins, from the top of the panel.
    rows: Vec<f64>,
    width: f64,
    height: f64,
}

/// Draws a flow chart. What is beyond the limits is left out, and counted.
#[must_use]
pub fn flow_svg(chart: &Chart) -> String {
    let (mut room, mut left_out) = (MAX_CARDS, 0);
    let mut panels = Vec::new();
    for panel in chart.panels.iter().take(MAX_PANELS) {
        let placed = place(panel, room);
        room -= placed.cards.len();
        left_out += placed.left_out;
        panels.push(measured(panel, placed));
    }
    left_out += chart.panels.iter().skip(MAX_PANELS).map(|panel| panel.cards.len()).sum::<usize>();
    let columns = columns(&panels);
    let inner: f64 = columns.iter().map(|column| column.width + BETWEEN).sum::<f64>() - BETWEEN;
    let width = (2.0 * MARGIN + inner).max(640.0);
    let tallest = columns.iter().map(|column| column.height).fold(0.0, f64::max);
    let height = TOP + tallest + LEGEND + if left_out > 0 { 20.0 } else { 0.0 };
    let mut svg = Svg::new(width, height, &chart.title, &chart.subtitle, false);
    svg.text(MARGIN, 38.0, Anchor::Start, "r-title", &cut(&chart.title, 44));
    svg.text(MARGIN, 60.0, Anchor::Start, "r-sub", &cut(&chart.subtitle, 90));
    let mut x = MARGIN;
    for column in &columns {
        for (at, y) in &column.panels {
            draw(&mut svg, &panels[*at], x, TOP + y);
        }
        x += column.width + BETWEEN;
    }
    if left_out > 0 {
        let says = format!("{left_out} more steps are not drawn");
        svg.text(MARGIN, height - LEGEND, Anchor::Start, "r-alarm", &says);
    }
    legend(&mut svg, height - 20.0);
    svg.finish()
}

fn measured(panel: &Panel, placed: Placed) -> Measured<'_> {
    let around = panel.around.len() as f64 * LINE;
    let mut y = INSIDE + 22.0 + around + GAP;
    let mut rows = Vec::with_capacity(placed.rows);
    for card in &placed.cards {
        rows.push(y);
        y += HEAD;
        for _ in &card.lines {
            rows.push(y);
            y += LINE;
        }
        y += END;
        rows.push(y);
        rows.push(y);
        y += GAP;
    }
    let lanes = if placed.width == 0 { 0.0 } else { BESIDE + placed.width as f64 * LANE };
    Measured { panel, placed, rows, width: CARD + 2.0 * INSIDE + lanes, height: y - GAP + INSIDE }
}

struct Column {
    width: f64,
    height: f64,
    /// Panels, and how far down they are.
    panels: Vec<(usize, f64)>,
}

/// The root at the left, and each other flow where there is the most room.
fn columns(panels: &[Measured<'_>]) -> Vec<Column> {
    let count = panels.len().clamp(1, COLUMNS);
    let mut columns: Vec<Column> = (0..count).map(|_| Column { width: 0.0, height: 0.0, panels: Vec::new() }).collect();
    for (at, panel) in panels.iter().enumerate() {
        let shortest = |one: &&mut Column, other: &&mut Column| one.height.total_cmp(&other.height);
        let Some(column) = columns.iter_mut().min_by(shortest) else { continue };
        column.panels.push((at, column.height));
        column.height += panel.height + BETWEEN;
        column.width = column.width.max(panel.width);
    }
    for column in &mut columns {
        column.height -= BETWEEN;
    }
    columns
}

fn draw(svg: &mut Svg, measured: &Measured<'_>, x: f64, y: f64) {
    let Measured { panel, placed, rows, width, height } = measured;
    svg.rounded(x, y, *width, *height, 9.0, "r-stripe");
    let left = x + INSIDE;
    svg.text(left, y + INSIDE + 14.0, Anchor::Start, "r-name", &cut(&panel.name, NAME));
    for (at, around) in panel.around.iter().enumerate() {
        let line = y + INSIDE + 32.0 + at as f64 * LINE;
        svg.group(around);
        svg.text(left + indent(around), line, Anchor::Start, "r-around", &cut(around.trim_start(), TEXT + 4));
        svg.end_group();
    }
    if let Some(first) = placed.cards.first() {
        let top = y + rows[first.row];
        svg.dot(left + CARD / 2.0, top - GAP + 5.0, 3.5, "r-arrow");
        down(svg, left + CARD / 2.0, top - GAP + 5.0, top, "");
    }
    for lane in &placed.lanes {
        let class = if lane.failure { "-failure" } else { "" };
        let along = left + CARD + BESIDE + lane.place as f64 * LANE;
        let target = y + rows[lane.target] + HEAD / 2.0 + if lane.failure { 5.0 } else { -4.0 };
        for source in &lane.sources {
            let from = y + rows[*source] + LINE / 2.0 - 2.0;
            let way = [(left + CARD, from), (along, from), (along, target), (left + CARD + 5.0, target)];
            svg.path(&way, false, &format!("r-edge{class}"));
        }
        let end = left + CARD;
        svg.path(
            &[(end + 7.0, target - 4.0), (end, target), (end + 7.0, target + 4.0)],
            true,
            &format!("r-arrow{class}"),
        );
    }
    for card in &placed.cards {
        draw_card(svg, panel, card, left, y, rows);
    }
}

fn down(svg: &mut Svg, x: f64, from: f64, to: f64, class: &str) {
    svg.path(&[(x, from), (x, to - 5.0)], false, &format!("r-edge{class}"));
    svg.path(&[(x - 4.0, to - 7.0), (x, to), (x + 4.0, to - 7.0)], true, &format!("r-arrow{class}"));
}

fn draw_card(svg: &mut Svg, panel: &Panel, placed: &PlacedCard, x: f64, y: f64, rows: &[f64]) {
    let card = &panel.cards[placed.card];
    let (top, bottom) = (y + rows[placed.row], y + rows[placed.row + 1 + placed.lines.len()]);
    let tip: Vec<&str> = placed.lines.iter().map(|line| line.text.as_str()).collect();
    let lost = if placed.reached { "" } else { "; no step leads here" };
    svg.group(&format!("{}: {}{lost}\n{}", card.name, card.action, tip.join("\n")));
    svg.rounded(x, top, CARD, bottom - top, 7.0, card.look.class());
    let action = if placed.reached { card.action.to_owned() } else { format!("{}, not reached", card.action) };
    let name = cut(&card.name, NAME + 6 - action.chars().count().min(NAME));
    svg.text(x + INSIDE, top + 20.0, Anchor::Start, "r-tag", &name);
    svg.text(x + CARD - INSIDE, top + 20.0, Anchor::End, "r-head", &action);
    for (at, line) in placed.lines.iter().enumerate() {
        let class = match line.mark {
            Mark::Plain => "r-text",
            Mark::Around => "r-around",
            Mark::Branch => "r-soft",
            Mark::Failure => "r-limit-label",
        };
        let (side, anchor) = match line.mark {
            Mark::Branch | Mark::Failure => (x + CARD - INSIDE, Anchor::End),
            Mark::Plain | Mark::Around => (x + INSIDE + indent(&line.text), Anchor::Start),
        };
        let base = y + rows[placed.row + 1 + at] + 12.0;
        svg.text(side, base, anchor, class, &cut(line.text.trim_start(), TEXT));
    }
    svg.end_group();
    if placed.goes_on {
        down(svg, x + CARD / 2.0, bottom, bottom + GAP, "");
    }
}

/// Spaces before a text, which SVG does not draw.
fn indent(text: &str) -> f64 {
    3.5 * text.chars().take_while(|c| *c == ' ').take(8).count() as f64
}

fn legend(svg: &mut Svg, y: f64) {
    let mut x = MARGIN;
    for (look, word) in Look::ALL {
        svg.rounded(x, y - 9.0, 12.0, 12.0, 3.0, look.class());
        svg.text(x + 18.0, y + 1.0, Anchor::Start, "r-head", word);
        x += 34.0 + 6.2 * word.len() as f64;
    }
    for (class, word) in [("r-edge", "goes on"), ("r-edge-failure", "after a failure")] {
        svg.path(&[(x, y - 3.0), (x + 18.0, y - 3.0)], false, class);
        svg.text(x + 24.0, y + 1.0, Anchor::Start, "r-head", word);
        x += 40.0 + 6.2 * word.len() as f64;
    }
}
