//! One command, from its start to the end of everything that it started.
//!
//! The command runs in a process group of its own, so that it can be ended with its children and theirs.
//! When the command has ended, the rest of the group is killed: the processes of a job end with it. The worker does not
//! wait for a process that leaves the group (`setsid`).

use super::capture::{Captured, Part, capture};
use super::guard::Guard;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

/// How much of standard error is stored: its end, where programs report why they failed.
const STDERR_BYTES: usize = 8 << 10;

/// How long to wait for the rest of the output once the command has ended. The rest of its group has ended by
/// then; only a process that left the group can still keep the output open.
const LINGER: Duration = Duration::from_millis(500);

/// How a command is run.
#[derive(Clone, Debug)]
pub(super) struct CommandSpec {
    /// The text for the shell.
    pub(super) command: String,
    /// What the command gets as `"$@"`.
    pub(super) arguments: Vec<String>,
    /// The most memory that each of its processes may take, in KiB of address space.
    pub(super) memory_kib: Option<u64>,
    /// How much of its output is stored, in bytes.
    pub(super) max_output: usize,
    /// How long it may take.
    pub(super) timeout: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub(super) kill_after: Duration,
    /// Ends it if this process cannot.
    pub(super) guard: Option<Arc<Guard>>,
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct CommandExit {
    pub(super) reason: ExitReason,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
}

/// What made it end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExitReason {
    /// It ended with this code.
    Exit(i32),
    /// A signal ended it.
    Signal(i32),
    /// It took too long.
    TimedOut,
    /// The job was cancelled.
    Stopped,
    /// Nothing is known of its end.
    Unknown,
}

/// Runs a command with `input` on its standard input. It is ended early once `stop` completes; dropping
/// the run kills it.
///
/// # Errors
/// The command could not be started.
pub(super) async fn run(
    spec: &CommandSpec,
    input: &[u8],
    environment: &[(&str, String)],
    stop: impl Future<Output = ()>,
) -> io::Result<CommandExit> {
    let mut child = shell(spec, environment).spawn()?;
    let group = Group::of(&child, spec.guard.clone());
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (done, is_done) = watch::channel(false);
    let lingered = || linger_after(is_done.clone());
    let command = async {
        let reason = wait_or_stop(spec, &mut child, &group, stop).await;
        // Children that outlive the command would hold its output open.
        group.end();
        done.send_replace(true);
        reason
    };
    let (reason, (), stdout, stderr) = tokio::join!(
        command,
        write_input(stdin, input, lingered()),
        capture(stdout, Part::Start(spec.max_output), lingered()),
        capture(stderr, Part::End(STDERR_BYTES), lingered()),
    );
    Ok(CommandExit { reason: reason.unwrap_or(ExitReason::Unknown), stdout, stderr })
}

/// Completes some time after the command has ended.
async fn linger_after(mut ended: watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
    tokio::time::sleep(LINGER).await;
}

/// A command under a limit on memory, which is set by the shell itself and inherited by all that it starts.
const LIMITED: &str = "ulimit -v \"$1\" && command=$2 && shift 2 && eval \"$command\"";

fn shell(spec: &CommandSpec, environment: &[(&str, String)]) -> Command {
    let mut shell = Command::new("sh");
    match spec.memory_kib {
        None => shell.args(["-c", &spec.command, "sh"]),
        Some(kib) => shell.args(["-c", LIMITED, "sh", &kib.to_string(), &spec.command]),
    };
    shell.args(&spec.arguments);
    shell.envs(environment.iter().map(|(name, value)| (name, value)));
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    shell
}

/// Waits for the command, and ends it when it is stopped or takes too long.
async fn wait_or_stop(
    spec: &CommandSpec,
    child: &mut Child,
    group: &Group,
    stop: impl Future<Output = ()>,
) -> io::Result<ExitReason> {
    let overdue = async {
        match spec.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let why = tokio::select! {
        biased;
        status = child.wait() => return Ok(exit_reason(status?)),
        () = stop => ExitReason::Stopped,
        () = overdue => ExitReason::TimedOut,
    };
    group.signal(Signal::TERM);
    if tokio::time::timeout(spec.kill_after, child.wait()).await.is_err() {
        group.signal(Signal::KILL);
        child.wait().await?;
    }
    Ok(why)
}

fn exit_reason(status: ExitStatus) -> ExitReason {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Exit(code),
        (None, Some(signal)) => ExitReason::Signal(signal),
        (None, None) => ExitReason::Unknown,
    }
}

/// Writes the input, until `stop` completes. A command that does not read it is not an error.
async fn write_input(stdin: Option<ChildStdin>, input: &[u8], stop: impl Future<Output = ()>) {
    let Some(mut stdin) = stdin else { return };
    tokio::select! {
        _ = stdin.write_all(input) => {}
        () = stop => {}
    }
}

/// The process group of a command; dropping it kills what is left of the group.
///
/// Its number stays in use as long as any process is left, and may be reused after that: no signal is sent once the
/// group was ended.
struct Group {
    number: AtomicI32,
    guard: Option<Arc<Guard>>,
}

impl Group {
    /// The command leads its group: the two have the same number.
    fn of(child: &Child, guard: Option<Arc<Guard>>) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
        if let Some(guard) = &guard {
            guard.started(number);
        }
        Self { number: AtomicI32::new(number), guard }
    }

    /// Does nothing if the group has ended already.
    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.number.load(Ordering::Acquire)) {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Kills what is left.
    fn end(&self) {
        self.signal(Signal::KILL);
        let number = self.number.swap(0, Ordering::AcqRel);
        if let Some(guard) = self.guard.as_ref().filter(|_| number != 0) {
            guard.ended(number);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    fn spec(command: &str) -> CommandSpec {
        CommandSpec {
            command: command.to_owned(),
            arguments: Vec::new(),
            memory_kib: None,
            max_output: 1_000,
            timeout: Some(Duration::from_secs(60)),
            kill_after: Duration::from_secs(60),
            guard: None,
        }
    }

    async fn ended(spec: &CommandSpec) -> CommandExit {
        run(spec, b"{\"n\": 1}", &[("REDRIVE_JOB_ID", "7".to_owned())], std::future::pending()).await.unwrap()
    }

    /// A folder for what commands leave behind.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("redrive-process-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Waits for a line in a file.
    async fn line_of(path: &Path) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if text.ends_with('\n') {
                return text.trim().to_owned();
            }
            assert!(Instant::now() < deadline, "{} stays empty", path.display());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until a process is gone, or a zombie that has not been reaped yet.
    async fn gone(id: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let status = std::process::Command::new("ps").args(["-o", "stat=", "-p", id]).output().unwrap();
            let status = String::from_utf8_lossy(&status.stdout).trim().to_owned();
            if status.is_empty() || status.starts_with('Z') {
                return;
            }
            assert!(Instant::now() < deadline, "process {id} is still there as {status}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    #[tokio::test]
    async fn a_command_reads_the_job_and_its_environment_and_ends_with_a_code() {
        let exit = ended(&spec("cat; printf ' %s' \"$REDRIVE_JOB_ID\"; echo oops >&2; exit 7")).await;
        assert_eq!(exit.reason, ExitReason::Exit(7));
        assert_eq!((exit.stdout.text(), exit.stderr.text()), ("{\"n\": 1} 7".into(), "oops\n".into()));
        for code in [0, 1, 65, 75, 127, 255] {
            assert_eq!(ended(&spec(&format!("exit {code}"))).await.reason, ExitReason::Exit(code));
        }
        assert_eq!(ended(&spec("kill -9 $$")).await.reason, ExitReason::Signal(9));
    }

    #[tokio::test]
    async fn unread_input_is_not_an_error() {
        let long = vec![b'x'; 1 << 20];
        let exit = run(&spec("exec true"), &long, &[], std::future::pending()).await.unwrap();
        assert_eq!(exit.reason, ExitReason::Exit(0));
    }

    #[tokio::test]
    async fn output_is_bounded_and_never_blocks_the_command() {
        let noisy =
            "head -c 5000000 /dev/zero | tr '\\0' 'a'; head -c 3000000 /dev/zero | tr '\\0' 'b' >&2; echo end >&2";
        let exit = ended(&spec(noisy)).await;
        assert_eq!(exit.reason, ExitReason::Exit(0));
        assert_eq!((exit.stdout.text().len(), exit.stdout.total), (1_000, 5_000_000));
        assert_eq!((exit.stderr.text().len(), exit.stderr.total), (STDERR_BYTES, 3_000_004));
        assert!(exit.stderr.text().ends_with("bend\n"), "its end is stored");
    }

    #[tokio::test]
    async fn a_timeout_ends_grandchildren_too() {
        let folder = Folder::new("timeout");
        let file = folder.at("id");
        let command = format!("sh -c 'sleep 600 & echo $! > {}; wait'", file.display());
        let spec = CommandSpec { timeout: Some(Duration::from_millis(300)), ..spec(&command) };
        assert_eq!(ended(&spec).await.reason, ExitReason::TimedOut);
        gone(&line_of(&file).await).await;
    }

    #[tokio::test]
    async fn a_command_that_ignores_sigterm_is_killed() {
        let stubborn = "trap '' TERM; while :; do sleep 600; done";
        let spec = CommandSpec {
            timeout: Some(Duration::from_millis(200)),
            kill_after: Duration::from_millis(200),
            ..spec(stubborn)
        };
        assert_eq!(ended(&spec).await.reason, ExitReason::TimedOut);
    }

    #[tokio::test]
    async fn a_command_may_write_output_after_sigterm() {
        let folder = Folder::new("polite");
        let ready = folder.at("ready");
        let polite = format!("trap 'echo bye; exit 3' TERM; echo > {}; while :; do sleep 0.01; done", ready.display());
        let stop = async { drop(line_of(&ready).await) };
        let exit = run(&spec(&polite), b"", &[], stop).await.unwrap();
        assert_eq!((exit.reason, exit.stdout.text()), (ExitReason::Stopped, "bye\n".into()));
    }

    #[tokio::test]
    async fn what_a_command_leaves_behind_ends_with_it() {
        let folder = Folder::new("left");
        let file = folder.at("id");
        let exit = ended(&spec(&format!("sleep 600 & echo $! > {}; echo done", file.display()))).await;
        assert_eq!((exit.reason, exit.stdout.text()), (ExitReason::Exit(0), "done\n".into()));
        gone(&line_of(&file).await).await;
    }

    #[tokio::test]
    async fn a_process_that_leaves_the_group_is_not_waited_for() {
        let folder = Folder::new("daemon");
        let file = folder.at("id");
        let file_name = file.display();
        let daemon = format!("setsid sh -c 'echo $$ > {file_name}; exec sleep 600' &");
        let command = format!("{daemon} echo done; until test -s {file_name}; do sleep 0.01; done");
        let exit = ended(&spec(&command)).await;
        let id = line_of(&file).await;
        assert_eq!((exit.reason, exit.stdout.text()), (ExitReason::Exit(0), "done\n".into()));
        assert!(std::process::Command::new("kill").arg(&id).status().unwrap().success(), "it is still running");
    }

    #[tokio::test]
    async fn a_run_that_is_dropped_leaves_nothing_behind() {
        let folder = Folder::new("dropped");
        let file = folder.at("id");
        let spec = spec(&format!("sleep 600 & echo $! > {}; wait", file.display()));
        let id = {
            let running = run(&spec, b"", &[], std::future::pending());
            tokio::select! {
                _ = running => panic!("it sleeps"),
                id = line_of(&file) => id,
            }
        };
        gone(&id).await;
    }

    #[tokio::test]
    async fn memory_is_limited() {
        let greedy = "x=$(head -c 400000000 /dev/zero | tr '\\0' 'a'); echo ${#x}";
        let exit = ended(&CommandSpec { memory_kib: Some(100_000), ..spec(greedy) }).await;
        assert_ne!(exit.reason, ExitReason::Exit(0), "{}", exit.stdout.text());
        let modest = ended(&CommandSpec { memory_kib: Some(1_000_000), ..spec("echo \"$REDRIVE_JOB_ID\"") }).await;
        assert_eq!((modest.reason, modest.stdout.text()), (ExitReason::Exit(0), "7\n".into()));
    }
}
