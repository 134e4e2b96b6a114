//! `redrive flow graph`.

use super::definition;
use crate::{exit::Failed, output};
use redrive_policy::lab::picture::flow::{flow_svg, flow_text};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The definition, or - for standard input
    #[arg(value_name = "DEFINITION")]
    definition: PathBuf,
    /// Where to write a picture; - is standard output [default: a drawing for the terminal]
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  redrive flow graph order.json
  redrive flow graph order.json --svg order.svg";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let name = if output::is_stdout(&args.definition) { None } else { args.definition.file_stem() };
    let title = name.map_or_else(|| "flow".to_owned(), |name| name.to_string_lossy().into_owned());
    let chart = definition(&args.definition, false)?.chart(&title);
    match &args.svg {
        Some(svg) => output::file(svg, &flow_svg(&chart)),
        None => output::text(&flow_text(&chart, output::terminal_width().unwrap_or(100))),
    }
}
