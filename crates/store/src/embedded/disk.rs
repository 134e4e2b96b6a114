//! The seam to the operating system, so that tests can put a failing disk, or a power cut, behind it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// What the store needs of a disk.
///
/// An implementation promises: after [`DiskFile::sync`] answered, the file's bytes and its length
/// survive a power cut; after [`Disk::sync_dir`], so do the names in the folder. Before that, any part
/// of what was written may be there or not, in units of 512 bytes. A rename replaces its target in one
/// step.
pub trait Disk: Send + Sync {
    /// Makes a folder, and those above it, where they are missing. Only its owner may enter a new one.
    ///
    /// # Errors
    /// What the operating system says.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// The names of the files in a folder, in any order.
    ///
    /// # Errors
    /// What the operating system says.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// A new, empty file, also where there was one of this name. Only its owner may read it.
    ///
    /// # Errors
    /// What the operating system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// A file that is there, for reading, and for writing if `write` says so.
    ///
    /// # Errors
    /// What the operating system says.
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// What the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the operating system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder safe from a power cut.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// The identity of the file at this path now, different from that of any other file that is still open.
    ///
    /// # Errors
    /// That there is nothing, or what the operating system says.
    fn identity(&self, path: &Path) -> io::Result<Identity>;

    /// Takes a file or folder away from every user but its owner. Answers the permissions that it had,
    /// where those gave others access.
    ///
    /// # Errors
    /// What the operating system says.
    fn restrict(&self, path: &Path) -> io::Result<Option<u32>>;

    /// Takes the lock that this file stands for, until the value is dropped.
    ///
    /// # Errors
    /// Another process has it, or the operating system refuses.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>, LockError>;
}

/// An open file.
pub trait DiskFile: Send {
    /// Its length in bytes.
    ///
    /// # Errors
    /// What the operating system says.
    fn size(&mut self) -> io::Result<u64>;

    /// Reads up to the length of `bytes` at an offset; less only at the end of the file.
    ///
    /// # Errors
    /// What the operating system says.
    fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `bytes` at an offset.
    ///
    /// # Errors
    /// What the operating system says; then any part may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns once everything written is safe from a power cut.
    ///
    /// # Errors
    /// What the operating system says; then nothing is known of what was written since the last time.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file or a folder: the number of its device, and its number there. Names may change; this does not.
pub type Identity = (u64, u64);

/// Why a lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it; its process id, if it left one.
    Held(Option<u32>),
    /// The operating system refused.
    Disk(io::Error),
}

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeDisk;

impl Disk for NativeDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(private(File::options().read(true).write(true).create(true).truncate(true)).open(path)?))
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(write).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Only Unix lets a folder be opened and flushed; elsewhere the file system keeps the order.
        if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
    }

    #[cfg(unix)]
    fn identity(&self, path: &Path) -> io::Result<Identity> {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(path)?;
        Ok((found.dev(), found.ino()))
    }

    /// Elsewhere it is only known whether there is something.
    #[cfg(not(unix))]
    fn identity(&self, path: &Path) -> io::Result<Identity> {
        fs::metadata(path).map(|_| (0, 0))
    }

    #[cfg(unix)]
    fn restrict(&self, path: &Path) -> io::Result<Option<u32>> {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path)?.permissions().mode() & 0o777;
        if mode & 0o077 == 0 {
            return Ok(None);
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))?;
        Ok(Some(mode))
    }

    #[cfg(not(unix))]
    fn restrict(&self, _: &Path) -> io::Result<Option<u32>> {
        Ok(None)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>, LockError> {
        let mut file = private(File::options().read(true).write(true).create(true).truncate(false))
            .open(path)
            .map_err(LockError::Disk)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(LockError::Held(holder));
            }
            Err(TryLockError::Error(error)) => return Err(LockError::Disk(error)),
        }
        let note = |file: &mut File| {
            file.set_len(0)?;
            file.write_all(std::process::id().to_string().as_bytes())
        };
        note(&mut file).map_err(LockError::Disk)?;
        Ok(Box::new(file))
    }
}

/// A file that is made with these has payloads in it, which concern its owner only.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

impl DiskFile for File {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.seek(SeekFrom::Start(offset))?;
        let mut read = 0;
        while read < bytes.len() {
            match self.read(&mut bytes[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        // fdatasync carries the length of the file too; only times may stay behind.
        self.sync_data()
    }
}
