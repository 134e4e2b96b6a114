//! A worker that runs beside the test.

use crate::harness::{Server, redrive, until};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A worker that runs. Dropping it kills it.
pub(crate) struct Worker(Child);

impl Worker {
    pub(crate) fn start(server: &Server, args: &[&str]) -> Self {
        let mut command = redrive(&["work"]);
        command.args(args).env("REDRIVE_SERVER", &server.url).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("a worker"))
    }

    /// The same, with its JSON output in a file.
    pub(crate) fn start_telling(server: &Server, args: &[&str], file: &str) -> Self {
        let mut command = redrive(&["work", "--json"]);
        let file = std::fs::File::create(file).expect("a file");
        command.args(args).env("REDRIVE_SERVER", &server.url).stdout(file).stderr(Stdio::null());
        Self(command.spawn().expect("a worker"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Kills it, without a chance to report anything.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it can be waited for");
    }

    /// Asks it to stop.
    pub(crate) fn ask_to_stop(&self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(self) -> ExitStatus {
        self.ask_to_stop();
        self.ended()
    }

    /// Waits until it has ended.
    pub(crate) fn ended(mut self) -> ExitStatus {
        until("the worker stops", || self.0.try_wait().expect("it can be waited for"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a file holds whole lines; returns them.
pub(crate) fn lines(path: &str) -> Vec<String> {
    until(&format!("lines in {path}"), || {
        let text = std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))?;
        Some(text.lines().map(str::to_owned).collect())
    })
}

/// Waits until a process has ended, or is a zombie that has not been reaped yet.
pub(crate) fn gone(id: &str) {
    until(&format!("the end of process {id}"), || {
        let output = Command::new("ps").args(["-o", "stat=", "-p", id]).output().expect("ps runs");
        let status = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (status.is_empty() || status.starts_with('Z')).then_some(())
    });
}
