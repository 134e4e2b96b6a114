//! docs/http.md: every line of it, in its order, against a server.

use crate::guides::{block, fits};
use crate::harness::{Folder, Server};
use std::path::Path;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../../docs/http.md");
/// What stands in the output before the answers to a block.
const MARK: &str = "== the next block";

/// The blocks of commands, each with the answers that the page has behind it.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut blocks = Vec::new();
    let mut rest = PAGE;
    while rest.contains("```sh\n") {
        let (commands, behind) = block(rest, "sh");
        let (until, answers) = behind.split_at(behind.find("```sh\n").unwrap_or(behind.len()));
        let expected = if until.contains("```text\n") { block(until, "text").0 } else { "" };
        blocks.push((commands, expected));
        rest = answers;
    }
    blocks
}

/// Curl, which is installed if it is missing.
fn has_curl() -> bool {
    let starts = || Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok();
    let install =
        || Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install")).arg("curl").status();
    starts() || install().is_ok() && starts()
}

#[test]
fn every_line_of_the_page_about_http_works() {
    assert!(has_curl());
    let folder = Folder::new("page-http");
    let server = Server::start(&folder.at("data"));
    let address = server.url.strip_prefix("http://").expect("an address");
    let blocks = blocks();
    // A terminal shows where an answer ends; here each is a line.
    let mut script = "exec 2>&1\ncurl() { command curl -sS -w '\\n' \"$@\"; }\n".to_owned();
    for (commands, _) in &blocks {
        script.push_str(&format!("echo '{MARK}'\n{}", commands.replace("127.0.0.1:8080", address)));
    }
    let output = Command::new("sh").arg("-c").arg(script).current_dir(folder.path()).output().expect("a shell");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let printed: Vec<&str> = printed.split(MARK).skip(1).collect();
    assert_eq!(printed.len(), blocks.len());
    for ((commands, expected), printed) in blocks.iter().zip(printed) {
        let lines: Vec<&str> = printed.lines().filter(|line| !line.is_empty()).collect();
        let expected: Vec<&str> = expected.lines().collect();
        let fitting = lines.len() == expected.len() && lines.iter().zip(&expected).all(|(line, like)| fits(line, like));
        assert!(fitting, "{commands}\nprinted:\n{}\n\nthe page has:\n{}", lines.join("\n"), expected.join("\n"));
    }
}
