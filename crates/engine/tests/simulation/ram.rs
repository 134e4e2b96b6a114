//! A disk in memory that knows what a power cut leaves of it: what was flushed, and nothing else.

use redrive_store::embedded::{Disk, DiskFile, Identity, LockError};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Names = BTreeMap<PathBuf, Arc<Mutex<Contents>>>;

/// A file: as it is read, and as it was flushed last.
#[derive(Clone, Debug, Default)]
struct Contents {
    bytes: Vec<u8>,
    safe: Vec<u8>,
}

#[derive(Debug, Default)]
struct Folder {
    names: Names,
    safe: Names,
}

/// A disk. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct RamDisk(Arc<Mutex<Folder>>);

impl RamDisk {
    /// Another disk, as a power cut would leave this one now.
    pub(crate) fn cut(&self) -> Self {
        let left = |contents: &Arc<Mutex<Contents>>| {
            let safe = locked(contents).safe.clone();
            Arc::new(Mutex::new(Contents { bytes: safe.clone(), safe }))
        };
        let safe: Names = locked(&self.0).safe.iter().map(|(name, contents)| (name.clone(), left(contents))).collect();
        Self(Arc::new(Mutex::new(Folder { names: safe.clone(), safe })))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no {}", path.display()))
}

impl Disk for RamDisk {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let folder = locked(&self.0);
        let inside = folder.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let contents = Arc::<Mutex<Contents>>::default();
        locked(&self.0).names.insert(path.to_owned(), Arc::clone(&contents));
        Ok(Box::new(RamFile(contents)))
    }

    fn open(&self, path: &Path, _: bool) -> io::Result<Box<dyn DiskFile>> {
        let contents = locked(&self.0).names.get(path).cloned().ok_or_else(|| missing(path))?;
        Ok(Box::new(RamFile(contents)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut folder = locked(&self.0);
        let contents = folder.names.remove(from).ok_or_else(|| missing(from))?;
        folder.names.insert(to.to_owned(), contents);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        locked(&self.0).names.remove(path).map(|_| ()).ok_or_else(|| missing(path))
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut folder = locked(&self.0);
        folder.safe = folder.names.clone();
        Ok(())
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let contents = locked(&self.0).names.get(path).map(Arc::as_ptr);
        contents.map(|place| (0, place as u64)).ok_or_else(|| missing(path))
    }

    fn restrict(&self, _: &Path) -> io::Result<Option<u32>> {
        Ok(None)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>, LockError> {
        self.create(path).map_err(LockError::Disk)?;
        Ok(Box::new(()))
    }
}

struct RamFile(Arc<Mutex<Contents>>);

impl DiskFile for RamFile {
    fn size(&mut self) -> io::Result<u64> {
        Ok(locked(&self.0).bytes.len() as u64)
    }

    fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let contents = locked(&self.0);
        let from = contents.bytes.get(offset as usize..).unwrap_or_default();
        let read = from.len().min(bytes.len());
        bytes[..read].copy_from_slice(&from[..read]);
        Ok(read)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut contents = locked(&self.0);
        let end = offset as usize + bytes.len();
        if contents.bytes.len() < end {
            contents.bytes.resize(end, 0);
        }
        contents.bytes[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut contents = locked(&self.0);
        contents.safe = contents.bytes.clone();
        Ok(())
    }
}
