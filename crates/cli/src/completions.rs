//! `redrive completions`: tab completion for shells.

use crate::{Cli, exit::Failed, output};
use clap::CommandFactory;
use clap_complete::Shell;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell to write for
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  redrive completions bash > ~/.local/share/bash-completion/completions/redrive
  redrive completions zsh  > ~/.zfunc/_redrive
  redrive completions fish > ~/.config/fish/completions/redrive.fish";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "redrive", &mut script);
    output::bytes(&script)
}
