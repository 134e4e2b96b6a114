//! A disk in memory that fails on demand, and that knows what a power cut would leave.

mod interface;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The unit that a disk writes whole or not at all.
pub(crate) const SECTOR: usize = 512;

/// The longest time that a test waits for anything, even on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A disk. A clone is the same disk.
#[derive(Clone, Default)]
pub(crate) struct SimDisk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    world: Mutex<World>,
    /// Flushes are held back, or no longer; or a caller waits for one.
    changed: Condvar,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The n-th call from now on, counted from 1, fails, and so does everything after it.
    FailFrom(u64),
    /// The n-th call from now on fails; those after it do not.
    FailOnce(u64),
    /// The n-th write from now on writes only this many bytes, and fails.
    ShortWrite(u64, usize),
    /// The power fails when the n-th flush from now on is asked for: it does not happen, and nothing
    /// after it does.
    PowerCut(u64),
}

#[derive(Default)]
struct World {
    names: BTreeMap<PathBuf, usize>,
    /// The directory as a power cut would leave it, and its changes since.
    safe_names: BTreeMap<PathBuf, usize>,
    changes: Vec<Change>,
    files: Vec<Contents>,
    locked: BTreeSet<PathBuf>,
    faults: Vec<Fault>,
    calls: u64,
    writes: u64,
    flushes: u64,
    /// Why nothing works any more.
    dead: Option<&'static str>,
    /// How many bytes there is room for.
    room: Option<u64>,
    /// Which calls are held back, and how many are.
    held: Vec<Point>,
    waiting: usize,
    /// Files with this extension cannot be created; how often that was tried.
    refused: Option<&'static str>,
    /// This many more calls that need a file descriptor get none.
    exhausted: usize,
    refusals: usize,
}

/// Calls that can be held back: those of this kind, to files with this extension, after the first few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) call: Call,
    pub(crate) ending: &'static str,
    pub(crate) after: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Write,
    Flush,
}

#[derive(Clone)]
enum Change {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

#[derive(Clone, Default)]
struct Contents {
    bytes: Vec<u8>,
    safe: Vec<u8>,
    /// The sectors in which the two differ, or may.
    dirty: BTreeSet<usize>,
}

impl SimDisk {
    fn of(world: World) -> Self {
        Self(Arc::new(Shared { world: Mutex::new(world), changed: Condvar::new() }))
    }

    /// These calls do not return until the guard is dropped.
    pub(crate) fn hold(&self, point: Point) -> Held {
        self.world().held.push(point);
        Held(self.clone(), point)
    }

    /// No flush of the log returns until the guard is dropped.
    pub(crate) fn hold_flushes(&self) -> Held {
        self.hold(Point { call: Call::Flush, ending: ".log", after: 0 })
    }

    /// From now on, files with this extension cannot be created.
    pub(crate) fn refuse(&self, ending: &'static str) {
        let mut world = self.world();
        (world.refused, world.refusals) = (Some(ending), 0);
    }

    /// This many calls from now on that need a file descriptor get none.
    pub(crate) fn exhaust(&self, calls: usize) {
        self.world().exhausted = calls;
    }

    /// How many of them are still to come.
    pub(crate) fn exhausted(&self) -> usize {
        self.world().exhausted
    }

    /// The world at the moment of a call that needs a file descriptor.
    fn call_with_descriptor(&self) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.call()?;
        if world.exhausted > 0 {
            world.exhausted -= 1;
            // EMFILE
            return Err(io::Error::from_raw_os_error(24));
        }
        Ok(world)
    }

    /// How often that was tried.
    pub(crate) fn refusals(&self) -> usize {
        self.world().refusals
    }

    /// Returns once that was tried so often.
    pub(crate) fn wait_for_refusals(&self, count: usize) {
        self.wait_while(|world| world.refusals < count);
    }

    fn wait_while(&self, condition: impl Fn(&World) -> bool) {
        let waited = self.0.changed.wait_timeout_while(self.world(), TIMEOUT, |world| condition(world)).unwrap();
        assert!(!waited.1.timed_out(), "what the test waits for does not happen");
    }

    /// Returns once this many calls are held back.
    pub(crate) fn wait_for_held_calls(&self, count: usize) {
        self.wait_while(|world| world.waiting < count);
    }

    /// The world at the moment of a call to a file, which may be held back for a while.
    fn call_to(&self, file: usize, call: Call) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.call()?;
        if world.holds(file, call) {
            world.waiting += 1;
            self.0.changed.notify_all();
            world = self.0.changed.wait_while(world, |world| world.holds(file, call)).unwrap();
            world.waiting -= 1;
        }
        Ok(world)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().unwrap()
    }

    /// From now on, this fault occurs.
    pub(crate) fn break_with(&self, fault: Fault) {
        let mut world = self.world();
        let (calls, writes, flushes) = (world.calls, world.writes, world.flushes);
        world.faults.push(match fault {
            Fault::FailFrom(n) => Fault::FailFrom(calls + n),
            Fault::FailOnce(n) => Fault::FailOnce(calls + n),
            Fault::ShortWrite(n, bytes) => Fault::ShortWrite(writes + n, bytes),
            Fault::PowerCut(n) => Fault::PowerCut(flushes + n),
        });
    }

    pub(crate) fn repair(&self) {
        let mut world = self.world();
        world.faults.clear();
        world.dead = None;
        world.room = None;
        world.refused = None;
    }

    /// From now on there is room for this many more bytes.
    pub(crate) fn fill_up(&self, room: u64) {
        let mut world = self.world();
        let used: usize = world.names.values().map(|file| world.files[*file].bytes.len()).sum();
        world.room = Some(used as u64 + room);
    }

    /// How many calls and how many writes there were.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let world = self.world();
        (world.calls, world.writes)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.world().dead.is_some()
    }

    /// What a power cut now leaves: of what was not flushed, each sector is there or not, at random,
    /// and of the changes of the directory the first few, or any. The lock is released.
    pub(crate) fn after_power_cut(&self, random: &mut fastrand::Rng) -> Self {
        let world = self.world();
        let mut names = world.safe_names.clone();
        let kept = random.usize(..=world.changes.len());
        let in_order = random.bool();
        for (index, change) in world.changes.iter().enumerate() {
            if if in_order { index < kept } else { random.bool() } {
                apply(change, &mut names);
            }
        }
        // All, none, or about this share of the sectors.
        let share = [0.0, 1.0, random.f64(), random.f64()][random.usize(..4)];
        let files = world.files.iter().map(|file| {
            let bytes = file.torn(|| random.f64() < share);
            Contents { safe: bytes.clone(), bytes, dirty: BTreeSet::new() }
        });
        let files = files.collect();
        Self::of(World { safe_names: names.clone(), names, files, ..World::default() })
    }

    /// A copy as it is now, without faults, and not locked.
    pub(crate) fn copy(&self) -> Self {
        let world = self.world();
        let files = world.files.iter().map(|file| Contents {
            bytes: file.bytes.clone(),
            safe: file.bytes.clone(),
            dirty: BTreeSet::new(),
        });
        let files = files.collect();
        let (names, safe_names) = (world.names.clone(), world.names.clone());
        Self::of(World { names, safe_names, files, ..World::default() })
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.world().names.keys().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    /// The bytes of the file of this name, wherever it is.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        let world = self.world();
        let (_, file) = world.names.iter().find(|(path, _)| path.ends_with(name)).unwrap();
        world.files[*file].bytes.clone()
    }

    pub(crate) fn edit(&self, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut world = self.world();
        let file = *world.names.iter().find(|(path, _)| path.ends_with(name)).unwrap().1;
        let contents = &mut world.files[file];
        edit(&mut contents.bytes);
        contents.safe.clone_from(&contents.bytes);
    }

    pub(crate) fn delete(&self, name: &str) {
        let mut world = self.world();
        world.names.retain(|path, _| !path.ends_with(name));
        world.safe_names.retain(|path, _| !path.ends_with(name));
    }

    /// Removes a folder with all its files.
    pub(crate) fn delete_under(&self, dir: &Path) {
        let mut world = self.world();
        world.names.retain(|path, _| !path.starts_with(dir));
        world.safe_names.retain(|path, _| !path.starts_with(dir));
        world.changes.clear();
    }

    /// Removes all files with this ending.
    pub(crate) fn delete_ending(&self, ending: &str) {
        for name in self.names().iter().filter(|name| name.ends_with(ending)) {
            self.delete(name);
        }
    }

    fn call(&self) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.world();
        if let Some(why) = world.dead {
            return Err(io::Error::other(why));
        }
        world.calls += 1;
        let calls = world.calls;
        if world.faults.contains(&Fault::FailOnce(calls)) {
            return Err(io::Error::other("this call was made to fail"));
        }
        if world.faults.contains(&Fault::FailFrom(calls)) {
            world.dead = Some("the disk was made to fail");
            return Err(io::Error::other("the disk was made to fail"));
        }
        Ok(world)
    }
}

/// Holds calls back.
pub(crate) struct Held(SimDisk, Point);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.world().held.retain(|held| (held.call, held.ending) != (self.1.call, self.1.ending));
        self.0.0.changed.notify_all();
    }
}

fn apply(change: &Change, names: &mut BTreeMap<PathBuf, usize>) {
    match change {
        Change::Create(path, file) => {
            names.insert(path.clone(), *file);
        }
        Change::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Change::Remove(path) => {
            names.remove(path);
        }
    }
}

impl Contents {
    /// The safe bytes with some of the dirty sectors as they are now.
    fn torn(&self, mut survives: impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.safe.clone();
        for sector in &self.dirty {
            let range = sector * SECTOR..((sector + 1) * SECTOR).min(self.bytes.len());
            if range.start >= range.end || !survives() {
                continue;
            }
            if bytes.len() < range.end {
                bytes.resize(range.end, 0);
            }
            bytes[range.clone()].copy_from_slice(&self.bytes[range]);
        }
        bytes
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(bytes);
        if !bytes.is_empty() {
            self.dirty.extend(offset / SECTOR..=(end - 1) / SECTOR);
        }
    }
}

impl World {
    fn change(&mut self, change: Change) {
        apply(&change, &mut self.names);
        self.changes.push(change);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        if self.faults.contains(&Fault::PowerCut(self.flushes)) {
            self.dead = Some("the power is out");
            return Err(io::Error::other("the power is out"));
        }
        Ok(())
    }

    /// Whether this call to a file is to be held back.
    fn holds(&mut self, file: usize, call: Call) -> bool {
        let name = self.names.iter().find(|(_, known)| **known == file).map(|(path, _)| path.to_string_lossy());
        let fits = |point: &Point| name.as_ref().is_some_and(|name| name.ends_with(point.ending));
        let Some(point) = self.held.iter_mut().find(|point| point.call == call && fits(point)) else { return false };
        let holds = point.after == 0;
        point.after = point.after.saturating_sub(1);
        holds
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}
