//! Pictures of schedules, simulations, attempts, graphs of steps and flow charts: SVG and HTML for pages, blocks for
//! terminals.
//!
//! Everything is plain text made here. A picture loads nothing, runs no script, and follows the
//! reader's choice of a light or a dark page.

pub mod attempts;
mod axis;
mod escape;
pub mod flow;
mod frame;
mod graph_svg;
mod schedule_svg;
mod schedule_text;
mod simulation_html;
mod simulation_svg;
mod simulation_text;
mod style;
mod svg;
#[cfg(test)]
mod tests;
mod words;

use super::simulate::Outcome;
use crate::Policy;

pub use escape::escape;
pub use graph_svg::{Step, StepState, graph_svg};
pub use schedule_svg::schedule_svg;
pub use schedule_text::schedule_text;
pub use simulation_html::simulation_html;
pub use simulation_svg::simulation_svg;
pub use simulation_text::simulation_text;

/// A policy that was run through a scenario, under the name that the picture gives it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The name; any text, it is escaped.
    pub name: &'a str,
    /// The policy.
    pub policy: &'a Policy,
    /// What came out.
    pub outcome: &'a Outcome,
}
