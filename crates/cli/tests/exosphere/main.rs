//! Programs with Exosphere's SDK, as the package index has it, against the real binary.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest")]
mod cluster;
#[path = "../harness/mod.rs"]
mod harness;

use harness::{Folder, Server, stderr, stdout};
use std::path::Path;
use std::process::Command;

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

/// A scenario against a server, or all of them.
fn scenario(server: &Server, name: &str, key: &str) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exosphere/scenarios.py");
    let mut command = Command::new(python());
    command.arg(program).arg(name).env("EXOSPHERE_STATE_MANAGER_URI", &server.url).env("EXOSPHERE_API_KEY", key);
    let output = command.output().expect("Python runs");
    assert!(output.status.success(), "{name}: {}{}", stdout(&output), stderr(&output));
}

#[test]
fn programs_with_the_sdk_run_on_a_folder() {
    let folder = Folder::new("exosphere");
    let server = Server::start_with(&folder.at("data"), &keys_for_secrets(&folder));
    scenario(&server, "all", "any key will do");
}

#[test]
fn programs_with_the_sdk_run_on_postgresql() {
    let address = cluster::address();
    let joint = if address.contains('?') { '&' } else { '?' };
    let store = format!("{address}{joint}schema=exosphere");
    let folder = Folder::new("exosphere-postgres");
    let server = Server::start_at(&["--store", &store], &keys_for_secrets(&folder));
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
