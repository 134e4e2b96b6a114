//! A process beside the worker that ends its commands when the worker is killed and cannot do so itself:
//! their jobs will run again elsewhere, and should not run twice at the same time.
//!
//! It is another process of this program, and reads its standard input: `+7` means that a command with the process
//! group 7 runs, `-7` that it has ended. The end of the input is the end of the worker.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The name of the command that starts it.
pub(crate) const COMMAND: &str = "work-guard";

/// A handle to the guard. Dropping it ends the guard and the commands that still run.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    input: Mutex<Option<ChildStdin>>,
}

impl Guard {
    /// Starts a guard in a process group of its own, so that Ctrl-C is for the worker alone.
    pub(super) fn start() -> io::Result<Self> {
        let mut guard = Command::new(std::env::current_exe()?);
        guard.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = guard.spawn()?;
        let input = Mutex::new(child.stdin.take());
        Ok(Self { child, input })
    }

    /// A command runs.
    pub(super) fn started(&self, group: i32) {
        self.send(&format!("+{group}\n"));
    }

    /// A command has ended.
    pub(super) fn ended(&self, group: i32) {
        self.send(&format!("-{group}\n"));
    }

    /// A lost guard matters only if the worker is killed.
    fn send(&self, line: &str) {
        if let Some(input) = &mut *self.input.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = input.write_all(line.as_bytes());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.input.lock().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.child.wait();
    }
}

/// The guard itself: reads to the end of the input, and kills the commands that run then.
pub(crate) fn run() {
    for group in still_running(io::stdin().lock()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The groups that run when the input ends.
fn still_running(input: impl BufRead) -> HashSet<Pid> {
    let mut running = HashSet::new();
    for line in input.lines().map_while(Result::ok) {
        let group = |text: &str| text.parse::<i32>().ok().filter(|group| *group > 1).and_then(Pid::from_raw);
        if let Some(group) = line.strip_prefix('+').and_then(group) {
            running.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(group) {
            running.remove(&group);
        }
    }
    running
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_ended_is_left() {
        let groups = |text: &str| still_running(text.as_bytes());
        assert_eq!(groups("+70\n+71\n-70\n+72\n-72\n"), HashSet::from([Pid::from_raw(71).unwrap()]));
        assert_eq!(groups("+0\n+1\n+-5\nnonsense\n-9\n"), HashSet::new(), "only commands are ever killed");
        assert_eq!(groups(""), HashSet::new());
    }
}
