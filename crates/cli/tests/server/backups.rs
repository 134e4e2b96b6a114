//! Backups by a schedule, and restoring them.

use crate::harness::{Folder, Server, redrive, stderr, stdout, until};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder for backups.
fn backups(folder: &Folder) -> String {
    std::fs::create_dir(folder.path().join("backups")).expect("a folder");
    folder.at("backups")
}

/// A server that makes a backup each second.
fn scheduled(folder: &Folder, data: &str, keep: usize) -> Server {
    let (to, keep) = (format!("backups={}", folder.at("backups")), format!("backup.keep={keep}"));
    Server::start_with(data, &["--set", &to, "--set", "backup.every=1s", "--set", &keep])
}

/// The backups of the schedule by their numbers.
fn numbers(backups: &str) -> Vec<u64> {
    let entries = std::fs::read_dir(backups).expect("a folder").filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().into_string().expect("text"));
    let number = |name: String| name.strip_prefix("scheduled-")?.rsplit('-').next()?.parse().ok();
    let mut numbers: Vec<u64> = names.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn restore(args: &[&str]) -> Value {
    let output = redrive(&[&["store", "restore"], args, &["--json"]].concat()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn refused(args: &[&str], code: i32, parts: &[&str]) {
    let output = redrive(&[&["store", "restore"], args].concat()).output().expect("it runs");
    let message = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    parts.iter().for_each(|part| assert!(message.contains(part), "{args:?}: no {part}: {message}"));
}

#[test]
fn a_schedule_keeps_the_newest_backups_through_restarts_and_leaves_those_of_others_alone() {
    let folder = Folder::new("schedule");
    let (data, backups) = (folder.at("data"), backups(&folder));
    std::fs::create_dir(folder.path().join("backups/mine")).expect("a folder");
    let server = scheduled(&folder, &data, 2);
    // One backup at a time: a caller may have to wait for that of the schedule.
    let named = || server.command(&["store", "backup", "--server", &server.url, "--name", "before-the-move"]);
    until("a backup for a caller", || Some(()).filter(|()| named().status.code() == Some(0)));
    until("the first one is deleted", || numbers(&backups).last().filter(|last| **last > 3).copied());
    let health = server.ask("GET", "/ojs/v1/health", Value::Null)["store"]["backups"].clone();
    assert_eq!(health["status"], "ok", "{health}");
    assert!(health["last"]["name"].as_str().is_some_and(|name| name.starts_with("scheduled-")), "{health}");
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    assert!(log.iter().any(|line| line.contains("deleted the backup")), "{log:#?}");
    let last = *numbers(&backups).last().expect("a backup");
    let server = scheduled(&folder, &data, 2);
    until("the numbers go on", || numbers(&backups).last().filter(|number| **number > last + 2).copied());
    assert_eq!(server.stop().0.code(), Some(0));
    for name in ["mine", "before-the-move"] {
        assert!(Path::new(&backups).join(name).is_dir(), "{name}");
    }
    assert!((2..=3).contains(&numbers(&backups).len()), "{:?}", numbers(&backups));
}

#[test]
fn a_backup_that_fails_is_reported_and_tried_again() {
    let folder = Folder::new("failing");
    let backups = backups(&folder);
    let server = scheduled(&folder, &folder.at("data"), 9);
    let health = || server.ask("GET", "/ojs/v1/health", Value::Null);
    until("a backup", || Some(()).filter(|()| health()["store"]["backups"]["last"].is_object()));
    std::fs::rename(&backups, folder.at("unmounted")).expect("the disk is gone");
    until("health tells", || Some(()).filter(|()| health()["store"]["backups"]["status"] == "failing"));
    // One that was being made in that moment may have failed for another reason.
    let told = |found: &Value| found["store"]["warnings"][0].as_str().is_some_and(|text| text.contains("is mounted"));
    let found = until("the reason", || Some(health()).filter(told));
    assert_eq!(found["status"], "ok", "the server works on: {found}");
    let warning = found["store"]["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("no backup could be made since") && warning.contains("the last one is"), "{warning}");
    assert!(!Path::new(&backups).exists(), "a folder that is missing is not made");
    assert!(server.log_lines().iter().any(|line| line.contains("the backup failed: ")), "{:#?}", server.log_lines());
    std::fs::rename(folder.at("unmounted"), &backups).expect("it is back");
    until("it goes on", || Some(()).filter(|()| health()["store"]["backups"]["status"] == "ok"));
    assert_eq!(health()["store"]["warnings"], json!([]));
}

#[test]
fn a_schedule_without_a_folder_or_for_a_database_is_refused_when_the_server_starts() {
    let alone = ["config", "--set", "backup.every=24h"];
    let for_database = ["config", "--set", "backup.every=24h", "--store", "postgres://db.internal/app"];
    for (args, part) in [(&alone[..], "set backups to one"), (&for_database, "pg_dump")] {
        let output = redrive(args).output().expect("it runs");
        let message = format!("{}{}", stdout(&output), stderr(&output));
        assert_ne!(output.status.code(), Some(0), "{message}");
        assert!(message.contains("backup.every: ") && message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_restore_takes_the_newest_backup_of_a_time_and_overwrites_nothing() {
    let folder = Folder::new("restore");
    let (data, backups) = (folder.at("data"), backups(&folder));
    let server = scheduled(&folder, &data, 100);
    until("two backups", || Some(()).filter(|()| numbers(&backups).len() >= 2));
    server.enqueue(json!({ "type": "a.b", "args": [] }));
    let before = *numbers(&backups).last().expect("a backup");
    until("two more", || numbers(&backups).last().filter(|number| **number >= before + 2).copied());
    assert_eq!(server.stop().0.code(), Some(0));
    let named: HashMap<u64, PathBuf> = std::fs::read_dir(&backups)
        .expect("a folder")
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            Some((path.to_str()?.rsplit('-').next()?.parse().ok()?, path))
        })
        .collect();
    let taken_at = |number: u64| {
        let label = std::fs::read_to_string(named[&number].join("backup.json")).expect("a label");
        let label: Value = serde_json::from_str(&label).expect("JSON");
        label["taken_at"].as_str().expect("a time").to_owned()
    };
    let old = restore(&[&backups, &folder.at("old"), "--at", &taken_at(1)]);
    assert_eq!((&old["jobs"]["available"], &old["sound"]), (&json!(0), &json!(true)), "{old}");
    assert_eq!(old["backup"]["taken_at"], json!(taken_at(1)), "{old}");
    let new = restore(&[&backups, &folder.at("new"), "--at", "0s"]);
    assert_eq!(new["jobs"]["available"], 1, "{new}");
    assert!(!folder.path().join("new/backup.json").exists(), "a store is no backup");

    let newest = named[&(before + 2)].to_str().expect("text");
    refused(&[newest, &folder.at("new")], 3, &["is not empty"]);
    refused(&[newest, newest], 3, &["is not empty"]);
    refused(&[&backups, &folder.at("x")], 1, &["is not a backup but a folder with", "--at TIME"]);
    refused(&[&backups, &folder.at("x"), "--at", "2020-01-01T00:00:00Z"], 1, &["the oldest was taken at"]);
    refused(&[&folder.at("nothing"), &folder.at("x")], 3, &["there is no store in"]);
    refused(&["postgres://db.internal/app", &folder.at("x")], 2, &["pg_restore"]);
    let log = named[&(before + 2)].join("00000001.log");
    let mut bytes = std::fs::read(&log).expect("a log");
    bytes[600] ^= 1;
    std::fs::write(&log, &bytes).expect("it is ours");
    refused(&[newest, &folder.at("x")], 1, &["DAMAGED"]);
    assert!(!Path::new(&folder.at("x")).exists(), "nothing is left of a restore that was refused");
}

/// What a client knows of the jobs that it was told about: when each was accepted, and when completed.
#[derive(Default)]
struct Known {
    accepted: HashMap<String, Duration>,
    completed: HashMap<String, Duration>,
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970")
}

/// Backups are taken under load, the server is killed, and its folder is gone.
#[test]
fn drill_everything_that_was_acknowledged_before_a_backup_is_there_after_its_restore() {
    let folder = Folder::new("drill");
    let (data, backups) = (folder.at("data"), backups(&folder));
    let mut server = scheduled(&folder, &data, 3);
    let (known, enough) = (Mutex::new(Known::default()), AtomicBool::new(false));
    let note = |change: &dyn Fn(&mut Known)| change(&mut known.lock().expect("no thread panicked"));
    let load = |work: bool| {
        while !enough.load(Ordering::SeqCst) {
            if work {
                for job in server.fetch("default", 5) {
                    let done = server.succeed(&job);
                    assert_eq!(done["acknowledged"], true, "{done}");
                    let id = job["id"].as_str().expect("an id").to_owned();
                    note(&|known| known.completed.extend([(id.clone(), now())]));
                }
            } else {
                let options = json!({ "visibility_timeout_ms": 1_000 });
                let id = server.enqueue(json!({ "type": "a.b", "args": [], "options": options }));
                note(&|known| known.accepted.extend([(id.clone(), now())]));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| load(false));
        scope.spawn(|| load(false));
        scope.spawn(|| load(true));
        until("some backups", || numbers(&backups).last().filter(|number| **number > 3).copied());
        enough.store(true, Ordering::SeqCst);
    });
    // One job is with a worker when the server is killed.
    let held = server.fetch("default", 1);
    let last = *numbers(&backups).last().expect("a backup");
    until("one more backup", || numbers(&backups).last().filter(|number| **number > last + 1).copied());
    server.kill();
    std::fs::remove_dir_all(&data).expect("the disk is gone");

    let report = restore(&[&backups, &data, "--at", "0s"]);
    let taken_at = report["backup"]["taken_at"].as_str().expect("a time");
    let taken_at = redrive_ojs::time::parse_rfc3339(taken_at).expect("a time").micros();
    let taken_at = Duration::from_micros(u64::try_from(taken_at).expect("after 1970"));
    let server = scheduled(&folder, &data, 3);
    let known = known.into_inner().expect("no thread panicked");
    let before = |entries: &HashMap<String, Duration>| -> Vec<String> {
        entries.iter().filter(|(_, at)| **at < taken_at).map(|(id, _)| id.clone()).collect()
    };
    let (accepted, completed) = (before(&known.accepted), before(&known.completed));
    assert!(accepted.len() > 50 && completed.len() > 10, "{} and {}", accepted.len(), completed.len());
    let ended = |id: &String| server.state(id) == "completed";
    completed.iter().for_each(|id| assert!(ended(id), "{id}: {}", server.job(id)));
    let active = report["jobs"]["active"].as_u64().expect("a number");
    assert!(active <= held.len() as u64, "{report}");
    // What was not completed then runs to its end now, the job of the worker that is gone included.
    until("every job is completed", || {
        server.fetch("default", 100).iter().for_each(|job| drop(server.succeed(job)));
        accepted.iter().all(ended).then_some(())
    });
    let last = *numbers(&backups).last().expect("a backup");
    until("backups go on", || numbers(&backups).last().filter(|number| **number > last).copied());
    eprintln!("drill: {} jobs accepted and {} completed before the backup, all there", accepted.len(), completed.len());
}
