//! A store of the first format, as it was written then.

use crate::description::description;
use crate::scratch::Scratch;
use crate::subject::SMALL;
use crate::workload::{Workload, everything};
use redrive_store::conformance::block_on;
use redrive_store::embedded::{Embedded, Options, check};
use redrive_store::{Filter, Memory, Page, State, Store};
use std::fs;
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

/// Opens a copy of a fixture: sound, with something of everything, and as it was written.
fn opened_as_it_was(fixture: &Path, scratch: &Scratch) -> Embedded {
    let findings = check(fixture, &mut |_| {}).unwrap();
    assert!(findings.is_sound() && findings.snapshot_bytes > 0 && findings.log_bytes > 0, "{findings:?}");
    assert!(findings.jobs.iter().all(|count| *count > 0) && findings.dead > 0, "{findings:?}");
    for entry in fs::read_dir(fixture).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, scratch.path().join(path.file_name().unwrap())).unwrap();
    }
    let (store, opened) = Embedded::open(scratch.path(), SMALL).unwrap();
    assert!(opened.clean && opened.repairs.is_empty(), "{opened:?}");
    let expected = fs::read_to_string(fixture.join("expected.txt")).unwrap();
    assert_eq!(block_on(description(&store)), expected);
    store
}

#[test]
fn a_store_of_the_first_format_opens_as_it_was() {
    let scratch = Scratch::new();
    let store = opened_as_it_was(&fixture(), &scratch);
    for op in Workload::new(1).ops(100) {
        op.play(&store).unwrap();
    }
    store.compact().unwrap();
    let before = everything(&store).unwrap();
    drop(store);
    assert_eq!(everything(&Embedded::open(scratch.path(), SMALL).unwrap().0).unwrap(), before);
}

/// Writes a store with every kind of record, and a description of its contents.
fn write_fixture(folder: &Path) {
    let options = Options { segment_bytes: 16 << 10, ..SMALL };
    let (store, _) = Embedded::open(folder, options).unwrap();
    // The first seed that has something of everything.
    let seed = (0..).find(|seed| {
        let model = Memory::new();
        Workload::new(*seed).ops(150).iter().for_each(|op| drop(op.play(&model).unwrap()));
        let counts = |filter| block_on(model.list(filter, Page::new(0, 0))).unwrap().total.unwrap();
        let states = State::ALL.map(|state| counts(Filter { state: Some(state), ..Filter::default() }));
        states.iter().all(|count| *count > 0) && counts(Filter { dead: Some(true), ..Filter::default() }) > 0
    });
    let mut ops = Workload::new(seed.unwrap()).ops(150);
    let later = ops.split_off(110);
    ops.iter().for_each(|op| drop(op.play(&store).unwrap()));
    store.compact().unwrap();
    later.iter().for_each(|op| drop(op.play(&store).unwrap()));
    fs::write(folder.join("expected.txt"), block_on(description(&store))).unwrap();
    store.close().unwrap();
    fs::remove_file(folder.join("lock")).unwrap();
}

/// The fixture of a new format is written by this test too: `REDRIVE_WRITE_FIXTURE=FOLDER`, once.
#[test]
fn a_fixture_of_the_present_format_can_be_written_and_read() {
    let scratch = Scratch::new();
    let folder = std::env::var_os("REDRIVE_WRITE_FIXTURE").map_or_else(|| scratch.path().to_owned(), PathBuf::from);
    write_fixture(&folder);
    opened_as_it_was(&folder, &Scratch::new());
}
