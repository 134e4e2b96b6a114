//! The bytes of every item, as each version writes them. Nodes of other versions read them, so that they never change
//! under the same version.

use super::samples::{job, messages, run, runs, verdicts};
use super::{Decoder, revision, row, run as stored_run, verdict};
use crate::{Job, State};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The file of the present version. For a new one, add a file beside it, and leave this as it is.
fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/items-1.txt")
}

/// What is new and what has been through everything: a row in each state, with all parts and with none.
fn rows() -> Vec<(String, Job)> {
    let whole = job();
    let bare = Job {
        attempt: 0,
        leases: 0,
        generation: 0,
        releases: 0,
        dead: false,
        history: redrive_policy::History::new(whole.times.created),
        due: None,
        lease: None,
        last_delay: None,
        result: None,
        settled: None,
        completed_by: None,
        parent: None,
        unique: None,
        times: crate::Times { available: None, started: None, finished: None, ..whole.times },
        ..whole.clone()
    };
    let each = |job: &Job, what: &str| -> Vec<(String, Job)> {
        State::ALL.map(|state| (format!("row {what} {state}"), Job { state, ..job.clone() })).to_vec()
    };
    let mut rows = each(&whole, "whole");
    rows.extend(each(&bare, "bare"));
    rows
}

/// A line for each item: its name, and its bytes.
fn items() -> Vec<(String, Vec<u8>)> {
    let mut items = Vec::new();
    let mut add = |name: String, encode: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        items.push((name, bytes));
    };
    for (name, job) in rows() {
        add(name, &|out| row::encode(&job, out));
    }
    for (number, each) in verdicts().into_iter().enumerate() {
        let run = run(each);
        add(format!("attempt {number}"), &|out| verdict::encode(&run, out));
    }
    for old in &job().revisions {
        add("revision".to_owned(), &|out| revision::encode(old, out));
    }
    for (number, each) in runs().into_iter().enumerate() {
        add(format!("run {number}"), &|out| stored_run::encode(&each, out));
    }
    for (number, each) in messages().into_iter().enumerate() {
        add(format!("message {number}"), &|out| stored_run::encode_message(&each, out));
    }
    items
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// As long as nothing was released: `REDRIVE_WRITE_FIXTURE=yes` writes the file again.
#[test]
fn the_bytes_of_a_version_never_change() {
    let now: String = items().iter().map(|(name, bytes)| format!("{name}: {}\n", hex(bytes))).collect();
    if std::env::var_os("REDRIVE_WRITE_FIXTURE").is_some() {
        std::fs::write(file(), &now).unwrap();
    }
    let then = std::fs::read_to_string(file()).unwrap();
    let changed = now.lines().zip(then.lines()).find(|(now, then)| now != then);
    assert!(
        now == then,
        "the bytes of items have changed, and their version has not: older nodes would take them for something else. \
         Give the item a new version and go on reading the old one (docs/upgrading.md). The first difference, now and \
         before: {changed:#?}"
    );
}

#[test]
fn the_bytes_of_every_version_are_read() {
    for (name, job) in rows() {
        let mut bytes = Vec::new();
        row::encode(&job, &mut bytes);
        let (created, read) = row::decode(&mut Decoder::new(&bytes)).unwrap();
        assert_eq!((created, read), (job.times.created, row::Row::of(&job)), "{name}");
    }
    let failed: Vec<_> = verdicts().into_iter().map(run).collect();
    for run in &failed {
        let mut bytes = Vec::new();
        verdict::encode(run, &mut bytes);
        assert_eq!(verdict::decode(&mut Decoder::new(&bytes)).as_ref(), Ok(run));
    }
    for run in runs() {
        let mut bytes = Vec::new();
        stored_run::encode(&run, &mut bytes);
        assert_eq!(stored_run::decode(run.id, &mut Decoder::new(&bytes)), Ok(run));
    }
    for message in messages() {
        let mut bytes = Vec::new();
        stored_run::encode_message(&message, &mut bytes);
        assert_eq!(stored_run::decode_message(message.number, &mut Decoder::new(&bytes)), Ok(message));
    }
    // And no version to come is taken for this one.
    for (name, mut bytes) in items() {
        // Runs that listen, and events, came with the second version of runs and messages.
        let newest = if name.starts_with("run") || name.starts_with("message") { 2 } else { 1 };
        bytes[0] = newest + 1;
        let mut from = Decoder::new(&bytes);
        let error = match name.split_once(' ').map_or(&*name, |(kind, _)| kind) {
            "row" => row::decode(&mut from).map(drop),
            "attempt" => verdict::decode(&mut from).map(drop),
            "run" => stored_run::decode(runs()[0].id, &mut from).map(drop),
            "message" => stored_run::decode_message(1, &mut from).map(drop),
            _ => revision::decode(&mut from).map(drop),
        };
        let said = error.unwrap_err().to_string();
        let (found, known) = (format!("version {}", newest + 1), format!("up to {newest}"));
        assert!(said.contains(&found) && said.contains(&known) && said.contains("upgrade redrive"), "{said}");
    }
}

/// The seeds of the fuzz targets are these items.
#[test]
fn the_fuzz_targets_begin_with_every_item() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (name, bytes) in items() {
        let kind = name.split_once(' ').map_or(&*name, |(kind, _)| kind);
        let seed = seeds.join(kind).join(name.replace(' ', "-"));
        if std::env::var_os("REDRIVE_WRITE_FIXTURE").is_some() {
            std::fs::create_dir_all(seed.parent().unwrap()).unwrap();
            std::fs::write(&seed, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(&seed).unwrap(), bytes, "{}", seed.display());
    }
}
