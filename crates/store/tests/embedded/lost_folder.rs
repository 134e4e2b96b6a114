//! The folder under a running store: deleted, moved or replaced, and who may read it.

use crate::scratch::Scratch;
use crate::sim::SimDisk;
use crate::subject::{SMALL, open};
use crate::workload::{Workload, everything};
use redrive_store::StoreError;
use redrive_store::embedded::{Embedded, Notice, Options};
use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The longest time that a test waits for anything, even on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A store on the real disk with two jobs, whose folder then meets with an accident. The next write must be
/// refused, and so must everything after it.
fn refuses_after(accident: impl FnOnce(&Path)) -> String {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let (store, _) = Embedded::open(&dir, SMALL).unwrap();
    let mut workload = Workload::new(1);
    workload.batch_of_bytes(2, 10).play(&store).unwrap();
    accident(&dir);
    let Err(StoreError::Unavailable(why)) = workload.batch_of_bytes(1, 10).play(&store) else {
        panic!("a write was acknowledged")
    };
    assert!(why.contains("deleted, moved or replaced") && why.contains("restore a backup"), "{why}");
    assert!(why.contains("No write was acknowledged after that"), "{why}");
    assert_eq!(store.status().stopped, Some(StoreError::Unavailable(why.clone())));
    assert!(everything(&store).is_err());
    assert!(store.close().is_err(), "a store without its folder is not closed cleanly");
    why
}

fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn nothing_is_acknowledged_into_a_deleted_folder() {
    let why = refuses_after(|dir| fs::remove_dir_all(dir).unwrap());
    assert!(why.contains("00000001.log"), "{why}");
}

#[test]
fn nothing_is_acknowledged_into_a_folder_that_was_made_anew() {
    refuses_after(|dir| {
        fs::remove_dir_all(dir).unwrap();
        fs::create_dir(dir).unwrap();
    });
}

#[test]
fn nothing_is_acknowledged_into_a_folder_that_was_put_back_from_a_copy() {
    refuses_after(|dir| {
        let aside = dir.with_extension("aside");
        fs::rename(dir, &aside).unwrap();
        fs::create_dir(dir).unwrap();
        copy_files(&aside, dir);
    });
}

#[test]
fn nothing_is_acknowledged_into_a_deleted_log() {
    refuses_after(|dir| fs::remove_file(dir.join("00000001.log")).unwrap());
}

#[test]
fn nothing_is_acknowledged_once_another_process_could_take_the_lock() {
    let why = refuses_after(|dir| fs::remove_file(dir.join("lock")).unwrap());
    assert!(why.contains("lock"), "{why}");
}

#[test]
fn a_moved_folder_has_everything_that_was_acknowledged() {
    let scratch = Scratch::new();
    let (dir, aside) = (scratch.path().join("store"), scratch.path().join("aside"));
    let (store, _) = Embedded::open(&dir, SMALL).unwrap();
    let mut workload = Workload::new(1);
    workload.batch_of_bytes(2, 10).play(&store).unwrap();
    fs::rename(&dir, &aside).unwrap();
    assert!(workload.batch_of_bytes(1, 10).play(&store).is_err());
    drop(store);
    fs::rename(&aside, &dir).unwrap();
    // The refused write may be there or not, as after every write that was not acknowledged.
    let (store, _) = Embedded::open(&dir, SMALL).unwrap();
    assert!((2..=3).contains(&store.status().jobs), "{} jobs", store.status().jobs);
}

#[test]
fn an_idle_store_notices_that_its_folder_is_gone() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let options = Options { look_every: Duration::from_millis(1), ..SMALL };
    let (store, _) = Embedded::open(&dir, options).unwrap();
    let (sender, notices) = channel();
    store.watch(move |notice| drop(sender.send(notice.clone())));
    fs::remove_dir_all(&dir).unwrap();
    let Notice::Stopped(StoreError::Unavailable(why)) = notices.recv_timeout(TIMEOUT).unwrap() else {
        panic!("another notice")
    };
    assert!(why.contains("deleted, moved or replaced"), "{why}");
    assert_eq!(store.status().stopped, Some(StoreError::Unavailable(why)));
}

#[test]
fn a_store_that_has_stopped_reports_it_to_later_callers() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    disk.delete("00000001.log");
    assert!(Workload::new(1).batch_of_bytes(1, 10).play(&store).is_err());
    let (sender, notices) = channel();
    store.watch(move |notice| drop(sender.send(notice.clone())));
    let Notice::Stopped(why) = notices.recv_timeout(TIMEOUT).unwrap() else { panic!("another notice") };
    assert_eq!(store.status().stopped, Some(why));
}

/// A store with a snapshot and three segments, one of whose files is deleted.
fn replaces_lost_file(ending: &str) {
    let disk = SimDisk::default();
    let options = Options { look_every: Duration::from_millis(1), ..SMALL };
    let (store, _) = open(&disk, options).unwrap();
    let mut workload = Workload::new(1);
    workload.batch_of_bytes(3, 10).play(&store).unwrap();
    store.compact().unwrap();
    let files = |ending: &str| disk.names().into_iter().filter(|name| name.ends_with(ending)).collect::<Vec<_>>();
    while files(".log").len() < 3 {
        workload.batch_of_bytes(5, 300).play(&store).unwrap();
    }
    let (sender, notices) = channel();
    store.watch(move |notice| drop(sender.send(notice.clone())));
    let lost = files(ending).remove(0);
    disk.delete(&lost);
    let notice = notices.recv_timeout(TIMEOUT).unwrap();
    assert!(matches!(&notice, Notice::FileLost(path) if path.ends_with(&lost)), "{notice:?}");
    assert!(notice.to_string().contains("snapshot of all jobs"), "{notice}");
    assert_eq!(notices.recv_timeout(TIMEOUT).unwrap(), Notice::FileReplaced);
    workload.batch_of_bytes(1, 10).play(&store).unwrap();
    let shown = everything(&store).unwrap();
    let (copy, opened) = open(&disk.copy(), SMALL).unwrap();
    assert!(opened.confirmed, "{opened:?}");
    assert_eq!(everything(&copy).unwrap(), shown);
}

#[test]
fn a_lost_segment_of_a_running_store_is_replaced() {
    replaces_lost_file(".log");
}

#[test]
fn a_lost_snapshot_of_a_running_store_is_replaced() {
    replaces_lost_file(".snapshot");
}

#[cfg(unix)]
mod access {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Nothing in the folder, nor the folder, is for others.
    fn is_private(dir: &Path) {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
        let paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!paths.is_empty());
        paths.iter().for_each(|path| assert_eq!(mode(path), 0o600, "{}", path.display()));
    }

    #[test]
    fn payloads_are_for_the_owner_of_the_store_only() {
        let scratch = Scratch::new();
        let (dir, copy) = (scratch.path().join("store"), scratch.path().join("copy"));
        let (store, opened) = Embedded::open(&dir, SMALL).unwrap();
        assert_eq!(opened.access, []);
        let mut workload = Workload::new(1);
        for _ in 0..5 {
            workload.batch_of_bytes(30, 300).play(&store).unwrap();
            store.compact().unwrap();
        }
        is_private(&dir);
        store.backup(&copy, &mut |_| {}).unwrap();
        is_private(&copy);
        store.close().unwrap();
        is_private(&dir);
    }

    #[test]
    fn a_folder_that_others_can_read_is_closed_to_them_and_reported() {
        let scratch = Scratch::new();
        let (store, _) = Embedded::open(scratch.path(), SMALL).unwrap();
        Workload::new(1).batch_of_bytes(3, 10).play(&store).unwrap();
        store.compact().unwrap();
        store.close().unwrap();
        set(scratch.path(), 0o755);
        let files = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.inspect(|path| set(path, 0o644)).collect();
        fs::write(scratch.path().join("notes.txt"), "not of the store").unwrap();
        set(&scratch.path().join("notes.txt"), 0o640);
        let (_store, opened) = Embedded::open(scratch.path(), SMALL).unwrap();
        assert_eq!(mode(scratch.path()), 0o700);
        files.iter().for_each(|path| assert_eq!(mode(path), 0o600, "{}", path.display()));
        assert_eq!(mode(&scratch.path().join("notes.txt")), 0o640, "not ours to change");
        let mut reported: Vec<_> = opened.access.iter().map(|access| (access.path.clone(), access.mode)).collect();
        reported.sort();
        let mut expected: Vec<_> = files.into_iter().map(|path| (path, Some(0o644))).collect();
        expected.push((scratch.path().to_owned(), Some(0o755)));
        expected.sort();
        assert_eq!(reported, expected);
        assert!(opened.access.iter().all(|access| access.error.is_none()));
    }
}
