//! `redrive store backup`: a copy of a store, made here or by the server that runs it.

use super::location::{folder, full_name};
use super::{print_findings, with_progress_bar};
use crate::client::{Send, ServerArgs};
use crate::{exit::Failed, output, when};
use redrive_server::BackupLabel;
use redrive_store::embedded;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// How long a server may take to copy its store and to read the copy.
const BACKUP_TIMEOUT: Duration = Duration::from_secs(4 * 3_600);

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The folder of the store
    #[arg(required_unless_present = "server")]
    dir: Option<PathBuf>,
    /// The folder of the copy: empty, or not existing yet
    #[arg(required_unless_present = "server")]
    to: Option<PathBuf>,
    /// Let this server make the copy, in the folder of its setting `backups`
    #[arg(long, value_name = "URL", conflicts_with_all = ["dir", "to"])]
    server: Option<String>,
    /// The name of that copy [default: the time]
    #[arg(long, value_name = "NAME", requires = "server")]
    name: Option<String>,
    /// A file with the API key of the server; the default is REDRIVE_API_KEY
    #[arg(long, value_name = "FILE", requires = "server")]
    api_key_file: Option<PathBuf>,
    /// A PEM file with root certificates for https:// servers, in addition to those of the system
    #[arg(long, env = "REDRIVE_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
}

const EXAMPLES: &str = "\
The server may run meanwhile, and continues to accept writes. The copy has everything that was
acknowledged when the command started, and is verified from end to end. `redrive store restore`
restores it. A server with the settings backups and backup.every makes backups by itself.

Examples:
  redrive store backup ./redrive-data /backup/redrive-2026-03-01
  redrive store backup --server http://127.0.0.1:8080
  redrive store backup --server http://127.0.0.1:8080 --name nightly --json";

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failed> {
    if let (Some(dir), Some(to)) = (&args.dir, &args.to) {
        let (dir, to) = (folder(dir)?, folder(to)?);
        let label = BackupLabel { taken_at: when::now(), store: full_name(dir), scheduled: None };
        let findings = with_progress_bar("copying", |progress| embedded::backup(dir, to, progress))?;
        if findings.is_sound() {
            label.write(to).map_err(|error| {
                Failed::unreachable(format!("the copy in {} is complete, but has no label: {error}", to.display()))
            })?;
        }
        return print_findings(to, &findings, json);
    }
    let Some(server) = &args.server else { return Err(Failed::usage("name the folders DIR and TO, or --server URL")) };
    let server = ServerArgs::new(server.clone(), args.api_key_file.clone(), args.ca.clone());
    let mut body = Map::new();
    if let Some(name) = &args.name {
        body.insert("name".to_owned(), name.clone().into());
    }
    let answer = server.client_within(BACKUP_TIMEOUT)?.ask(Send::Post(&Value::Object(body)), "/ojs/v1/admin/backup")?;
    if json {
        return output::json(&answer);
    }
    let made = &answer["backup"];
    let text = |key: &str| made[key].as_str().unwrap_or_default();
    let number = |key: &str| made[key].as_u64().unwrap_or_default();
    output::text(&format!(
        "{}: {} jobs, {} bytes, on the machine of the server; verified\n",
        text("path"),
        number("jobs"),
        number("bytes")
    ))
}
