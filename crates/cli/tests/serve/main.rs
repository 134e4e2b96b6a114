//! `redrive serve` and `redrive config`, as the binary that people run.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod running;
mod settings;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own, empty at first.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The binary, in a folder, without settings from around the test.
fn redrive(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.current_dir(dir);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
        command.env_remove(name);
    }
    command
}

fn text_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn settings(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text_of(output));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    value["settings"].clone()
}
