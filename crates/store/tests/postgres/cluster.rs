//! One PostgreSQL for all tests of the process.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};

/// The address of the database: `REDRIVE_TEST_POSTGRES`, or else a throw-away cluster of our own.
pub(crate) fn address() -> &'static str {
    static ADDRESS: LazyLock<String> = LazyLock::new(|| match std::env::var("REDRIVE_TEST_POSTGRES") {
        Ok(address) if !address.is_empty() => address,
        _ => {
            let cluster = Cluster::start();
            let address = cluster.address.clone();
            *RUNNING.lock().unwrap() = Some(cluster);
            address
        }
    });
    &ADDRESS
}

/// Runs as long as the process: a cluster stops when its input ends.
static RUNNING: Mutex<Option<Cluster>> = Mutex::new(None);

/// A throw-away cluster.
pub(crate) struct Cluster {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) address: String,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The options are those of `scripts/postgres`.
    pub(crate) fn start_with(options: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
        let mut command = Command::new(script);
        let mut child = command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        output.read_line(&mut address).unwrap();
        assert!(address.starts_with("postgres://"), "scripts/postgres did not start a database; see above for why");
        Self { child, output, address: address.trim().to_owned() }
    }

    /// The address with one more parameter.
    pub(crate) fn address_with(&self, parameter: &str) -> String {
        let joint = if self.address.contains('?') { '&' } else { '?' };
        format!("{}{joint}{parameter}", self.address)
    }

    /// Sends a command to `scripts/postgres`, such as to stop the server as a crash does, and waits until
    /// that is done.
    pub(crate) fn order(&mut self, command: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim(), format!("{command}: done"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
