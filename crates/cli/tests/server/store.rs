//! The folder of a store, while no server has it and while one does.

use crate::harness::{Folder, Server, redrive, stderr, stdout, until};
use serde_json::{Value, json};
use std::process::Output;

fn store(args: &[&str]) -> Output {
    redrive(&[&["store"], args].concat()).output().expect("it runs")
}

fn report(args: &[&str]) -> Value {
    let output = store(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A store with some jobs, closed cleanly.
fn filled(folder: &Folder) -> (String, String) {
    let data = folder.at("data");
    let server = Server::start(&data);
    for i in 0..200 {
        server.enqueue(json!({ "type": "a.b", "args": [i, "x".repeat(100)] }));
    }
    let jobs = server.fetch("default", 150);
    let settlements: Vec<Value> = jobs
        .iter()
        .map(|job| json!({ "action": "ack", "job_id": job["id"], "lease_token": job["lease_token"] }))
        .collect();
    server.ask("POST", "/ojs/v1/workers/settle", json!({ "settlements": settlements }));
    let id = jobs[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.stop().0.code(), Some(0));
    (data, id)
}

#[test]
fn check_counts_backup_copies_and_compact_shrinks() {
    let folder = Folder::new("store");
    let (data, id) = filled(&folder);
    let found = report(&["check", &data]);
    assert_eq!((&found["sound"], &found["closed_in_good_order"]), (&json!(true), &json!(true)), "{found}");
    assert_eq!((&found["jobs"]["available"], &found["jobs"]["completed"]), (&json!(50), &json!(150)));
    let printed = stdout(&store(&["check", &data]));
    assert!(printed.contains("200 jobs in 1 queues: 50 available, 150 completed"), "{printed}");

    let copy = folder.at("copy");
    assert_eq!(report(&["backup", &data, &copy])["jobs"], found["jobs"]);
    assert_ne!(store(&["backup", &data, &copy]).status.code(), Some(0), "the folder is not empty any more");

    let sizes = report(&["compact", &data]);
    assert!(sizes["after_bytes"].as_u64() < sizes["before_bytes"].as_u64(), "{sizes}");
    assert_eq!(report(&["check", &data])["jobs"], found["jobs"]);
    for folder in [&data, &copy] {
        let server = Server::start(folder);
        assert_eq!(server.state(&id), "completed");
        assert_eq!(server.fetch("default", 100).len(), 50);
    }
}

#[test]
fn a_store_in_use_missing_or_damaged_is_reported_as_such() {
    let folder = Folder::new("store-faults");
    let missing = folder.at("nothing");
    for command in [&["check", &missing][..], &["compact", &missing], &["backup", &missing, &folder.at("to")]] {
        assert_eq!(store(command).status.code(), Some(3), "{command:?}");
    }
    assert!(!std::path::Path::new(&missing).exists(), "looking makes nothing");

    let (data, _) = filled(&folder);
    let server = Server::start(&data);
    let busy = store(&["check", &data]);
    assert_eq!(busy.status.code(), Some(3));
    assert!(stderr(&busy).contains(&server.id().to_string()), "it names the process: {}", stderr(&busy));
    server.stop();

    // One flipped bit in the middle of the largest file.
    let files = std::fs::read_dir(&data).expect("a folder").filter_map(Result::ok);
    let largest = files.max_by_key(|file| file.metadata().map_or(0, |meta| meta.len())).expect("a file").path();
    let mut bytes = std::fs::read(&largest).expect("readable");
    let written = bytes.iter().rposition(|byte| *byte != 0).expect("something is written");
    bytes[written / 2] ^= 1;
    std::fs::write(&largest, &bytes).expect("writable");
    let output = store(&["check", &data]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("DAMAGED"), "{}", stdout(&output));
    let refused = redrive(&["serve", "--listen", "127.0.0.1:0", "--data", &data]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(3), "a damaged store is not opened: {}", stderr(&refused));
}

#[test]
fn a_server_whose_folder_is_deleted_says_so_and_ends() {
    let folder = Folder::new("deleted");
    let data = folder.at("data");
    let server = Server::start(&data);
    server.enqueue(json!({ "type": "a.b", "args": [] }));
    std::fs::remove_dir_all(&data).expect("it can be deleted");
    let (status, log) = server.wait();
    let message = log.join("\n");
    assert_eq!(status.code(), Some(3), "{message}");
    assert!(message.contains("deleted, moved or replaced while the store was open"), "{message}");
    assert!(!std::path::Path::new(&data).exists(), "it makes no new one");
}

#[test]
fn a_zeroed_tail_is_never_called_sound() {
    let folder = Folder::new("tail");
    let data = folder.at("data");
    let mut server = Server::start(&data);
    for i in 0..10 {
        server.enqueue(json!({ "type": "a.b", "args": [i] }));
    }
    server.kill();
    let found = report(&["check", &data]);
    assert_eq!((&found["sound"], &found["closed_in_good_order"]), (&json!(true), &json!(false)), "{found}");
    assert_eq!(found["last_frame"], found["high_water_mark"], "{found}");

    let log = std::path::Path::new(&data).join("00000001.log");
    let mut bytes = std::fs::read(&log).expect("readable");
    let frames: Vec<usize> =
        (512..bytes.len()).step_by(512).filter(|at| bytes[*at..].starts_with(b"\xf5rdf")).collect();
    assert!(frames.len() >= 10, "{} frames", frames.len());
    let from = frames[frames.len() - 4];
    bytes[from..].fill(0);
    std::fs::write(&log, &bytes).expect("writable");
    let output = store(&["check", &data]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let (first, last) = (frames.len() - 3, frames.len());
    let missing = format!("frames {first} to {last} are missing");
    assert!(stdout(&output).contains(&missing), "{missing}: {}", stdout(&output));
    assert!(!stdout(&output).contains("sound"), "{}", stdout(&output));
    let refused = redrive(&["serve", "--listen", "127.0.0.1:0", "--data", &data]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
}

#[cfg(unix)]
#[test]
fn payloads_that_others_could_read_are_closed_to_them_with_a_line_in_the_log() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("permissions");
    let (data, _) = filled(&folder);
    let set = |path: &str, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    let mode = |path: &str| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let log = format!("{data}/00000001.log");
    assert_eq!((mode(&data), mode(&log)), (0o700, 0o600));
    set(&data, 0o755).and_then(|()| set(&log, 0o644)).expect("it is ours");
    let server = Server::start(&data);
    let printed = server.log_lines().join("\n");
    assert_eq!((mode(&data), mode(&log)), (0o700, 0o600));
    for line in
        [format!("{data} was open to other users of this machine (permissions 0755)"), format!("{log} was open")]
    {
        assert!(printed.contains(&line), "{line}: {printed}");
    }
}

#[test]
fn a_backup_of_a_running_server_has_every_job_that_was_acknowledged() {
    let folder = Folder::new("online");
    let data = folder.at("data");
    let server = Server::start(&data);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let acknowledged = std::sync::Mutex::new(Vec::new());
    let ids = || acknowledged.lock().expect("no panic").clone();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (server, stop, acknowledged) = (&server, &stop, &acknowledged);
            scope.spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                    let id = server.enqueue(json!({ "type": "a.b", "args": [writer] }));
                    acknowledged.lock().expect("no panic").push(id);
                }
            });
        }
        for number in 0..3 {
            let before: Vec<String> = until("some jobs", || Some(ids()).filter(|ids| ids.len() > 50 * (number + 1)));
            let copy = folder.at(&format!("copy{number}"));
            let found = report(&["backup", &data, &copy]);
            assert_eq!(found["sound"], json!(true), "{found}");
            let restored = Server::start(&copy);
            before.iter().for_each(|id| assert_eq!(restored.state(id), "available"));
            assert_eq!(restored.stop().0.code(), Some(0));
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    assert_eq!(server.stop().0.code(), Some(0));
}

#[test]
fn a_server_makes_backups_where_its_operator_wants_them() {
    let folder = Folder::new("asked");
    std::fs::create_dir(folder.path().join("backups")).expect("a folder");
    let backups = format!("backups={}", folder.at("backups"));
    let server = Server::start_with(&folder.at("data"), &["--set", &backups]);
    let id = server.enqueue(json!({ "type": "a.b", "args": [] }));
    let made = report(&["backup", "--server", &server.url, "--name", "nightly"]);
    assert_eq!((&made["backup"]["jobs"], &made["backup"]["name"]), (&json!(1), &json!("nightly")), "{made}");
    let printed = stdout(&store(&["backup", "--server", &server.url]));
    assert!(printed.contains(&folder.at("backups/redrive-")) && printed.contains("1 jobs"), "{printed}");
    let again = store(&["backup", "--server", &server.url, "--name", "nightly"]);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
    let restored = Server::start(&folder.at("backups/nightly"));
    assert_eq!(restored.state(&id), "available");
    // Without the setting, the error says how to set it.
    let refused = store(&["backup", "--server", &restored.url]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("REDRIVE_BACKUPS"), "{}", stderr(&refused));
    assert_eq!(store(&["backup"]).status.code(), Some(2), "neither folders nor a server");
}
