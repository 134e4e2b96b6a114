//! The programs in docs/guides/any-language.md, as they stand there.

use crate::harness::{Folder, Server, until};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const GUIDE: &str = include_str!("../../../../docs/guides/any-language.md");

/// The only program of the guide in this language.
fn program(language: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let (_, rest) = GUIDE.split_once(fence.as_str()).expect("the guide has such a program");
    let (program, rest) = rest.split_once("```").expect("it ends");
    assert!(!rest.contains(fence.as_str()), "one program for each language");
    program
}

/// Runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts an interpreter, which is installed if it is missing.
fn start(interpreter: &str, package: &str, file: &str, server: &Server) -> Running {
    let spawn = || Command::new(interpreter).arg(file).env("REDRIVE_SERVER", &server.url).stdout(Stdio::null()).spawn();
    let child = spawn().or_else(|_| {
        let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install");
        assert!(Command::new(install).arg(package).status().expect("it runs").success(), "{package} is installed");
        spawn()
    });
    Running(child.expect("the interpreter starts"))
}

#[test]
fn the_workers_of_the_guide_work() {
    for (language, interpreter, package, name) in
        [("python", "python3", "python3", "worker.py"), ("js", "node", "nodejs", "worker.mjs")]
    {
        let folder = Folder::new(language);
        let server = Server::start(&folder.at("data"));
        let id = server.printed(&["enqueue", "mail.send", "\"ada@example.org\"", "--quiet"]);
        let failing = server.printed(&["enqueue", "mail.send", "--quiet"]);
        let _worker = start(interpreter, package, &folder.file(name, program(language)), &server);
        let show = |id: &str| server.printed_json(&["job", "show", id.trim(), "--json"]);
        until("the job is done", || (show(&id)["state"] == "completed").then_some(()));
        assert_eq!(show(&id)["result"]["sent"], Value::Bool(true), "{language}");
        // Python refuses a call without its argument, JavaScript does not.
        let ended = until("the other run is reported", || {
            let job = show(&failing);
            (job["errors"].as_array().is_some_and(|errors| !errors.is_empty()) || job["state"] == "completed")
                .then_some(job)
        });
        if language == "python" {
            assert_eq!(ended["errors"][0]["type"], "TypeError", "{ended}");
        }
    }
}
