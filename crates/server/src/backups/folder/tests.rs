#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use redrive_policy::Moment;
use redrive_store::Embedded;
use redrive_store::embedded::{Damage, Options};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with a store and a folder for backups, removed at the end.
struct Place {
    dir: PathBuf,
    store: Embedded,
}

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("redrive-backups-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("backups")).unwrap();
        let (store, _) = Embedded::open(dir.join("data"), Options::default()).unwrap();
        Self { dir, store }
    }

    fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    fn add(&self, name: &str, scheduled: Option<u64>) {
        self.add_of("data", name, scheduled);
    }

    fn add_of(&self, store: &str, name: &str, scheduled: Option<u64>) {
        // Numbers decide about age: the clock was set back with each backup.
        let taken_at = Moment::from_micros(-60_000_000 * i64::try_from(scheduled.unwrap_or_default()).unwrap());
        let label = BackupLabel { taken_at, store: self.dir.join(store), scheduled };
        let folder = BackupFolder::open(&self.backups()).unwrap();
        folder.add(name, &label, |to| self.store.backup(to, &mut |_| {})).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.backups()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != LOCK)
            .collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.store.close();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn retention_deletes_the_lowest_numbers_and_nothing_that_the_schedule_of_this_store_did_not_make() {
    let place = Place::new();
    for number in 1..=4 {
        place.add(&format!("scheduled-{number}"), Some(number));
    }
    place.add("nightly", None);
    place.add_of("another", "scheduled-of-another", Some(1));
    fs::create_dir(place.backups().join("scheduled-by-hand")).unwrap();
    fs::write(place.backups().join("scheduled-2").join("note.txt"), "keep this one").unwrap();
    let folder = BackupFolder::open(&place.backups()).unwrap();
    let deleted = folder.retain(&place.dir.join("data"), 1).unwrap();
    assert_eq!(deleted, ["scheduled-1", "scheduled-3"].map(|name| place.backups().join(name)));
    let left = ["nightly", "scheduled-2", "scheduled-4", "scheduled-by-hand", "scheduled-of-another"];
    assert_eq!(place.names(), left);
    assert!(embedded_check(&place.backups().join("scheduled-2")), "a backup with a note is whole");
}

fn embedded_check(dir: &Path) -> bool {
    redrive_store::embedded::check(dir, &mut |_| {}).unwrap().is_sound()
}

#[test]
fn what_an_unfinished_backup_has_left_is_removed_and_is_never_taken_for_a_backup() {
    let place = Place::new();
    place.add("whole", None);
    let backups = place.backups();
    let unfinished = |name: &str| {
        let dir = backups.join(name);
        fs::create_dir(&dir).unwrap();
        fs::copy(backups.join("whole").join(LABEL), dir.join(LABEL)).unwrap();
        fs::write(dir.join("00000001.log"), "half of it").unwrap();
        dir
    };
    unfinished(".scheduled-9.unfinished");
    let with_more = unfinished(".x.unfinished");
    fs::write(with_more.join("mine"), "").unwrap();
    let found: Vec<PathBuf> = backups_in(&backups).unwrap().into_iter().map(|backup| backup.path).collect();
    assert_eq!(found, [backups.join("whole")]);
    drop(BackupFolder::open(&backups).unwrap());
    assert_eq!(place.names(), [".x.unfinished", "whole"], "a folder with anything else in it stays");
}

#[test]
fn a_backup_that_fails_leaves_nothing_and_one_process_makes_backups_at_a_time() {
    let place = Place::new();
    let backups = place.backups();
    let label = BackupLabel { taken_at: Moment::from_micros(0), store: place.dir.join("data"), scheduled: Some(1) };
    let folder = BackupFolder::open(&backups).unwrap();
    let busy = BackupFolder::open(&backups).map(|_| ());
    assert!(matches!(busy, Err(BackupError::Busy(_))), "{busy:?}");
    // The disk is full in the middle of the copy.
    let failed = folder.add("scheduled-1", &label, |to| {
        fs::create_dir(to).unwrap();
        fs::write(to.join("00000001.log"), "half of it").unwrap();
        Err(OpenError::Missing(to.to_owned()))
    });
    assert!(failed.is_err() && place.names().is_empty(), "{:?}", place.names());
    // The copy turns out to be damaged.
    let failed = folder.add("scheduled-1", &label, |to| {
        let mut findings = place.store.backup(to, &mut |_| {})?;
        let file = to.join("00000001.log");
        findings.damages.push(Damage { file, offset: 1, found: "x".to_owned(), expected: "y".to_owned() });
        Ok(findings)
    });
    assert!(matches!(failed, Err(BackupError::Unsound(_))) && place.names().is_empty(), "{:?}", place.names());
    assert!(folder.add("scheduled-1", &label, |to| place.store.backup(to, &mut |_| {})).is_ok());
    let again = folder.add("scheduled-1", &label, |_| panic!("nothing is copied over a backup"));
    assert!(matches!(again, Err(BackupError::Store(OpenError::NotEmpty(_)))), "{again:?}");
    assert_eq!(backups_in(&backups).unwrap()[0].label, label, "the label is read as it was written");
}
