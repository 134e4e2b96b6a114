//! The commands at the beginning of the guides, as they stand there, and what they print.

use crate::harness::{Folder, Server, redrive, until};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The first block of a guide in this language, and the text behind it.
pub(crate) fn block<'g>(guide: &'g str, language: &str) -> (&'g str, &'g str) {
    let (_, rest) = guide.split_once(&format!("```{language}\n")).expect("the guide has such a block");
    rest.split_once("```\n").expect("it ends")
}

/// What is printed, with one blank between words.
fn words(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Whether a line is as a guide has it, where `…` stands for any text.
pub(crate) fn fits(line: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        (rest, last) = (behind, Some(part));
    }
    rest.is_empty() || last.is_some_and(str::is_empty)
}

/// Runs the first commands of a guide in a folder, and compares what they print with the block of text behind them.
fn run(guide: &str, folder: &Folder, server: &Server, adapt: impl Fn(&str) -> String) {
    let (commands, rest) = block(guide, "sh");
    let (expected, _) = block(rest, "text");
    let program = redrive(&[]);
    let bin = Path::new(program.get_program()).parent().expect("a folder").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").expect("a path"));
    let mut shell = Command::new("sh");
    for (name, _) in program.get_envs().filter(|(_, value)| value.is_none()) {
        shell.env_remove(name);
    }
    shell.arg("-c").arg(format!("exec 2>&1\n{}", adapt(commands))).current_dir(folder.path());
    let output = shell.env("PATH", path).env("REDRIVE_SERVER", &server.url).output().expect("a shell");
    let printed = words(&String::from_utf8_lossy(&output.stdout));
    let expected = words(expected);
    let fitting = printed.len() == expected.len() && printed.iter().zip(&expected).all(|(line, like)| fits(line, like));
    assert!(fitting, "printed:\n{}\n\nthe guide has:\n{}", printed.join("\n"), expected.join("\n"));
}

fn run_plain(name: &str, guide: &str) {
    let folder = Folder::new(name);
    let server = Server::start(&folder.at("data"));
    run(guide, &folder, &server, str::to_owned);
}

#[test]
fn a_pattern_stands_for_the_whole_line() {
    assert!(fits("in 3 h, at 9", "in …, at 9") && fits("abc", "abc") && fits("abc", "a…") && fits("", ""));
    assert!(!fits("abcd", "abc") && !fits("abc", "a…d") && !fits("xabc", "abc") && !fits("abcx", "a…c"));
}

#[test]
fn the_guide_to_schedules() {
    run_plain("guide-schedules", include_str!("../../../../docs/guides/schedules.md"));
}

#[test]
fn the_guide_to_unique_jobs() {
    run_plain("guide-unique", include_str!("../../../../docs/guides/unique-jobs.md"));
}

#[test]
fn the_guide_to_limits() {
    run_plain("guide-limits", include_str!("../../../../docs/guides/limits.md"));
}

#[test]
fn the_guide_to_events() {
    run_plain("guide-events", include_str!("../../../../docs/guides/events.md"));
}

#[test]
fn the_guide_to_workflows() {
    const GUIDE: &str = include_str!("../../../../docs/guides/workflows.md");
    let folder = Folder::new("guide-workflows");
    let server = Server::start(&folder.at("data"));
    folder.file("pipeline.json", block(GUIDE, "json").0);
    run(GUIDE, &folder, &server, str::to_owned);
    let picture = std::fs::read_to_string(folder.at("pipeline.svg")).expect("it was drawn");
    assert!(picture.starts_with("<svg"), "{picture}");
}

/// Ends with its value.
struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_guide_to_webhooks() {
    const GUIDE: &str = include_str!("../../../../docs/guides/webhooks.md");
    let folder = Folder::new("guide-webhooks");
    let open = [("REDRIVE_WEBHOOKS_ALLOW_PRIVATE", "true"), ("REDRIVE_WEBHOOKS_ALLOW_HTTP", "true")];
    let server = Server::start_under(&open, &["--data", &folder.at("data")], &[]);
    // A port that was free a moment ago, in place of that of the guide.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port().to_string();
    let adapt = |text: &str| text.replace("9000", &port);
    folder.file("receiver.py", &adapt(block(GUIDE, "python").0));
    let mut python = Command::new("python3");
    python.arg("receiver.py").current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let _receiver = Receiver(python.spawn().expect("python3"));
    until("it listens", || TcpStream::connect(format!("127.0.0.1:{port}")).ok());
    run(GUIDE, &folder, &server, adapt);
}
