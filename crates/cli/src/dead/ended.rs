//! `redrive jobs retry`: redriving jobs that have ended, dead letters or not, by a filter.

use super::change::{self, Action};
use super::select::{Filter, Selection};
use crate::client::Client;
use crate::exit::Failed;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// In which state they ended: discarded, cancelled or completed
    #[arg(long, value_parser = ["discarded", "cancelled", "completed"])]
    state: String,
    #[command(flatten)]
    filter: Filter,
    /// All jobs in that state
    #[arg(long)]
    all: bool,
    /// Redrive them, instead of printing how many match
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(client: &Client, args: &Args, json: bool) -> Result<(), Failed> {
    let Args { state, filter, all, yes } = args;
    match (filter.is_empty(), *all) {
        (true, false) => {
            return Err(Failed::usage(format!(
                "which {state} jobs? Name a filter (--queue, --type, --error-type, --since, --until), or --all"
            )));
        }
        (false, true) => return Err(Failed::usage("a filter and --all exclude each other; use one of them")),
        _ => {}
    }
    let selection = Selection { ids: Vec::new(), filter: filter.clone(), all: *all, yes: *yes };
    change::run(client, &selection, &Action::RetryEnded(state.clone()), json)
}
