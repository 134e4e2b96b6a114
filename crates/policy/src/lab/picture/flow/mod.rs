//! Flow charts: steps below each other in the order in which they run, and lines from each to those that follow it.

mod drawn;
mod layout;
mod printed;
#[cfg(test)]
mod tests;

pub use drawn::flow_svg;
pub use printed::flow_text;

/// How many steps are drawn of all flows together.
pub const MAX_CARDS: usize = 200;
/// How many flows are drawn.
pub const MAX_PANELS: usize = 40;
/// How many lines of a step are drawn.
const MAX_LINES: usize = 14;
/// How many lines run beside each other; the steps that others lead to are named in their text.
const MAX_LANES: usize = 16;

/// What is drawn: the flows of a definition, the root first. Texts may be of any kind and length; they are cut and
/// escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// What stands above all of it.
    pub title: String,
    /// A line below the title.
    pub subtitle: String,
    /// The flows.
    pub panels: Vec<Panel>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// What is around all of its steps.
    pub around: Vec<String>,
    /// The place of its first step in `cards`.
    pub entry: usize,
    /// Its steps, in any order.
    pub cards: Vec<Card>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// A word for its action.
    pub action: &'static str,
    /// How it looks.
    pub look: Look,
    /// What is known of it, from the top down.
    pub lines: Vec<Line>,
    /// The step that follows it.
    pub next: Option<usize>,
}

/// How a step looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It calls something.
    Call,
    /// It chooses or changes values.
    Inner,
    /// It waits.
    Wait,
    /// The flow ends well.
    Success,
    /// The flow fails.
    Failure,
}

/// A line of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it says.
    pub text: String,
    /// What it is about.
    pub mark: Mark,
    /// The step that it leads to.
    pub to: Option<usize>,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The step itself.
    Plain,
    /// Middleware around the step.
    Around,
    /// Where it goes on.
    Branch,
    /// Where it goes on after a failure.
    Failure,
}

impl Line {
    /// A line that leads nowhere.
    #[must_use]
    pub fn new(mark: Mark, text: impl Into<String>) -> Self {
        Self { text: text.into(), mark, to: None }
    }
}

/// Cuts a text, and makes one line of it.
pub(super) fn cut(text: &str, most: usize) -> String {
    let spaced = |c: char| if c.is_whitespace() || c.is_control() { ' ' } else { c };
    if text.chars().count() <= most {
        return text.chars().map(spaced).collect();
    }
    text.chars().take(most.saturating_sub(1)).map(spaced).chain(['…']).collect()
}
