//! What the store calls: the simulated disk as a [`Disk`], its files and its lock.

use super::{Call, Change, Contents, Fault, SECTOR, SimDisk};
use redrive_store::embedded::{Disk, DiskFile, Identity, LockError};
use std::io;
use std::path::{Path, PathBuf};

impl Disk for SimDisk {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        self.call().map(drop)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = self.call_with_descriptor()?;
        let here = world.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.call_with_descriptor()?;
        if world.refused.is_some_and(|ending| path.to_string_lossy().ends_with(ending)) {
            world.refusals += 1;
            self.0.changed.notify_all();
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        world.files.push(Contents::default());
        let file = world.files.len() - 1;
        world.change(Change::Create(path.to_owned(), file));
        Ok(Box::new(SimFile { disk: self.clone(), file }))
    }

    fn open(&self, path: &Path, _: bool) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.call_with_descriptor()?;
        let file = if world.locked.contains(path) {
            // The file of a lock that is held is there, though no folder lists it.
            world.files.push(Contents::default());
            world.files.len() - 1
        } else {
            world.find(path)?
        };
        Ok(Box::new(SimFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.call()?;
        world.find(from)?;
        world.change(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.call()?;
        world.find(path)?;
        world.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut world = self.call_with_descriptor()?;
        world.flush()?;
        world.safe_names = world.names.clone();
        world.changes.clear();
        Ok(())
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let world = self.call()?;
        match world.locked.contains(path) {
            true => Ok((0, u64::MAX)),
            false => world.find(path).map(|file| (0, file as u64)),
        }
    }

    fn restrict(&self, _: &Path) -> io::Result<Option<u32>> {
        self.call().map(|_| None)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>, LockError> {
        let mut world = self.call().map_err(LockError::Disk)?;
        if !world.locked.insert(path.to_owned()) {
            return Err(LockError::Held(Some(std::process::id())));
        }
        Ok(Box::new(Lock(self.clone(), path.to_owned())))
    }
}

struct Lock(SimDisk, PathBuf);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.world().locked.remove(&self.1);
    }
}

struct SimFile {
    disk: SimDisk,
    file: usize,
}

impl DiskFile for SimFile {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.disk.call()?.files[self.file].bytes.len() as u64)
    }

    fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let world = self.disk.call()?;
        let contents = &world.files[self.file].bytes;
        let rest = contents.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(bytes.len());
        bytes[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.disk.call_to(self.file, Call::Write)?;
        world.writes += 1;
        let writes = world.writes;
        let short = world.faults.iter().find_map(|fault| match fault {
            Fault::ShortWrite(n, length) if *n == writes => Some(*length),
            _ => None,
        });
        if let Some(length) = short {
            world.files[self.file].write(offset as usize, &bytes[..length.min(bytes.len())]);
            return Err(io::Error::other("only a part was written"));
        }
        let used: u64 = world.names.values().map(|file| world.files[*file].bytes.len() as u64).sum();
        let end = offset + bytes.len() as u64;
        let more = end.saturating_sub(world.files[self.file].bytes.len() as u64);
        if world.room.is_some_and(|room| used + more > room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        world.files[self.file].write(offset as usize, bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut world = self.disk.call_to(self.file, Call::Flush)?;
        world.flush()?;
        let contents = &mut world.files[self.file];
        let dirty = std::mem::take(&mut contents.dirty);
        let length = contents.bytes.len();
        contents.safe.resize(length, 0);
        for sector in dirty {
            let range = sector * SECTOR..((sector + 1) * SECTOR).min(length);
            contents.safe[range.clone()].copy_from_slice(&contents.bytes[range]);
        }
        Ok(())
    }
}
