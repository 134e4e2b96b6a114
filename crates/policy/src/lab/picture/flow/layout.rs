//! Where everything stands in a flow chart: the same grid of rows for pictures and terminals.

use super::{Card, Line, MAX_LANES, MAX_LINES, Mark, Panel};
use std::collections::BTreeMap;

/// A panel as it is drawn.
#[derive(Debug)]
pub(super) struct Placed {
    /// From the top down.
    pub(super) cards: Vec<PlacedCard>,
    /// The lines beside the cards.
    pub(super) lanes: Vec<Lane>,
    /// How many lanes are beside each other.
    pub(super) width: usize,
    /// How many rows there are.
    pub(super) rows: usize,
    /// How many cards had no place.
    pub(super) left_out: usize,
}

#[derive(Debug)]
pub(super) struct PlacedCard {
    /// Its place in the panel.
    pub(super) card: usize,
    /// The row of its name; each line has a row, and one more ends the card.
    pub(super) row: usize,
    pub(super) lines: Vec<Line>,
    /// Whether the next card follows it.
    pub(super) goes_on: bool,
    /// Whether the flow can come here.
    pub(super) reached: bool,
}

/// A vertical line to one card, with the rows from which lines lead to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lane {
    /// Its distance from the cards, from 0.
    pub(super) place: usize,
    pub(super) sources: Vec<usize>,
    pub(super) target: usize,
    pub(super) failure: bool,
}

impl Lane {
    pub(super) fn first(&self) -> usize {
        self.sources.iter().copied().fold(self.target, usize::min)
    }

    pub(super) fn last(&self) -> usize {
        self.sources.iter().copied().fold(self.target, usize::max)
    }
}

/// Places at most `room` cards of a panel.
pub(super) fn place(panel: &Panel, room: usize) -> Placed {
    let (mut order, reached) = order(panel);
    let left_out = order.len().saturating_sub(room);
    order.truncate(room);
    let mut places = vec![None; panel.cards.len()];
    for (place, card) in order.iter().enumerate() {
        places[*card] = Some(place);
    }
    let mut cards = Vec::with_capacity(order.len());
    let mut row = 0;
    for (place, card) in order.iter().enumerate() {
        let spec = &panel.cards[*card];
        let goes_on = spec.next.is_some() && spec.next == order.get(place + 1).copied();
        let lines = lines(spec, goes_on);
        cards.push(PlacedCard { card: *card, row, goes_on, reached: reached[*card], lines });
        row += cards.last().map_or(0, |placed| placed.lines.len()) + 3;
    }
    let rows: Vec<usize> = cards.iter().map(|card| card.row).collect();
    let target = |card: usize| places.get(card).copied().flatten().map(|place: usize| rows[place]);
    let (lanes, width) = lanes(&cards, target);
    let drawn = |row: usize| lanes.iter().any(|lane| lane.sources.contains(&row));
    for placed in &mut cards {
        for (at, line) in placed.lines.iter_mut().enumerate() {
            if let Some(to) = line.to.filter(|_| !drawn(placed.row + 1 + at)) {
                let name = panel.cards.get(to).map_or("", |card| card.name.as_str());
                line.text = format!("{} → {name}", line.text);
                line.to = None;
            }
        }
    }
    Placed { cards, lanes, width, rows: row, left_out }
}

/// The lines of a card that are drawn. Where it goes on is one of them, unless the card below is the one.
fn lines(card: &Card, goes_on: bool) -> Vec<Line> {
    let next = card.next.filter(|_| !goes_on);
    let next = next.map(|to| Line { text: "next".to_owned(), mark: Mark::Branch, to: Some(to) });
    let (before, after): (Vec<Line>, Vec<Line>) =
        card.lines.iter().cloned().partition(|line| line.mark != Mark::Failure);
    let mut all: Vec<Line> = before.into_iter().chain(next).chain(after).collect();
    let more = all.len().saturating_sub(MAX_LINES);
    if more > 0 {
        all.truncate(MAX_LINES - 1);
        all.push(Line::new(Mark::Plain, format!("… and {} more", more + 1)));
    }
    all
}

/// The cards in the order in which they run, what follows after what leads to it; those that nothing leads to at the
/// end. Beside it, which of them the entry leads to.
fn order(panel: &Panel) -> (Vec<usize>, Vec<bool>) {
    let count = panel.cards.len();
    // What follows directly is visited last, so that it stands directly below.
    let follow: Vec<Vec<usize>> = panel
        .cards
        .iter()
        .map(|card| {
            let all = card.next.into_iter().chain(card.lines.iter().filter_map(|line| line.to));
            let mut all: Vec<usize> = all.filter(|to| *to < count).collect();
            all.reverse();
            all
        })
        .collect();
    let (mut seen, mut finished) = (vec![false; count], Vec::with_capacity(count));
    let mut path = Vec::new();
    if let Some(seen) = seen.get_mut(panel.entry) {
        *seen = true;
        path.push((panel.entry, 0));
    }
    while let Some((card, at)) = path.pop() {
        match follow[card].get(at) {
            Some(to) => {
                path.push((card, at + 1));
                if !std::mem::replace(&mut seen[*to], true) {
                    path.push((*to, 0));
                }
            }
            None => finished.push(card),
        }
    }
    finished.reverse();
    finished.extend((0..count).filter(|card| !seen[*card]));
    (finished, seen)
}

/// One lane for each card that lines lead to; apart for failures. Short ones are near the cards.
fn lanes(cards: &[PlacedCard], target: impl Fn(usize) -> Option<usize>) -> (Vec<Lane>, usize) {
    let mut found: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    for placed in cards {
        for (at, line) in placed.lines.iter().enumerate() {
            if let Some(to) = line.to.and_then(&target) {
                found.entry((to, line.mark == Mark::Failure)).or_default().push(placed.row + 1 + at);
            }
        }
    }
    let mut lanes: Vec<Lane> =
        found.into_iter().map(|((target, failure), sources)| Lane { place: 0, sources, target, failure }).collect();
    lanes.sort_by_key(|lane| (lane.last() - lane.first(), lane.first()));
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    lanes.retain_mut(|lane| {
        let (first, last) = (lane.first(), lane.last());
        let free = |spans: &Vec<(usize, usize)>| spans.iter().all(|(from, to)| last < *from || *to < first);
        let place = taken.iter().position(free).unwrap_or(taken.len());
        if place == taken.len() {
            taken.push(Vec::new());
        }
        taken[place].push((first, last));
        lane.place = place;
        place < MAX_LANES
    });
    (lanes, taken.len().min(MAX_LANES))
}

#[cfg(test)]
mod tests {
    use super::super::Look;
    use super::*;

    fn card(next: Option<usize>, failures: &[usize]) -> Card {
        let line = |to: &usize| Line { text: String::new(), mark: Mark::Failure, to: Some(*to) };
        let lines = failures.iter().map(line).collect();
        Card { name: String::new(), action: "Call", look: Look::Call, lines, next }
    }

    fn panel(cards: Vec<Card>) -> Panel {
        Panel { name: String::new(), around: Vec::new(), entry: 0, cards }
    }

    #[test]
    fn what_follows_stands_below_and_what_others_lead_to_stands_last() {
        let cards = vec![card(Some(2), &[]), card(None, &[]), card(Some(1), &[3]), card(Some(1), &[]), card(None, &[])];
        let placed = place(&panel(cards), 99);
        assert_eq!(placed.cards.iter().map(|card| card.card).collect::<Vec<_>>(), [0, 2, 3, 1, 4]);
        let goes_on: Vec<bool> = placed.cards.iter().map(|card| card.goes_on).collect();
        assert_eq!(goes_on, [true, false, true, false, false]);
        assert_eq!(placed.cards.iter().map(|card| card.reached).collect::<Vec<_>>(), [true, true, true, true, false]);
    }

    #[test]
    fn lanes_beside_each_other_do_not_touch() {
        let cards = (0..30).map(|at| card(Some((at * 7) % 30), &[(at * 11) % 30, (at * 5) % 30])).collect();
        let placed = place(&panel(cards), 99);
        for (at, one) in placed.lanes.iter().enumerate() {
            for other in &placed.lanes[at + 1..] {
                let apart = one.last() < other.first() || other.last() < one.first();
                assert!(one.place != other.place || apart, "{one:?} {other:?}");
            }
        }
        assert!(placed.width <= MAX_LANES);
    }

    #[test]
    fn steps_that_lead_to_each_other_are_placed_once() {
        let placed = place(&panel(vec![card(Some(1), &[0]), card(Some(0), &[])]), 99);
        assert_eq!(placed.cards.iter().map(|card| card.card).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(place(&panel(vec![]), 9).cards.len(), 0);
        assert_eq!(place(&panel(vec![card(Some(9), &[7])]), 9).lanes, [], "there are no such steps");
    }
}
