//! `redrive man`: manual pages, made from the command line itself.

use crate::{Cli, exit::Failed, output};
use clap::CommandFactory;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder for the pages, which is there
    dir: PathBuf,
}

const EXAMPLES: &str = "\
Writes redrive.1 and a page for each command, such as redrive-serve.1. Pages of the same names are
replaced.

Examples:
  redrive man ~/.local/share/man/man1 && man redrive-serve";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let failed = |error| Failed::unreachable(format!("cannot write to {}: {error}", args.dir.display()));
    clap_mangen::generate_to(command, &args.dir).map_err(failed)?;
    output::text(&format!("{}: man pages of redrive {}\n", args.dir.display(), env!("CARGO_PKG_VERSION")))
}
