//! Azolla's protocol with Python's gRPC, against the real binary: clients and shepherds that are made of the
//! definition, a server and shepherds that are killed with SIGKILL, on both stores.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest")]
mod cluster;
#[path = "../harness/mod.rs"]
mod harness;

use harness::{Folder, Server, redrive, stderr, stdout, until};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Times that keep the tests short.
const SETTINGS: [&str; 6] = ["--set", "azolla.lease=3s", "--set", "azolla.reconnect=1s", "--set", "azolla.timeout=5s"];

/// A Python that has gRPC.
fn python() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/azolla-grpc");
    let output = Command::new(script).output().expect("the script runs");
    assert!(output.status.success(), "scripts/azolla-grpc: {}", stderr(&output));
    stdout(&output).trim().to_owned()
}

fn program(address: &str, folder: &Folder, name: &str) -> Command {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/azolla/programs.py");
    let mut command = Command::new(python());
    command.arg(program).args([address, folder.path().to_str().unwrap(), name]);
    command
}

/// A server at an address for Azolla's protocol, and that address; the second start has that of the first.
fn settings(address: &str) -> Vec<&str> {
    [&["--azolla-listen", address][..], &SETTINGS].concat()
}

/// The address of Azolla's protocol, from the server's log.
fn address(server: &Server) -> String {
    until("the address", || {
        let lines = server.log_lines();
        let line = lines.iter().find_map(|line| line.split_once("Azolla's protocol on "))?;
        line.1.split(' ').next().map(str::to_owned)
    })
}

fn all(name: &str, store: &[&str]) {
    let folder = Folder::new(name);
    let server = Server::start_at(store, &settings("127.0.0.1:0"));
    let output = program(&address(&server), &folder, "all").output().expect("Python runs");
    assert!(output.status.success(), "{}{}{:?}", stdout(&output), stderr(&output), server.log_lines());
}

fn killed(name: &str, store: &[&str]) {
    let folder = Folder::new(name);
    let mut server = Server::start_at(store, &settings("127.0.0.1:0"));
    let address = address(&server);
    let mut child = program(&address, &folder, "killed").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut told, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut kills = 0;
    for _ in said.lines().map_while(Result::ok).filter(|line| line == "kill") {
        server.kill();
        server = Server::start_again(&server.url, store, &settings(&address));
        kills += 1;
        // A program that has failed reads nothing; its exit says why.
        let _ = writeln!(told, "alive");
    }
    assert!(child.wait().unwrap().success(), "after {kills} kills: {:?}", server.log_lines());
    assert_eq!(kills, 3);
}

#[test]
fn workers_run_without_a_shepherd() {
    let folder = Folder::new("azolla-alone");
    let server = Server::start_at(&["--data", &folder.at("data")], &settings("127.0.0.1:0"));
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/azolla/worker.py");
    let script = format!("#!/bin/sh\nexec {} {} \"$@\"\n", python(), worker.display());
    let binary = folder.file("azolla-worker", &script);
    std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
    let mut workers = redrive(&["work", "--azolla-worker", &binary, "--server", &server.url])
        .stderr(Stdio::null())
        .spawn()
        .expect("workers");
    let output = program(&address(&server), &folder, "alone").output().expect("Python runs");
    workers.kill().expect("they can be killed");
    workers.wait().expect("they can be waited for");
    assert!(output.status.success(), "{}{}{:?}", stdout(&output), stderr(&output), server.log_lines());
}

/// A schema of its own on the PostgreSQL of the tests.
fn schema(name: &str) -> String {
    let address = cluster::address();
    let joint = if address.contains('?') { '&' } else { '?' };
    format!("{address}{joint}schema={name}")
}

#[test]
fn clients_and_a_shepherd_in_python_run_on_a_folder() {
    let folder = Folder::new("azolla-store");
    all("azolla", &["--data", &folder.at("data")]);
}

#[test]
fn clients_and_a_shepherd_in_python_run_on_postgresql() {
    all("azolla-postgres", &["--store", &schema("azolla")]);
}

#[test]
fn callers_wait_on_one_node_for_tasks_that_end_on_another() {
    let folder = Folder::new("azolla-nodes");
    let store = schema("azolla_nodes");
    let nodes = [(); 2].map(|()| Server::start_at(&["--store", &store], &settings("127.0.0.1:0")));
    let [one, other] = nodes.each_ref().map(address);
    let output = program(&one, &folder, "nodes").arg(other).output().expect("Python runs");
    let logs = nodes.each_ref().map(Server::log_lines);
    assert!(output.status.success(), "{}{}{logs:?}", stdout(&output), stderr(&output));
}

#[test]
fn the_explanation_says_that_task_error_stands_for_every_type() {
    let folder = Folder::new("azolla-explained");
    let server = Server::start_at(&["--data", &folder.at("data")], &settings("127.0.0.1:0"));
    let output = program(&address(&server), &folder, "any_error").output().expect("Python runs");
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let sentence = "TaskError in its list of errors to retry stands for every type in tasks of Azolla's clients.";
    for (line, says) in stdout(&output).lines().zip([2, 0]) {
        let explained = server.printed(&["job", "explain", line]);
        assert_eq!(explained.matches(sentence).count(), says, "{explained}");
    }
    assert_eq!(stdout(&output).lines().count(), 2);
}

#[test]
fn every_task_ends_as_its_policy_says_when_everything_is_killed_on_a_folder() {
    let folder = Folder::new("azolla-killed-store");
    killed("azolla-killed", &["--data", &folder.at("data")]);
}

#[test]
fn every_task_ends_as_its_policy_says_when_everything_is_killed_on_postgresql() {
    killed("azolla-killed-postgres", &["--store", &schema("azolla_killed")]);
}
