//! File descriptors that are set aside, so that the log can go on in a new file, and be compacted, when the
//! rest of the process has used up all others.

use super::disk::{Disk, DiskFile, Identity, LockError};
use super::fault::is_out_of_descriptors;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How many: the next segment, a snapshot that is being written, and the folder, for two threads.
const KEPT: usize = 4;

/// A disk with descriptors in reserve.
pub(super) struct Reserve {
    disk: Arc<dyn Disk>,
    /// The file that they are open on, which is there as long as the store is.
    path: PathBuf,
    kept: Mutex<Vec<Box<dyn DiskFile>>>,
}

impl Reserve {
    pub(super) fn new(disk: Arc<dyn Disk>, path: PathBuf) -> Self {
        let reserve = Self { disk, path, kept: Mutex::default() };
        reserve.refill();
        reserve
    }

    /// Does what needs a descriptor; gives one of its own free for it where there is no other.
    fn with<T>(&self, call: impl Fn(&dyn Disk) -> io::Result<T>) -> io::Result<T> {
        loop {
            match call(&*self.disk) {
                Err(error) if is_out_of_descriptors(&error) => {
                    if self.kept().pop().is_none() {
                        return Err(error);
                    }
                }
                outcome => {
                    self.refill();
                    return outcome;
                }
            }
        }
    }

    /// Reserves again what was freed, as far as that is possible now.
    fn refill(&self) {
        let mut kept = self.kept();
        while kept.len() < KEPT {
            match self.disk.open(&self.path, false) {
                Ok(file) => kept.push(file),
                Err(_) => return,
            }
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Box<dyn DiskFile>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for Reserve {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.with(|disk| disk.list(dir))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.with(|disk| disk.create(path))
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        self.with(|disk| disk.open(path, write))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.with(|disk| disk.sync_dir(dir))
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        self.disk.identity(path)
    }

    fn restrict(&self, path: &Path) -> io::Result<Option<u32>> {
        self.disk.restrict(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>, LockError> {
        self.disk.lock(path)
    }
}
