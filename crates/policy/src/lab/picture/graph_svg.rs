//! A graph of steps: what came after what, how far each is, and how often it was tried.

use super::svg::{Anchor, Svg};

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It has not started.
    Waiting,
    /// It waits for a worker, or has one.
    Running,
    /// It has failed and waits for its retry.
    Retrying,
    /// It has succeeded.
    Completed,
    /// It has failed for good.
    Failed,
    /// It was cancelled, or will never start.
    Cancelled,
}

/// One step of a graph.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it is called; any text, it is escaped.
    pub name: String,
    /// A second line, such as how often it was tried.
    pub detail: String,
    /// How far it is.
    pub state: StepState,
    /// The steps that it comes after, by their places in the list.
    pub after: Vec<usize>,
}

const WIDTH: f64 = 190.0;
const HEIGHT: f64 = 52.0;
const ACROSS: f64 = 64.0;
const DOWN: f64 = 20.0;
const MARGIN: f64 = 28.0;
const TOP: f64 = 84.0;
const LEGEND: f64 = 44.0;
/// How many characters of a name fit into a box.
const NAME: usize = 24;

impl StepState {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Waiting, "waiting"),
        (Self::Running, "running"),
        (Self::Retrying, "waiting for a retry"),
        (Self::Completed, "completed"),
        (Self::Failed, "failed"),
        (Self::Cancelled, "cancelled"),
    ];

    const fn class(self) -> &'static str {
        match self {
            Self::Waiting => "r-step r-step-waiting",
            Self::Running => "r-step r-step-running",
            Self::Retrying => "r-step r-step-retrying",
            Self::Completed => "r-step r-step-completed",
            Self::Failed => "r-step r-step-failed",
            Self::Cancelled => "r-step r-step-cancelled",
        }
    }
}

/// Draws a graph from left to right. A step stands to the right of all that it comes after.
#[must_use]
pub fn graph_svg(title: &str, subtitle: &str, steps: &[Step]) -> String {
    let columns = columns(steps);
    let rows = rows(&columns);
    let across = columns.iter().max().map_or(1, |last| last + 1) as f64;
    let down = rows.iter().max().map_or(1, |last| last + 1) as f64;
    let width = (2.0 * MARGIN + across * (WIDTH + ACROSS) - ACROSS).max(660.0);
    let height = TOP + down * (HEIGHT + DOWN) + LEGEND;
    let described = format!("{} steps; {subtitle}", steps.len());
    let mut svg = Svg::new(width, height, title, &described, false);
    svg.text(MARGIN, 38.0, Anchor::Start, "r-title", title);
    svg.text(MARGIN, 60.0, Anchor::Start, "r-sub", subtitle);
    let corner =
        |step: usize| (MARGIN + columns[step] as f64 * (WIDTH + ACROSS), TOP + rows[step] as f64 * (HEIGHT + DOWN));
    for (index, step) in steps.iter().enumerate() {
        for before in step.after.iter().filter(|before| **before < steps.len()) {
            edge(&mut svg, corner(*before), corner(index));
        }
    }
    for (index, step) in steps.iter().enumerate() {
        let (x, y) = corner(index);
        let word = StepState::ALL.iter().find(|(state, _)| *state == step.state).map_or("", |(_, word)| word);
        svg.group(&format!("{}: {word}. {}", step.name, step.detail));
        svg.rounded(x, y, WIDTH, HEIGHT, 7.0, step.state.class());
        svg.text(x + 12.0, y + 22.0, Anchor::Start, "r-tag", &shortened(&step.name));
        svg.text(x + 12.0, y + 40.0, Anchor::Start, "r-head", &shortened(&step.detail));
        svg.end_group();
    }
    legend(&mut svg, height - 22.0);
    svg.finish()
}

fn edge(svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
    let (begin, end) = ((from.0 + WIDTH, from.1 + HEIGHT / 2.0), (to.0, to.1 + HEIGHT / 2.0));
    let bend = end.0 - ACROSS / 2.0;
    svg.path(&[begin, (bend, begin.1), (bend, end.1), (end.0 - 5.0, end.1)], false, "r-edge");
    svg.path(&[(end.0 - 7.0, end.1 - 4.0), (end.0, end.1), (end.0 - 7.0, end.1 + 4.0)], true, "r-arrow");
}

fn legend(svg: &mut Svg, y: f64) {
    let mut x = MARGIN;
    for (state, word) in StepState::ALL {
        svg.rounded(x, y - 9.0, 12.0, 12.0, 3.0, state.class());
        svg.text(x + 18.0, y + 1.0, Anchor::Start, "r-head", word);
        x += 34.0 + 6.2 * word.len() as f64;
    }
}

/// How many steps are at least before each one. A circle, which a caller cannot have, ends the count.
fn columns(steps: &[Step]) -> Vec<usize> {
    let mut columns = vec![0; steps.len()];
    for _ in 0..steps.len() {
        for (index, step) in steps.iter().enumerate() {
            let before = step.after.iter().filter_map(|before| columns.get(*before)).max();
            columns[index] = before.map_or(0, |before| before + 1).min(steps.len());
        }
    }
    columns
}

/// The place of each step within its column.
fn rows(columns: &[usize]) -> Vec<usize> {
    let row = |(index, column): (usize, &usize)| columns[..index].iter().filter(|other| *other == column).count();
    columns.iter().enumerate().map(row).collect()
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= NAME {
        return text.to_owned();
    }
    text.chars().take(NAME - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, state: StepState, after: &[usize]) -> Step {
        Step { name: name.to_owned(), detail: "attempt 2".to_owned(), state, after: after.to_vec() }
    }

    #[test]
    fn a_step_stands_to_the_right_of_all_that_it_comes_after() {
        let steps = [
            step("a", StepState::Completed, &[]),
            step("b", StepState::Running, &[0]),
            step("c", StepState::Waiting, &[0]),
            step("d", StepState::Waiting, &[1, 2]),
            step("e", StepState::Waiting, &[0, 3]),
        ];
        assert_eq!(columns(&steps), [0, 1, 1, 2, 3]);
        assert_eq!(rows(&columns(&steps)), [0, 0, 1, 0, 0]);
    }

    #[test]
    fn names_are_escaped_and_cut_and_every_step_is_drawn() {
        let long = "x".repeat(40);
        let steps = [step("<script>", StepState::Failed, &[]), step(&long, StepState::Retrying, &[0, 7])];
        let picture = graph_svg("a & b", "failed", &steps);
        assert!(picture.contains("&lt;script&gt;") && !picture.contains("<script"));
        assert!(picture.contains("a &amp; b"));
        assert_eq!(picture.matches("class=\"r-step r-step-failed\"").count(), 2, "the step, and the legend");
        assert!(picture.contains(&format!(">{}…<", "x".repeat(23))));
        assert_eq!(
            picture.matches("class=\"r-arrow\"").count(),
            1,
            "an edge from a step that is not there is left out"
        );
    }

    #[test]
    fn steps_in_a_circle_are_drawn_all_the_same() {
        let steps = [step("a", StepState::Waiting, &[1]), step("b", StepState::Waiting, &[0])];
        assert!(graph_svg("t", "s", &steps).ends_with("</svg>\n"));
        assert!(graph_svg("t", "s", &[]).contains("<svg"));
    }
}
