//! One PostgreSQL for all tests of the process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex};

/// The address of the database: `REDRIVE_TEST_POSTGRES`, or else a throw-away cluster of our own.
pub(crate) fn address() -> &'static str {
    static ADDRESS: LazyLock<String> = LazyLock::new(|| match std::env::var("REDRIVE_TEST_POSTGRES") {
        Ok(address) if !address.is_empty() => address,
        _ => {
            let (cluster, address) = start();
            *RUNNING.lock().unwrap() = Some(cluster);
            address
        }
    });
    &ADDRESS
}

/// Kept open: the cluster stops by itself when its input ends, and that is when this process does,
/// however it ends.
static RUNNING: Mutex<Option<Child>> = Mutex::new(None);

/// Starts a cluster that lives as long as the child's standard input.
pub(crate) fn start() -> (Child, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let mut child = Command::new(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    assert!(address.starts_with("postgres://"), "scripts/postgres did not start a database; see above for why");
    (child, address.trim().to_owned())
}
