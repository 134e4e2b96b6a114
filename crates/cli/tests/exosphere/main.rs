//! Programs with Exosphere's SDK, as the package index has it, against the real binary.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest")]
mod cluster;
#[path = "../harness/mod.rs"]
mod harness;

use harness::{Folder, Server, stderr, stdout};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A Python that has the SDK.
fn python() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/exosphere-sdk");
    let output = Command::new(script).output().expect("the script runs");
    assert!(output.status.success(), "scripts/exosphere-sdk: {}", stderr(&output));
    stdout(&output).trim().to_owned()
}

/// Settings with a key for secrets.
fn keys_for_secrets(folder: &Folder) -> [&'static str; 2] {
    let path = folder.file("secrets.key", &"ab".repeat(32));
    ["--set", format!("secrets_key_file={path}").leak()]
}

fn program(server: &Server, name: &str, key: &str) -> Command {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exosphere/scenarios.py");
    let mut command = Command::new(python());
    command.arg(program).arg(name).env("EXOSPHERE_STATE_MANAGER_URI", &server.url).env("EXOSPHERE_API_KEY", key);
    command
}

/// A scenario against a server, or all of them.
fn scenario(server: &Server, name: &str, key: &str) {
    let mut command = program(server, name, key);
    let output = command.output().expect("Python runs");
    assert!(output.status.success(), "{name}: {}{}", stdout(&output), stderr(&output));
}

/// A program with three runtimes, whose server is killed whenever the program says so. The address stays, and so do the
/// runtimes. A claim whose answer was lost with the server comes back by its lease.
fn killed(store: &[&str]) {
    let lease = ["--set", "exosphere.lease=20s"];
    let mut server = Server::start_at(store, &lease);
    let mut child = program(&server, "killed", "any").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut told, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut kills = 0;
    for _ in said.lines().map_while(Result::ok).filter(|line| line == "kill") {
        server.kill();
        server = Server::start_again(&server.url, store, &lease);
        kills += 1;
        // A program that has failed reads nothing; its exit says why.
        let _ = writeln!(told, "alive");
    }
    assert!(child.wait().unwrap().success(), "after {kills} kills: {:?}", server.log_lines());
    assert_eq!(kills, 5);
}

#[test]
fn runtimes_go_on_when_their_server_is_killed_on_a_folder() {
    let folder = Folder::new("exosphere-killed");
    killed(&["--data", &folder.at("data")]);
}

#[test]
fn runtimes_go_on_when_their_server_is_killed_on_postgresql() {
    killed(&["--store", &schema("exosphere_killed")]);
}

/// A schema of its own on the PostgreSQL of the tests.
fn schema(name: &str) -> String {
    let address = cluster::address();
    let joint = if address.contains('?') { '&' } else { '?' };
    format!("{address}{joint}schema={name}")
}

#[test]
fn programs_with_the_sdk_run_on_a_folder() {
    let folder = Folder::new("exosphere");
    let server = Server::start_with(&folder.at("data"), &keys_for_secrets(&folder));
    scenario(&server, "all", "any key will do");
}

#[test]
fn programs_with_the_sdk_run_on_postgresql() {
    let folder = Folder::new("exosphere-postgres");
    let server = Server::start_at(&["--store", &schema("exosphere")], &keys_for_secrets(&folder));
    scenario(&server, "all", "any key will do");
}

#[test]
fn the_key_of_the_sdk_is_one_of_the_server() {
    let folder = Folder::new("exosphere-keys");
    let key = "0123456789abcdef0123456789abcdef";
    let keys = folder.file("keys", key);
    let server = Server::start_with(&folder.at("data"), &["--api-key-file", &keys]);
    scenario(&server, "linear", key);
}
