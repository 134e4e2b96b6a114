use super::*;
use crate::State;
use crate::codec::samples::{job, messages, runs};
use crate::embedded::frame::Frame;
use crate::embedded::header::{FileHeader, Kind};
use std::path::Path;

/// All records, one after the other.
fn all(job: &Job) -> Vec<u8> {
    let mut out = Vec::new();
    policy(&mut out, 300, b"{}");
    let timeout = Some(Span::from_secs(1));
    for (timeout, lease) in [(timeout, None), (None, timeout), (None, None)] {
        let record = SharedSpecRecord {
            number: 1,
            kind: "k",
            queue: "q",
            priority: -1,
            policy: 300,
            timeout,
            lease,
            limits: None,
        };
        shared_spec(&mut out, &record);
    }
    queue(&mut out, "q", true, Moment::from_micros(1));
    put(&mut out, job, 1, Some("key"));
    put(&mut out, job, 1, None);
    row(&mut out, job);
    for run in &job.failures {
        failure(&mut out, job.id, run);
    }
    for old in &job.revisions {
        revision(&mut out, job.id, old);
    }
    respec(&mut out, job.id, &SpecRecord { shared_spec: 1, expires: None, body: b"" });
    delete(&mut out, job.id);
    for each in runs() {
        run(&mut out, &each);
        run_gone(&mut out, each.id);
    }
    for each in messages() {
        message(&mut out, runs()[0].id, &each);
        message_gone(&mut out, runs()[0].id, each.number);
    }
    last_message(&mut out, 300);
    clock(&mut out, Moment::from_micros(1), -5);
    sealed(&mut out);
    closed(&mut out);
    begin(&mut out, u64::MAX);
    end(&mut out, 3);
    out
}

fn read(bytes: &[u8]) -> Result<Vec<Record<'_>>, Unreadable> {
    let mut from = Decoder::new(bytes);
    let mut records = Vec::new();
    while !from.is_empty() {
        records.push(Record::decode(&mut from)?);
    }
    Ok(records)
}

#[test]
fn every_record_comes_back_as_it_was() {
    let job = job();
    let bytes = all(&job);
    let mut records = read(&bytes).unwrap().into_iter();
    assert_eq!(records.next(), Some(Record::Policy { number: 300, text: b"{}" }));
    assert_eq!(records.by_ref().take(3).filter(|record| matches!(record, Record::SharedSpec(_))).count(), 3);
    let created = Moment::from_micros(1);
    assert_eq!(records.next(), Some(Record::Queue { name: "q", paused: true, created }));
    for key in [Some("key"), None] {
        let spec = SpecRecord { shared_spec: 1, expires: job.spec.expires, body: &job.spec.body };
        let put = Record::Put { id: job.id, created: job.times.created, key, spec, row: Row::of(&job) };
        assert_eq!(records.next(), Some(put));
    }
    assert_eq!(records.next(), Some(Record::Row { id: job.id, row: Row::of(&job) }));
    for run in &job.failures {
        assert_eq!(records.next(), Some(Record::Failure { id: job.id, run: run.clone() }));
    }
    for old in &job.revisions {
        assert_eq!(records.next(), Some(Record::Revision { id: job.id, revision: old.clone() }));
    }
    let spec = SpecRecord { shared_spec: 1, expires: None, body: b"" };
    assert_eq!(records.next(), Some(Record::Respec { id: job.id, spec }));
    assert_eq!(records.next(), Some(Record::Delete { id: job.id }));
    for run in runs() {
        let id = run.id;
        assert_eq!(records.next(), Some(Record::Run(run)));
        assert_eq!(records.next(), Some(Record::RunGone { id }));
    }
    for message in messages() {
        let (run, number) = (runs()[0].id, message.number);
        assert_eq!(records.next(), Some(Record::Message { run, message }));
        assert_eq!(records.next(), Some(Record::MessageGone { run, number }));
    }
    let rest: Vec<_> = records.collect();
    assert_eq!(
        rest,
        [
            Record::LastMessage { number: 300 },
            Record::Clock { at: created, ahead_us: -5 },
            Record::Sealed,
            Record::Closed,
            Record::Begin { next_sequence: u64::MAX },
            Record::End { jobs: 3 }
        ]
    );
}

#[test]
fn whatever_the_bytes_say_reading_them_does_not_panic() {
    let bytes = all(&job());
    for at in 0..bytes.len() {
        let _ = read(&bytes[..at]);
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
            let mut copy = bytes.clone();
            copy[at] = value;
            let _ = read(&copy);
        }
    }
}

#[test]
fn a_state_is_written_as_its_place_in_the_list() {
    for (place, state) in State::ALL.into_iter().enumerate() {
        assert_eq!(state as usize, place);
    }
}

/// The seeds of the fuzz targets: every record, a frame of them, and the head of a file.
#[test]
fn the_fuzz_targets_of_the_log_begin_with_every_record() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let records = all(&job());
    let mut frame = Frame::new();
    frame.records().extend_from_slice(&records);
    let header = FileHeader { kind: Kind::Segment, number: 12, length: 4096, salt: 7 }.encode();
    for (name, bytes) in
        [("log/records", &records[..]), ("frame/records", frame.finish(7, 1)), ("header/segment", &header)]
    {
        let seed = seeds.join(name);
        if std::env::var_os("REDRIVE_WRITE_FIXTURE").is_some() {
            std::fs::create_dir_all(seed.parent().unwrap()).unwrap();
            std::fs::write(&seed, bytes).unwrap();
        }
        assert_eq!(std::fs::read(&seed).unwrap(), bytes, "{name}");
    }
}
