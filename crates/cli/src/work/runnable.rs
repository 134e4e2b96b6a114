//! Checks whether a command can run here, before any job is claimed.

use crate::exit::Failed;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Refuses a command that certainly cannot run, and a memory limit that cannot be set. What only the shell can
/// know, such as the second command of a list, shows when it runs.
pub(super) fn check(command: &str, memory_kib: Option<u64>) -> Result<(), Failed> {
    if let Some(kib) = memory_kib {
        let limited = shell("ulimit -v \"$1\"", &kib.to_string())?;
        if !limited.status.success() {
            let message = String::from_utf8_lossy(&limited.stderr);
            return Err(Failed::invalid(format!(
                "--memory cannot be enforced here, no job was claimed: `ulimit -v {kib}` says {:?}; leave --memory out, or \
                 raise the limit that this worker runs under",
                message.trim()
            )));
        }
    }
    let Some(word) = first_word(command) else { return Ok(()) };
    let problem = if word.contains('/') { unusable(Path::new(word)) } else { unknown(word)? };
    problem.map_or(Ok(()), |problem| {
        Err(Failed::invalid(format!(
            "the command {word:?} {problem}; no job was claimed. Write its whole path, or check PATH and \
             the folder that this worker is started in"
        )))
    })
}

/// The first word, if the shell takes it literally: nothing is quoted, expanded, assigned or joined.
fn first_word(command: &str) -> Option<&str> {
    let word = command.split_ascii_whitespace().next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./+-".contains(&byte);
    (word.bytes().all(plain) && !word.starts_with('-')).then_some(word)
}

fn unusable(path: &Path) -> Option<&'static str> {
    match path.metadata() {
        Err(_) => Some("does not exist"),
        Ok(found) if found.is_dir() => Some("is a folder"),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => Some("may not be executed (chmod +x)"),
        Ok(_) => None,
    }
}

/// A command that the shell does not know is neither a builtin nor in PATH.
fn unknown(word: &str) -> Result<Option<&'static str>, Failed> {
    let known = shell("command -v \"$1\"", word)?.status.success();
    Ok((!known).then_some("does not exist"))
}

fn shell(script: &str, argument: &str) -> Result<Output, Failed> {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", argument]).stdin(Stdio::null());
    shell.output().map_err(|error| Failed::invalid(format!("cannot start a shell, no job was claimed: sh: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_cannot_run_is_refused_before_a_job_is_claimed() {
        let folder = std::env::temp_dir().join(format!("redrive-runnable-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = folder.join("script");
        std::fs::write(&script, "").unwrap();
        for (command, problem) in [
            ("no-such-command-anywhere --flag", "does not exist"),
            ("/no/such/file", "does not exist"),
            ("./no-such-file && true", "does not exist"),
            (script.to_str().unwrap(), "may not be executed"),
            (folder.to_str().unwrap(), "is a folder"),
        ] {
            let said = check(command, None).map_err(|failed| (failed.code, failed.message));
            assert!(matches!(&said, Err((1, said)) if said.contains(problem)), "{command}: {said:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_command_that_may_run_is_accepted() {
        for command in [
            "cat",
            "exit 1",
            "/bin/sh -c true",
            "cd /tmp && ./later",
            "X=1 no-such-command",
            "if true; then no-such; fi",
            "$HOME/x",
            "'no such'",
            "no-such|cat",
            "",
        ] {
            assert!(check(command, Some(1_000_000)).is_ok(), "{command}");
        }
    }
}
