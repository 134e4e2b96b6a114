//! `redrive openapi`: the description of the HTTP interface.

use crate::{exit::Failed, output};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

const EXAMPLES: &str = "\
Examples:
  redrive openapi > openapi.json
  redrive openapi | jq '.paths | keys'

A server answers the same under /openapi.json, and as a page for readers under /docs.";

pub(crate) fn run(_: &Args) -> Result<(), Failed> {
    output::text(redrive_server::openapi())
}
