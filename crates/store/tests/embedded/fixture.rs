//! A store of the first format, as it was written then.

use crate::scratch::Scratch;
use crate::subject::SMALL;
use crate::workload::{Workload, everything};
use redrive_store::conformance::block_on;
use redrive_store::embedded::{Embedded, Options, check};
use redrive_store::{Filter, Job, Memory, Page, State, Store};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

/// What a job must be, in words that stay when fields are added.
fn line(job: &Job) -> String {
    let (spec, times) = (&job.spec, &job.times);
    let mut line = format!("{} {} {} {} {}", job.id, job.state, spec.queue, spec.kind, spec.priority);
    let at = |moment: Option<redrive_policy::Moment>| moment.map(|moment| moment.micros());
    let _ = write!(line, " counts {:?}", (job.attempt, job.leases, job.generation, job.releases, job.dead));
    let created = Some(times.created);
    let _ = write!(line, " times {:?}", [created, times.available, times.started, times.finished, job.due].map(at));
    let _ = write!(line, " delay {:?}", job.last_delay.map(|delay| delay.ms()));
    let _ = write!(line, " limits {:?}", [spec.timeout, spec.lease].map(|span| span.map(|span| span.ms())));
    let _ = write!(line, " expires {:?}", at(spec.expires));
    let _ = write!(line, " body {}:{:08x}", spec.body.len(), crc32fast::hash(&spec.body));
    let _ = write!(line, " policy {}", serde_json::to_string(&*spec.policy).unwrap());
    let _ = write!(line, " history {}", serde_json::to_string(&job.history).unwrap());
    if let Some(lease) = &job.lease {
        let times = [Some(lease.alive), Some(lease.until), lease.deadline].map(at);
        let _ = write!(line, " lease {} {} {times:?} {}", lease.token, lease.worker, lease.span.ms());
    }
    let _ = write!(line, " settled {:?} {:?}", job.settled.map(|token| token.to_string()), job.completed_by);
    let _ = write!(line, " result {:?}", job.result.as_ref().map(|result| String::from_utf8_lossy(result)));
    for run in &job.failures {
        let (error, verdict) = (String::from_utf8_lossy(&run.error), serde_json::to_string(&run.verdict).unwrap());
        let times = [run.available, run.started, run.at].map(|moment| moment.micros());
        let _ = write!(line, " failure {}.{} {times:?} {} {error} {verdict}", run.generation, run.attempt, run.worker);
    }
    for old in &job.revisions {
        let (length, checksum) = (old.body.len(), crc32fast::hash(&old.body));
        let _ = write!(line, " revision {} {} {} {length}:{checksum:08x}", old.generation, old.at.micros(), old.by);
    }
    line
}

fn description(store: &dyn Store) -> String {
    let all = block_on(store.list(Filter::default(), Page::new(0, usize::MAX))).unwrap();
    let mut text: String = all.jobs.iter().map(|job| line(job) + "\n").collect();
    for queue in block_on(store.queues()).unwrap() {
        let _ = writeln!(text, "{} {} {} {:?}", queue.name, queue.paused, queue.created.micros(), queue.counts);
    }
    text
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
    assert_eq!(description(&store), expected);
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

/// Writes a store that has something of everything, and what it must be.
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
    fs::write(folder.join("expected.txt"), description(&store)).unwrap();
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
