//! The folder that has the backups.
//!
//! A backup is made under a hidden name and gets its own when it is complete, so that what is there is whole. A lock
//! keeps two processes from making backups in one folder at once; its holder may remove what others left unfinished.

use super::label::{BackupLabel, LABEL};
use redrive_store::embedded::{Findings, OpenError, is_store_file};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// The file that stands for the lock.
const LOCK: &str = ".lock";
/// How the names of unfinished backups end. They begin with a dot.
const UNFINISHED: &str = ".unfinished";

/// Why there is no backup. Nothing of it is left.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// The store was not copied.
    Store(OpenError),
    /// The copy is not what it should be.
    Unsound(PathBuf),
    /// The folder for backups is missing. It is not made: it was mistyped, or is on a disk that is not there.
    NoFolder(PathBuf),
    /// Another process makes a backup in this folder.
    Busy(PathBuf),
    /// A call of the operating system failed.
    Disk {
        /// What was to be done.
        doing: String,
        /// What the operating system said.
        error: io::Error,
    },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "{error}"),
            Self::Unsound(store) => write!(
                f,
                "the copy of the store in {} was read and is damaged; `redrive store check` tells whether the store is",
                store.display()
            ),
            Self::NoFolder(dir) => write!(
                f,
                "the folder for backups, {}, is not there; make it, or see whether its disk is mounted",
                dir.display()
            ),
            Self::Busy(dir) => write!(f, "another process makes a backup in {} now; one at a time", dir.display()),
            Self::Disk { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for BackupError {}

impl From<OpenError> for BackupError {
    fn from(error: OpenError) -> Self {
        Self::Store(error)
    }
}

fn doing(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    move |error| BackupError::Disk { doing: format!("{verb} {}", path.display()), error }
}

/// A backup that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its folder.
    pub path: PathBuf,
    /// What is known of it.
    pub label: BackupLabel,
}

/// The complete backups in a folder that have a label, in the order in which they were taken.
///
/// # Errors
/// That the folder cannot be read.
pub fn backups_in(dir: &Path) -> io::Result<Vec<Backup>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if !is_hidden(&path)
            && let Ok(Some(label)) = BackupLabel::read(&path)
        {
            found.push(Backup { path, label });
        }
    }
    found.sort_by(|a, b| (a.label.taken_at, &a.path).cmp(&(b.label.taken_at, &b.path)));
    Ok(found)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// The folder that has the backups, locked.
pub(crate) struct BackupFolder {
    dir: PathBuf,
    _lock: File,
}

impl BackupFolder {
    /// Locks the folder and removes what unfinished backups have left there.
    pub(crate) fn open(dir: &Path) -> Result<Self, BackupError> {
        if !dir.is_dir() {
            return Err(BackupError::NoFolder(dir.to_owned()));
        }
        let path = dir.join(LOCK);
        let lock =
            File::options().write(true).create(true).truncate(false).open(&path).map_err(doing("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BackupError::Busy(dir.to_owned())),
            Err(TryLockError::Error(error)) => return Err(doing("lock", &path)(error)),
        }
        let folder = Self { dir: dir.to_owned(), _lock: lock };
        for path in entries(dir)? {
            if is_hidden(&path) && path.to_string_lossy().ends_with(UNFINISHED) {
                remove(&path)?;
            }
        }
        Ok(folder)
    }

    /// Makes a backup of this name: `copy` copies the store into a folder.
    pub(crate) fn add(
        &self,
        name: &str,
        label: &BackupLabel,
        copy: impl FnOnce(&Path) -> Result<Findings, OpenError>,
    ) -> Result<Findings, BackupError> {
        let (to, draft) = (self.dir.join(name), self.draft(name));
        if fs::symlink_metadata(&to).is_ok() {
            return Err(OpenError::NotEmpty(to).into());
        }
        let made = copy(&draft).map_err(BackupError::from).and_then(|findings| {
            if !findings.is_sound() {
                return Err(BackupError::Unsound(label.store.clone()));
            }
            label.write(&draft).map_err(doing("write the label of", &draft))?;
            fs::rename(&draft, &to).map_err(doing("rename", &draft))?;
            sync_dir(&self.dir).map_err(doing("flush the folder", &self.dir))?;
            Ok(findings)
        });
        if made.is_err() {
            // What cannot be removed now is removed with the next backup.
            let _ = remove(&draft);
        }
        made
    }

    /// Deletes the oldest backups that the schedule has made of this store, until `keep` are left. Returns which. A
    /// backup to which something was added stays.
    pub(crate) fn retain(&self, store: &Path, keep: usize) -> Result<Vec<PathBuf>, BackupError> {
        let mut scheduled = self.scheduled(store)?;
        let surplus = scheduled.len().saturating_sub(keep);
        scheduled.truncate(surplus);
        let mut deleted = Vec::new();
        for (_, Backup { path, .. }) in scheduled {
            if !is_own(&path)? {
                continue;
            }
            // Under its own name it is whole, also if this is interrupted.
            let draft = self.draft(&path.file_name().unwrap_or_default().to_string_lossy());
            fs::rename(&path, &draft).map_err(doing("rename", &path))?;
            remove(&draft)?;
            deleted.push(path);
        }
        Ok(deleted)
    }

    /// The backups that the schedule has made of this store, with their numbers, oldest first.
    pub(crate) fn scheduled(&self, store: &Path) -> Result<Vec<(u64, Backup)>, BackupError> {
        let all = backups_in(&self.dir).map_err(doing("list", &self.dir))?;
        let own = all.into_iter().filter(|backup| backup.label.store == store);
        let mut scheduled: Vec<_> = own.filter_map(|backup| Some((backup.label.scheduled?, backup))).collect();
        scheduled.sort_by_key(|(number, _)| *number);
        Ok(scheduled)
    }

    fn draft(&self, name: &str) -> PathBuf {
        self.dir.join(format!(".{name}{UNFINISHED}"))
    }
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let entries = fs::read_dir(dir).map_err(doing("list", dir))?;
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    paths.map_err(doing("list", dir))
}

/// Whether this is a folder with the files of a backup and nothing else.
fn is_own(dir: &Path) -> Result<bool, BackupError> {
    if !fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir()) {
        return Ok(false);
    }
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(entries(dir)?.iter().map(name).all(|name| name == LABEL || is_store_file(&name)))
}

/// Removes a folder with the files of a backup. One with anything else in it stays.
fn remove(dir: &Path) -> Result<(), BackupError> {
    if is_own(dir)? {
        for path in entries(dir)? {
            fs::remove_file(&path).map_err(doing("remove", &path))?;
        }
        fs::remove_dir(dir).map_err(doing("remove", dir))?;
    }
    Ok(())
}

/// Makes the names in a folder safe from a power cut.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    // Only Unix lets a folder be opened and flushed; elsewhere the file system keeps the order.
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}
