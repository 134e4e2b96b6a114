//! What commands print, and what they do not print.

use crate::harness::{Folder, Server, redrive, stderr, stdout};
use serde_json::json;
use std::process::Stdio;

#[test]
fn the_id_alone_is_printed_where_it_is_all_that_is_wanted() {
    let folder = Folder::new("quiet");
    let server = Server::start(&folder.at("data"));
    let id = server.printed(&["enqueue", "a.b", "--quiet"]);
    assert_eq!(server.printed_json(&["job", "show", id.trim(), "--json"])["id"], id.trim());
    let file = folder.file("jobs.jsonl", "{\"type\": \"c.d\"}\n{\"type\": \"c.d\"}\n");
    let quiet = server.printed(&["enqueue", "--batch", &file, "--quiet"]);
    let document = server.printed_json(&["enqueue", "--batch", &file, "--json"]);
    let ids: Vec<&str> = document["ids"].as_array().expect("ids").iter().filter_map(|id| id.as_str()).collect();
    let listed = server.printed_json(&["jobs", "--type", "c.d", "--json"]);
    let mut stored: Vec<&str> =
        listed["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str()).collect();
    stored.reverse();
    assert_eq!(stored, quiet.lines().chain(ids).collect::<Vec<_>>());
}

#[test]
fn waiting_for_a_job_prints_its_result() {
    let folder = Folder::new("result");
    let server = Server::start(&folder.at("data"));
    let enqueue = |more: &str| {
        let mut command = redrive(&["enqueue", "a.b", "--wait=60s", more, "--server", &server.url]);
        command.stdout(Stdio::piped()).spawn().expect("it runs")
    };
    let waiting = [enqueue("--queue=default"), enqueue("--quiet")];
    let work = ["work", "--drain", "--exec", "echo '{\"sent\": true}'"];
    crate::harness::until("both jobs are there", || {
        (server.printed_json(&["jobs", "--json"])["total"] == 2).then_some(())
    });
    server.printed(&work);
    let [words, quiet] = waiting.map(|child| stdout(&child.wait_with_output().expect("it ends")));
    assert!(words.lines().last().is_some_and(|line| line.ends_with("result {\"sent\":true}")), "{words}");
    assert_eq!(quiet, "{\"sent\":true}\n");
}

#[test]
fn text_of_a_job_does_not_control_the_terminal() {
    let folder = Folder::new("escapes");
    let server = Server::start(&folder.at("data"));
    let policy = folder.file("once.json", r#"{"max_attempts": 1, "on_exhaustion": "dead_letter"}"#);
    let id = server.printed(&["enqueue", "a.b", "\"\\u001b[2J\"", "--quiet", "--retry", &policy]);
    let shell = r"printf '\033[31mred\033]0;title\007\n' >&2; exit 1";
    let worked = server.command(&["work", "--drain", "--exec", shell]);
    let id = id.trim();
    let mut seen = stdout(&worked) + &stderr(&worked);
    for args in [&["job", "explain", id][..], &["job", "show", id], &["dead", "list"], &["dead", "show", id]] {
        seen.push_str(&server.printed(args));
    }
    assert!(seen.contains("\\u{1b}[31mred"), "{seen}");
    assert!(!seen.contains('\u{1b}') && !seen.contains('\u{7}'), "{seen:?}");
}

#[test]
fn no_password_is_printed() {
    let address = "postgres://user:sesame@127.0.0.1:1/app";
    for args in [
        &["store", "check", address][..],
        &["store", "compact", address],
        &["store", "backup", address, "copy"],
        &["store", "backup", "data", address],
        &["store", "copy", address, "data"],
        &["serve", "--store", address],
    ] {
        let output = redrive(args).output().expect("it runs");
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        let message = stdout(&output) + &stderr(&output);
        assert!(!message.contains("sesame"), "{args:?}: {message}");
    }
    let checked = redrive(&["store", "check", address]).output().expect("it runs");
    assert_eq!(checked.status.code(), Some(3), "no database is there: {}", stderr(&checked));
    let compacted = redrive(&["store", "compact", address]).output().expect("it runs");
    assert_eq!(compacted.status.code(), Some(2));
    assert!(stderr(&compacted).contains("allowed is the folder of a store"), "{}", stderr(&compacted));
}

#[test]
fn hints_are_for_the_user_of_the_command() {
    let folder = Folder::new("hints");
    let server = Server::start(&folder.at("data"));
    let output = server.command(&["enqueue", "No Type!"]);
    assert!(!stderr(&output).contains("details.problems"), "{}", stderr(&output));
    let output = server.command(&["job", "show", "01890000-0000-7000-8000-000000000001"]);
    assert!(stderr(&output).contains("retention") && !stderr(&output).contains("the path"), "{}", stderr(&output));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for args in [&["completions", "bash"][..], &["config"]] {
        let mut child = redrive(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_picture_can_be_printed() {
    let folder = Folder::new("picture");
    let policy = folder.file("retry.json", &json!({ "max_attempts": 5 }).to_string());
    for args in [&["policy", "schedule", &policy, "--svg", "-"][..], &["policy", "simulate", &policy, "--svg", "-"]] {
        let output = redrive(args).output().expect("it runs");
        let message = stdout(&output);
        assert!(message.starts_with("<svg") && message.trim_end().ends_with("</svg>"), "{args:?}: {message}");
    }
    let both = redrive(&["policy", "simulate", &policy, "--svg", "-", "--json"]).output().expect("it runs");
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn the_log_is_one_object_on_each_line_where_the_configuration_says_so() {
    let folder = Folder::new("log-json");
    let server = Server::start_with(&folder.at("data"), &["--set", "log.format=json"]);
    server.enqueue(json!({ "type": "a.b", "args": [], "options": { "queue": "mail" } }));
    server.printed(&["queues", "pause", "mail"]);
    let (_, log) = server.stop();
    let lines: Vec<serde_json::Value> =
        log.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let paused = lines.iter().find(|line| line["queue"] == "mail").unwrap_or_else(|| panic!("{log:?}"));
    assert_eq!(paused["level"], "info");
    assert!(paused["message"].as_str().is_some_and(|message| message.starts_with("queue mail was")), "{paused}");
    assert!(paused["target"].as_str().is_some_and(|target| target.starts_with("redrive_server")), "{paused}");
}

#[test]
fn an_invalid_log_level_is_refused() {
    for (setting, allowed) in [("log.level=inof", "error, warn, info"), ("log.format=yaml", "text, or json")] {
        let output = redrive(&["config", "--set", setting]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(allowed), "{output:?}");
    }
}
