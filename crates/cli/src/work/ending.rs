//! The outcome of a job, from the exit of its command.

use super::process::{CommandExit, CommandSpec, ExitReason};
use redrive_worker::{Failure, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

/// A temporary failure; `EX_TEMPFAIL` of sysexits.h.
const RETRY: i32 = 75;
/// A permanent failure of this job; `EX_DATAERR` of sysexits.h.
const DEAD_LETTER: i32 = 65;

/// The exit codes of a shell for a command that may not be executed, or does not exist.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// `overdue`: the command was stopped because of the timeout of the job.
pub(super) fn outcome(exit: &CommandExit, spec: &CommandSpec, overdue: bool) -> Outcome {
    let stderr = exit.stderr.text();
    let last = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let reported = last.and_then(ReportedError::read).unwrap_or_default();
    // A line for programs is not a message.
    let last = last.filter(|line| ReportedError::read(line).is_none());
    let failure = |type_name: String, message: String| {
        let message = reported.message.clone().or_else(|| last.map(str::to_owned)).unwrap_or(message);
        let failure = Failure::new(reported.type_name.clone().unwrap_or(type_name), message);
        failure.with_details(details(exit))
    };
    match exit.reason {
        ExitReason::Exit(0) => Outcome::done(result(exit)),
        ExitReason::Exit(code @ (NOT_EXECUTABLE | NOT_FOUND)) => {
            let line = last.map_or_else(String::new, |line| format!(" ({line})"));
            Outcome::decline(format!("exit code {code}: a command cannot be run here{line}"))
        }
        ExitReason::Exit(code) => {
            let failure = failure(type_of(code), format!("the command ended with exit code {code}"));
            Outcome::Failed(match (code, reported.retry_after) {
                (DEAD_LETTER, _) => failure.unrecoverable(),
                (_, Some(delay)) => failure.retry_after(delay),
                (_, None) => failure,
            })
        }
        ExitReason::Signal(signal) => {
            Outcome::Failed(failure(format!("exec.signal_{signal}"), format!("signal {signal} ended the command")))
        }
        ExitReason::Unknown => {
            Outcome::Failed(failure("exec.unknown".to_owned(), "how the command ended is not known".to_owned()))
        }
        ExitReason::Stopped if !overdue => Outcome::snooze(Duration::ZERO),
        ExitReason::Stopped | ExitReason::TimedOut => {
            let limit = spec.timeout.filter(|_| exit.reason == ExitReason::TimedOut);
            let limit = limit.map_or_else(|| "its job allows".to_owned(), |limit| format!("{limit:?}"));
            let message = format!("the command took longer than {limit}, and was ended with all that it started");
            Outcome::Failed(Failure::new("timeout", message).with_details(details(exit)))
        }
    }
}

fn type_of(code: i32) -> String {
    match code {
        RETRY => "exec.temporary".to_owned(),
        DEAD_LETTER => "exec.invalid".to_owned(),
        other => format!("exec.exit_{other}"),
    }
}

/// Standard output as the result: JSON if it is valid JSON, else text; nothing if it is empty.
fn result(exit: &CommandExit) -> Value {
    let text = exit.stdout.text();
    if exit.stdout.is_cut() {
        return json!({ "truncated": true, "bytes": exit.stdout.total, "text": text });
    }
    match text.trim() {
        "" => Value::Null,
        trimmed => serde_json::from_str(trimmed).unwrap_or_else(|_| text.trim_end_matches(['\r', '\n']).into()),
    }
}

fn details(exit: &CommandExit) -> Value {
    let mut details = json!({});
    match exit.reason {
        ExitReason::Exit(code) => details["exit_code"] = code.into(),
        ExitReason::Signal(signal) => details["signal"] = signal.into(),
        ExitReason::TimedOut | ExitReason::Stopped | ExitReason::Unknown => {}
    }
    let stderr = exit.stderr.text();
    if !stderr.trim().is_empty() {
        details["stderr"] = stderr.trim_end().into();
        if exit.stderr.is_cut() {
            details["stderr_bytes"] = exit.stderr.total.into();
        }
    }
    details
}

/// The failure that a command describes, as JSON on the last line of standard error.
#[derive(Debug, Default, PartialEq)]
struct ReportedError {
    type_name: Option<String>,
    message: Option<String>,
    retry_after: Option<Duration>,
}

impl ReportedError {
    /// `None` if the line is something else: an object without these fields is an ordinary message.
    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let delay_ms = value.get("retry_after_ms").and_then(Value::as_f64).filter(|ms| *ms >= 0.0);
        let said = Self {
            type_name: text("type"),
            message: text("message"),
            retry_after: delay_ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok()),
        };
        (said != Self::default()).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::super::process;
    use super::*;

    async fn of(command: &str) -> Outcome {
        let spec = CommandSpec {
            command: command.to_owned(),
            arguments: Vec::new(),
            memory_kib: None,
            max_output: 100,
            timeout: Some(Duration::from_secs(60)),
            kill_after: Duration::from_secs(1),
            guard: None,
        };
        let exit = process::run(&spec, b"", &[], std::future::pending()).await.unwrap();
        outcome(&exit, &spec, false)
    }

    async fn failure(command: &str) -> Failure {
        match of(command).await {
            Outcome::Failed(failure) => failure,
            other => panic!("{command}: {other:?}"),
        }
    }

    #[tokio::test]
    async fn exit_code_0_is_done_with_what_was_printed() {
        for (command, expected) in [
            ("echo '{\"n\": [1, 2]}'", json!({ "n": [1, 2] })),
            ("echo 7", json!(7)),
            ("printf 'two\\nlines\\n\\n'", json!("two\nlines")),
            ("head -c 500 /dev/zero | tr '\\0' x", json!({ "truncated": true, "bytes": 500, "text": "x".repeat(100) })),
        ] {
            let Outcome::Done(Some(result)) = of(command).await else { panic!("{command}") };
            assert_eq!(serde_json::from_str::<Value>(result.get()).unwrap(), expected, "{command}");
        }
        assert!(matches!(of("true").await, Outcome::Done(None)));
    }

    #[tokio::test]
    async fn exit_codes_name_the_failure() {
        for (command, type_name, is_final) in [
            ("exit 75", "exec.temporary", false),
            ("exit 65", "exec.invalid", true),
            ("exit 1", "exec.exit_1", false),
            ("kill -KILL $$", "exec.signal_9", false),
        ] {
            let failure = failure(command).await;
            assert_eq!((failure.type_name(), failure.is_final()), (type_name, is_final), "{command}");
        }
        assert_eq!(failure("exit 3").await.message(), "the command ended with exit code 3");
        let spoken = failure("echo first >&2; echo 'the disk is full' >&2; exit 3").await;
        assert_eq!(spoken.message(), "the disk is full");
        let details: Value = serde_json::from_str(spoken.details().unwrap()).unwrap();
        assert_eq!(details, json!({ "exit_code": 3, "stderr": "first\nthe disk is full" }));
    }

    #[tokio::test]
    async fn a_command_that_cannot_run_is_not_a_failure_of_the_job() {
        for (command, said) in
            [("true && no-such-command-anywhere", "no-such-command-anywhere"), ("exec /dev/null", "exit code 126")]
        {
            let Outcome::Declined(reason) = of(command).await else { panic!("{command}") };
            assert!(reason.contains(said), "{command}: {reason}");
        }
    }

    #[tokio::test]
    async fn the_last_line_of_standard_error_names_type_message_and_delay() {
        let line = r#"{"type": "smtp.busy", "message": "try later", "retry_after_ms": 500}"#;
        let said = failure(&format!("echo noise >&2; echo '{line}' >&2; exit 75")).await;
        assert_eq!((said.type_name(), said.message()), ("smtp.busy", "try later"));
        assert!(format!("{said:?}").contains("After(500ms)"), "{said:?}");
        let partly = failure("echo '{\"type\": \"x.y\"}' >&2; exit 9").await;
        assert_eq!((partly.type_name(), partly.message()), ("x.y", "the command ended with exit code 9"));
        let dead = failure(&format!("echo '{line}' >&2; exit 65")).await;
        assert!(dead.is_final(), "the exit code decides");
        for line in [r#"{"other": 1}"#, "[1]", "7", r#"{"type": 5, "retry_after_ms": -1}"#] {
            assert_eq!(failure(&format!("echo '{line}' >&2; exit 9")).await.message(), line);
        }
    }
}
