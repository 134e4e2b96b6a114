//! Files and rows of newer versions: refused, and not changed.

use crate::sim::{SECTOR, SimDisk};
use crate::subject::{DIR, SMALL, open};
use crate::workload::Workload;
use redrive_store::embedded::{OpenError, check_on};

#[test]
fn a_newer_format_is_refused_with_the_way_out() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    Workload::new(1).batch_of_bytes(2, 10).play(&store).unwrap();
    store.compact().unwrap();
    drop(store);
    for name in disk.names().iter().filter(|name| name.contains('.')) {
        let newer = disk.copy();
        newer.edit(name, |bytes| {
            bytes[8] += 1;
            let checksum = crc32fast::hash(&bytes[..36]);
            bytes[36..40].copy_from_slice(&checksum.to_le_bytes());
        });
        let before = newer.bytes(name);
        for refusal in [open(&newer, SMALL).map(drop), check_on(&newer, DIR, &mut |_| {}).map(drop)] {
            let error = refusal.unwrap_err();
            assert!(matches!(error, OpenError::TooNew { format: 2, .. }), "{error}");
            assert!(error.to_string().contains("formats up to 1"), "{error}");
        }
        assert_eq!(newer.bytes(name), before);
    }
}

/// Changes the version of the first row that is alone in its frame of the log, and corrects the checksums.
fn with_a_newer_row(bytes: &mut [u8]) {
    const ROW: u8 = 5;
    const VERSION: usize = 17;
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let salt = word(bytes, 32);
    let checksum = |bytes: &[u8]| {
        let mut hasher = crc32fast::Hasher::new_with_initial(salt);
        hasher.update(bytes);
        hasher.finalize().to_le_bytes()
    };
    let starts = (SECTOR..bytes.len()).step_by(SECTOR);
    let at = starts.into_iter().find(|at| bytes[at + 4] > 0 && word(bytes, at + 16) == 0 && bytes[at + 28] == ROW);
    let frame = &mut bytes[at.unwrap()..];
    let length = word(frame, 4) as usize;
    frame[28 + VERSION] += 1;
    let records = checksum(&frame[28..28 + length + 1]);
    frame[20..24].copy_from_slice(&records);
    let header = checksum(&frame[..24]);
    frame[24..28].copy_from_slice(&header);
}

#[test]
fn a_row_of_a_newer_version_is_refused_and_not_taken_for_damage() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    Workload::new(4).ops(60).iter().for_each(|op| drop(op.play(&store).unwrap()));
    drop(store);
    let name = disk.names().into_iter().find(|name| name.ends_with(".log")).unwrap();
    disk.edit(&name, |bytes| with_a_newer_row(bytes));
    let before: Vec<_> = disk.names().iter().map(|name| (name.clone(), disk.bytes(name))).collect();
    for refusal in [open(&disk, SMALL).map(drop), check_on(&disk, DIR, &mut |_| {}).map(drop)] {
        let error = refusal.unwrap_err();
        assert!(matches!(error, OpenError::TooNewRecord { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("a row has version 2") && text.contains("upgrade redrive"), "{text}");
        assert!(text.contains("nothing was changed") && !text.contains("damaged"), "{text}");
    }
    let after: Vec<_> = disk.names().iter().map(|name| (name.clone(), disk.bytes(name))).collect();
    assert!(before == after);
}
