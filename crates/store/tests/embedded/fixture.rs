//! A store of the first format, as it was written then.

use crate::subject::{SMALL, Scratch};
use crate::workload::{Workload, everything};
use redrive_store::conformance::block_on;
use redrive_store::embedded::{Embedded, Options, check};
use redrive_store::{Filter, Job, Page, Store};
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
    let _ = write!(line, " counts {:?}", (job.attempt, job.leases, job.revivals, job.releases, job.dead));
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
    let _ = write!(line, " settled {:?}", job.settled.map(|token| token.to_string()));
    let _ = write!(line, " result {:?}", job.result.as_ref().map(|result| String::from_utf8_lossy(result)));
    for run in &job.failures {
        let (error, verdict) = (String::from_utf8_lossy(&run.error), serde_json::to_string(&run.verdict).unwrap());
        let _ = write!(line, " failure {}.{} {} {error} {verdict}", run.life, run.attempt, run.at.micros());
    }
    line
}

fn description(store: &dyn Store) -> String {
    let all = block_on(store.list(Filter::default(), Page { offset: 0, limit: usize::MAX })).unwrap();
    let mut text: String = all.jobs.iter().map(|job| line(job) + "\n").collect();
    for queue in block_on(store.queues()).unwrap() {
        let _ = writeln!(text, "{} {} {} {:?}", queue.name, queue.paused, queue.created.micros(), queue.counts);
    }
    text
}

#[test]
fn a_store_of_the_first_format_opens_as_it_was() {
    let findings = check(fixture(), &mut |_| {}).unwrap();
    assert!(findings.is_sound() && findings.snapshot_bytes > 0 && findings.log_bytes > 0, "{findings:?}");
    assert!(findings.jobs.iter().all(|count| *count > 0) && findings.dead > 0, "{findings:?}");
    let scratch = Scratch::new();
    for entry in fs::read_dir(fixture()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, scratch.path().join(path.file_name().unwrap())).unwrap();
    }
    let (store, opened) = Embedded::open(scratch.path(), SMALL).unwrap();
    assert!(opened.clean && opened.repairs.is_empty(), "{opened:?}");
    let expected = fs::read_to_string(fixture().join("expected.txt")).unwrap();
    assert_eq!(description(&store), expected);
    for op in Workload::new(1).ops(100) {
        op.play(&store).unwrap();
    }
    store.compact().unwrap();
    let before = everything(&store).unwrap();
    drop(store);
    assert_eq!(everything(&Embedded::open(scratch.path(), SMALL).unwrap().0).unwrap(), before);
}

/// Writes the fixture. To be run once for each format, by hand, and the outcome to be kept.
#[test]
#[ignore = "the fixture of a format is written once"]
fn write_the_fixture() {
    let options = Options { segment_bytes: 16 << 10, ..SMALL };
    let (store, _) = Embedded::open(fixture(), options).unwrap();
    let mut workload = Workload::new(33);
    for op in workload.ops(150) {
        op.play(&store).unwrap();
    }
    store.compact().unwrap();
    for op in workload.ops(50) {
        op.play(&store).unwrap();
    }
    fs::write(fixture().join("expected.txt"), description(&store)).unwrap();
    store.close().unwrap();
    fs::remove_file(fixture().join("lock")).unwrap();
}
