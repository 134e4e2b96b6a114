//! Flipped bits, zeroed sectors, lost ends and lost files: refused, or, if it can be a torn write, cut
//! off and reported; never accepted silently.

use crate::scratch::Scratch;
use crate::sim::{SECTOR, SimDisk};
use crate::subject::{DIR, SMALL, open};
use crate::workload::{Workload, everything};
use redrive_store::embedded::{Embedded, OpenError, Options, Repair, check_on};
use std::fs;

/// A store with a snapshot and two segments after it, and its contents after each operation.
struct Sample {
    disk: SimDisk,
    /// The high-water mark before the last frame: what a power cut may have left of it.
    earlier_mark: Vec<u8>,
    states: Vec<String>,
}

/// Segments of a few frames each.
const SHORT: Options = Options { segment_bytes: 4 << 10, ..SMALL };

impl Sample {
    /// With a last frame of about this many bytes, behind another one in the same segment.
    fn new(last_bytes: usize) -> Self {
        let samples = (0..).map(|seed| Self::of_seed(seed, last_bytes));
        samples.into_iter().find(|sample| magics(&sample.disk.bytes(&sample.last_segment())).nth(1).is_some()).unwrap()
    }

    fn of_seed(seed: u64, last_bytes: usize) -> Self {
        let disk = SimDisk::default();
        let (store, _) = open(&disk, SHORT).unwrap();
        let mut workload = Workload::new(seed);
        let mut states = Vec::new();
        for op in workload.ops(40) {
            op.play(&store).unwrap();
        }
        store.compact().unwrap();
        let segments = || disk.names().iter().filter(|name| name.ends_with(".log")).count();
        while states.len() < 40 || segments() < 2 {
            workload.next().play(&store).unwrap();
            states.push(everything(&store).unwrap());
        }
        let mut earlier_mark = Vec::new();
        for bytes in [10, last_bytes] {
            earlier_mark = disk.bytes("high-water");
            workload.batch_of_bytes(1, bytes).play(&store).unwrap();
            states.push(everything(&store).unwrap());
        }
        // As a crash leaves it: without the mark of a store that was closed. Whether the next segment was
        // being prepared is a matter of chance.
        let disk = disk.copy();
        disk.delete_ending(".spare");
        let names = disk.names();
        assert!(names.iter().any(|name| name.ends_with(".snapshot")), "{names:?}");
        Self { disk, earlier_mark, states }
    }

    /// The same as a power cut may leave it: the mark does not confirm the last frame.
    fn after_power_cut(self) -> Self {
        self.disk.edit("high-water", |bytes| bytes.clone_from(&self.earlier_mark));
        self
    }

    fn last_segment(&self) -> String {
        self.disk.names().into_iter().filter(|name| name.ends_with(".log")).max().unwrap()
    }

    /// Where the last frame of the last segment ends.
    fn end(&self) -> usize {
        let last = self.disk.bytes(&self.last_segment()).iter().rposition(|byte| *byte != 0).unwrap();
        (last + 1).next_multiple_of(SECTOR)
    }

    /// Opens a damaged copy. Returns true if it was refused as damaged, and false if something was cut off, which
    /// is at most the last operation, and is reported.
    fn is_refused(&self, damage: impl FnOnce(&SimDisk), context: &str) -> bool {
        let disk = self.disk.copy();
        damage(&disk);
        let before: Vec<_> = disk.names().iter().map(|name| (name.clone(), disk.bytes(name))).collect();
        let findings = check_on(&disk, DIR, &mut |_| {}).unwrap();
        let after: Vec<_> = disk.names().iter().map(|name| (name.clone(), disk.bytes(name))).collect();
        assert!(before == after, "{context}: the check changed something");
        match open(&disk, SHORT) {
            Err(OpenError::Damaged(damage)) => {
                assert!(!findings.is_sound(), "{context}: opening found {damage}, the check {findings:?}");
                let text = OpenError::Damaged(damage).to_string();
                assert!(text.contains("store check") && text.contains("backup"), "{text}");
                true
            }
            Err(error) => panic!("{context}: {error}"),
            Ok((store, opened)) => {
                assert!(findings.is_sound() && findings.torn.is_some(), "{context}: {findings:?}");
                assert!(matches!(opened.repairs[..], [Repair::CutOff { .. }]), "{context}: {opened:?}");
                let shown = everything(&store).unwrap();
                let [.., before_last, last] = &self.states[..] else { panic!("too few states") };
                assert!(shown == *last || shown == *before_last, "{context}: silently wrong");
                false
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_the_log_and_the_snapshot_is_refused() {
    let sample = Sample::new(10);
    for name in sample.disk.names() {
        if !name.contains('.') {
            continue;
        }
        let is_last = name == sample.last_segment();
        let written = if is_last { sample.end() } else { sample.disk.bytes(&name).len() };
        for at in 0..written {
            let bit = 1 << (at % 8);
            let damage = |disk: &SimDisk| disk.edit(&name, |bytes| bytes[at] ^= bit);
            assert!(sample.is_refused(damage, &format!("bit {} of byte {at} of {name}", at % 8)));
        }
    }
}

#[test]
fn every_bit_of_the_last_frames_is_refused() {
    let sample = Sample::new(700);
    let (name, end) = (sample.last_segment(), sample.end());
    for bit in (end - 900) * 8..end * 8 {
        let damage = |disk: &SimDisk| disk.edit(&name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        assert!(sample.is_refused(damage, &format!("bit {} of byte {}", bit % 8, bit / 8)));
    }
}

#[test]
fn bytes_after_the_end_of_the_log_are_never_taken_for_a_frame() {
    let sample = Sample::new(10);
    let (name, end) = (sample.last_segment(), sample.end());
    let length = sample.disk.bytes(&name).len();
    let mut refused = 0;
    for at in end..length {
        let damage = |disk: &SimDisk| disk.edit(&name, |bytes| bytes[at] = 0xf5);
        refused += usize::from(sample.is_refused(damage, &format!("byte {at} behind the end at {end}")));
    }
    // In the next sector a torn write would have left its header, too. Only within the 28 bytes of a header
    // it can be all that there is of a write that stopped early.
    assert_eq!(refused, SECTOR - 27);
}

#[test]
fn a_zeroed_sector_is_refused_unless_it_is_of_an_unconfirmed_last_write() {
    let sample = Sample::new(1_700).after_power_cut();
    let (name, end) = (sample.last_segment(), sample.end());
    let start = end - last_frame(&sample.disk.bytes(&name)[..end]);
    let mut cut = Vec::new();
    for other in sample.disk.names().into_iter().filter(|name| name.contains('.')) {
        let bytes = sample.disk.bytes(&other);
        for sector in 0..bytes.len() / SECTOR {
            let range = sector * SECTOR..(sector + 1) * SECTOR;
            if bytes[range.clone()].iter().all(|byte| *byte == 0) {
                continue;
            }
            let damage = |disk: &SimDisk| disk.edit(&other, |bytes| bytes[range.clone()].fill(0));
            let refused = sample.is_refused(damage, &format!("sector {sector} of {other}"));
            if !refused {
                cut.push((other.clone(), range.start));
            }
        }
    }
    let own: Vec<_> = (start..end).step_by(SECTOR).map(|at| (name.clone(), at)).collect();
    assert_eq!(own.len(), 4);
    assert_eq!(cut, own);
}

#[test]
fn an_unconfirmed_last_write_that_stopped_early_is_cut_off_wherever_it_stopped() {
    for bytes in [10, 300, 1_700] {
        let sample = Sample::new(bytes).after_power_cut();
        let (name, end) = (sample.last_segment(), sample.end());
        let start = end - last_frame(&sample.disk.bytes(&name)[..end]);
        // The last byte that is not zero; behind it, nothing is lost.
        let last = sample.disk.bytes(&name)[..end].iter().rposition(|byte| *byte != 0).unwrap();
        for at in start + 1..=last {
            let damage = |disk: &SimDisk| disk.edit(&name, |bytes| bytes[at..].fill(0));
            assert!(!sample.is_refused(damage, &format!("stopped at {at} of {start}..{end}")));
        }
    }
}

#[test]
fn a_last_write_that_was_acknowledged_is_never_cut_off() {
    let sample = Sample::new(1_700);
    let (name, end) = (sample.last_segment(), sample.end());
    let start = end - last_frame(&sample.disk.bytes(&name)[..end]);
    for at in (start..end).step_by(SECTOR) {
        let sector = |disk: &SimDisk| disk.edit(&name, |bytes| bytes[at..at + SECTOR].fill(0));
        assert!(sample.is_refused(sector, &format!("sector at {at} of {start}..{end}")));
        let rest = |disk: &SimDisk| disk.edit(&name, |bytes| bytes[at..].fill(0));
        assert!(sample.is_refused(rest, &format!("everything from {at} of {start}..{end}")));
    }
}

/// Where frames begin.
fn magics(bytes: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
    (0..bytes.len().saturating_sub(3)).filter(|at| bytes[*at..*at + 4] == [0xf5, b'r', b'd', b'f'])
}

/// The length of the frame that ends at the end of `bytes`.
fn last_frame(bytes: &[u8]) -> usize {
    bytes.len() - magics(bytes).next_back().unwrap()
}

#[test]
fn every_truncated_file_is_refused() {
    let sample = Sample::new(10);
    for name in sample.disk.names().into_iter().filter(|name| name.contains('.')) {
        for length in 0..sample.disk.bytes(&name).len() {
            let damage = |disk: &SimDisk| disk.edit(&name, |bytes| bytes.truncate(length));
            assert!(sample.is_refused(damage, &format!("{name} cut to {length} bytes")));
        }
    }
}

#[test]
fn every_lost_file_is_refused() {
    let sample = Sample::new(10);
    for name in sample.disk.names().into_iter().filter(|name| name.contains('.')) {
        assert!(sample.is_refused(|disk| disk.delete(&name), &format!("{name} deleted")));
    }
}

#[test]
fn a_file_in_the_place_of_another_is_refused() {
    let sample = Sample::new(10);
    let names: Vec<_> = sample.disk.names().into_iter().filter(|name| name.contains('.')).collect();
    for from in &names {
        for to in names.iter().filter(|to| *to != from) {
            let bytes = sample.disk.bytes(from);
            let damage = |disk: &SimDisk| disk.edit(to, |kept| *kept = bytes);
            assert!(sample.is_refused(damage, &format!("{from} in the place of {to}")));
        }
    }
}

#[test]
fn a_frame_in_the_place_of_another_is_refused() {
    let sample = Sample::new(10);
    let (name, end) = (sample.last_segment(), sample.end());
    let bytes = sample.disk.bytes(&name);
    let size = last_frame(&bytes[..end]);
    let before = end - size - last_frame(&bytes[..end - size]);
    // The last frame once more, and the last frame over the one before it.
    let again = |disk: &SimDisk| disk.edit(&name, |bytes| bytes.copy_within(end - size..end, end));
    assert!(sample.is_refused(again, "the last frame twice"));
    let over = |disk: &SimDisk| disk.edit(&name, |bytes| bytes.copy_within(end - size..end, before));
    assert!(sample.is_refused(over, "the last frame over the one before"));
}

#[test]
fn a_payload_that_looks_like_a_frame_is_not_taken_for_one() {
    let disk = SimDisk::default();
    let roomy = Options { segment_bytes: 1 << 20, ..SMALL };
    let (store, _) = open(&disk, roomy).unwrap();
    let mut workload = Workload::new(5);
    workload.batch_of_bytes(1, 40).play(&store).unwrap();
    let name = "00000001.log";
    // A whole frame for every offset at which the payload may reach the start of a sector. What it lacks
    // is the salt of the file.
    let start = disk.bytes(name).iter().rposition(|byte| *byte != 0).unwrap().next_multiple_of(SECTOR);
    let mut frame = disk.bytes(name)[SECTOR..2 * SECTOR].to_vec();
    let checksum = crc32fast::hash(&frame[..24]);
    frame[24..28].copy_from_slice(&checksum.to_le_bytes());
    let body: Vec<u8> = (0..SECTOR).flat_map(|shift| [vec![b'x'; shift], frame.clone()].concat()).collect();
    let (before, mark) = (everything(&store).unwrap(), disk.bytes("high-water"));
    workload.batch_with_body(body).play(&store).unwrap();
    let torn = disk.copy();
    drop(store);
    // The start of the second frame is lost, and its payload looks like frames.
    torn.edit(name, |bytes| bytes[start..start + SECTOR].fill(0));
    torn.edit("high-water", |bytes| *bytes = mark);
    let (store, opened) = open(&torn, roomy).unwrap();
    assert!(matches!(opened.repairs[..], [Repair::CutOff { .. }]), "{opened:?}");
    assert_eq!(everything(&store).unwrap(), before);
}

#[test]
fn real_files_are_refused_or_cut_off_as_those_in_memory() {
    let sample = Sample::new(700);
    let scratch = Scratch::new();
    let put = |disk: &SimDisk| {
        for name in disk.names() {
            fs::write(scratch.path().join(&name), disk.bytes(&name)).unwrap();
        }
    };
    let path = scratch.path().join(sample.last_segment());
    put(&sample.disk);
    let (store, opened) = Embedded::open(scratch.path(), SHORT).unwrap();
    assert!(!opened.clean && opened.repairs.is_empty(), "{opened:?}");
    assert_eq!(&everything(&store).unwrap(), sample.states.last().unwrap());
    drop(store);
    for cut in [1, 100, 2_000] {
        put(&sample.disk);
        let length = fs::metadata(&path).unwrap().len();
        fs::File::options().write(true).open(&path).unwrap().set_len(length - cut).unwrap();
        assert!(matches!(Embedded::open(scratch.path(), SHORT), Err(OpenError::Damaged(_))), "cut by {cut}");
    }
    let torn = sample.disk.copy();
    torn.edit("high-water", |bytes| bytes.clone_from(&sample.earlier_mark));
    let end = sample.end();
    torn.edit(&sample.last_segment(), |bytes| bytes[end - SECTOR..].fill(0));
    put(&torn);
    let (store, opened) = Embedded::open(scratch.path(), SHORT).unwrap();
    assert!(matches!(opened.repairs[..], [Repair::CutOff { .. }]), "{opened:?}");
    assert_eq!(everything(&store).unwrap(), sample.states[sample.states.len() - 2]);
}
