//! A flow chart for the terminal.

use super::layout::{Lane, Placed, place};
use super::{Chart, MAX_CARDS, MAX_PANELS, Mark, Panel, cut};

const NARROWEST: usize = 40;
const WIDEST: usize = 64;

/// The parts of a line in a cell: where it leads from the middle.
const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// The chart in at most `width` columns, as far as its lines leave room for names.
#[must_use]
pub fn flow_text(chart: &Chart, width: usize) -> String {
    let mut out = format!("{}\n{}\n", cut(&chart.title, width), cut(&chart.subtitle, width));
    let (mut room, mut left_out) = (MAX_CARDS, 0);
    for panel in chart.panels.iter().take(MAX_PANELS) {
        let placed = place(panel, room);
        room -= placed.cards.len();
        left_out += placed.left_out;
        out.push('\n');
        out.push_str(&printed(panel, &placed, width));
    }
    left_out += chart.panels.iter().skip(MAX_PANELS).map(|panel| panel.cards.len()).sum::<usize>();
    if left_out > 0 {
        out.push_str(&format!("\n{left_out} more steps are not drawn\n"));
    }
    out
}

fn printed(panel: &Panel, placed: &Placed, width: usize) -> String {
    let beside = if placed.width == 0 { 0 } else { 2 * placed.width + 2 };
    let card = width.saturating_sub(beside).clamp(NARROWEST, WIDEST);
    let mut lines = vec![String::new(); placed.rows];
    for placed_card in &placed.cards {
        let spec = &panel.cards[placed_card.card];
        let lost = if placed_card.reached { "" } else { ", not reached" };
        let action = format!("{}{lost}", spec.action);
        let name = cut(&spec.name, card.saturating_sub(action.chars().count() + 9).max(8));
        let dashes = card.saturating_sub(name.chars().count() + action.chars().count() + 8);
        let row = placed_card.row;
        lines[row] = format!("┌─ {name} {} {action} ─┐", "─".repeat(dashes));
        for (at, line) in placed_card.lines.iter().enumerate() {
            let text = cut(&line.text, card - 4);
            let pad = " ".repeat((card - 4).saturating_sub(text.chars().count()));
            let joins = placed.lanes.iter().any(|lane| lane.sources.contains(&(row + 1 + at)));
            let edge = if joins { '├' } else { '│' };
            lines[row + 1 + at] = match line.mark {
                Mark::Branch | Mark::Failure => format!("│ {pad}{text} {edge}"),
                Mark::Plain | Mark::Around => format!("│ {text}{pad} {edge}"),
            };
        }
        let end = row + 1 + placed_card.lines.len();
        let half = (card - 2) / 2;
        let foot = if placed_card.goes_on { '┬' } else { '─' };
        lines[end] = format!("└{}{foot}{}┘", "─".repeat(half), "─".repeat(card - 3 - half));
        if placed_card.goes_on {
            lines[end + 1] = format!("{:half$} ▼", "");
        }
    }
    for (row, line) in lines.iter_mut().enumerate() {
        let beside = beside_row(&placed.lanes, placed.width, row);
        if beside.chars().any(|c| c != ' ') {
            let pad = card.saturating_sub(line.chars().count());
            line.push_str(&" ".repeat(pad));
            line.push_str(&beside);
        }
    }
    let around = panel.around.iter().map(|around| format!("  {}\n", cut(around, width.saturating_sub(2))));
    let heads = format!("{}\n{}", cut(&panel.name, width), around.collect::<String>());
    let rows: String = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("{heads}{}\n", rows.trim_end())
}

/// The lanes beside a row: two cells before the first, and one between two of them.
fn beside_row(lanes: &[Lane], width: usize, row: usize) -> String {
    let mut cells = vec![0_u8; if width == 0 { 0 } else { 2 * width + 1 }];
    let at = |lane: &Lane| 2 * lane.place + 2;
    for lane in lanes.iter().filter(|lane| (lane.first()..=lane.last()).contains(&row)) {
        let (mut parts, ends) = (0, row == lane.target || lane.sources.contains(&row));
        if row > lane.first() {
            parts |= UP;
        }
        if row < lane.last() {
            parts |= DOWN;
        }
        if ends {
            parts |= LEFT;
        }
        if let Some(cell) = cells.get_mut(at(lane)) {
            *cell = parts;
        }
    }
    // What leads to a lane further out passes behind the lanes before it.
    for lane in lanes.iter().filter(|lane| row == lane.target || lane.sources.contains(&row)) {
        for (cell, column) in cells.iter_mut().take(at(lane)).zip(0..) {
            let joined =
                lanes.iter().any(|other| at(other) == column && other.target == lane.target && row == lane.target);
            if *cell == 0 || joined {
                *cell |= LEFT | RIGHT;
            }
        }
    }
    let arrives = lanes.iter().any(|lane| lane.target == row);
    let drawn = cells.iter().enumerate().map(|(column, cell)| match cell {
        _ if arrives && column == 0 => '◀',
        0 => ' ',
        cell => joint(*cell),
    });
    drawn.collect()
}

const fn joint(parts: u8) -> char {
    match parts {
        p if p == UP | DOWN => '│',
        p if p == LEFT | DOWN => '╮',
        p if p == LEFT | UP => '╯',
        p if p == LEFT | UP | DOWN => '┤',
        p if p == LEFT | RIGHT | DOWN => '┬',
        p if p == LEFT | RIGHT | UP => '┴',
        p if p == LEFT | RIGHT | UP | DOWN => '┼',
        _ => '─',
    }
}
