//! A folder as a whole: read as it stands, or written under another name first.

use super::check::find;
use super::disk::NativeDisk;
use super::fault::{Doing, IoError, OpenError};
use super::names::{Name, is_own};
use super::open::{Folder, finish};
use super::options::Options;
use super::queue_index::QueueIndex;
use super::read::Reader;
use super::runs::RunSlot;
use super::store::Embedded;
use super::store_state::StoreState;
use crate::transfer::{
    CopyError, PAGE_BYTES, PAGE_JOBS, Portable, PortableGroup, PortableRun, QueueMark, Source, Target,
};
use crate::{Group, JobId, RunId, StoreError, StoreFuture};
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder that is read as it is. Nothing in it is changed, and no other process can open it meanwhile.
pub struct FolderSource {
    store_state: StoreState,
    /// All ids in order, each with its slot.
    names: Vec<(JobId, u32)>,
    folder: Folder,
}

impl FolderSource {
    /// Reads a folder.
    ///
    /// # Errors
    /// That there is no store in it, that it is in use, damaged or of a newer format, or what the disk says.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, OpenError> {
        let dir = dir.as_ref();
        let disk = Arc::new(NativeDisk);
        find(&*disk, dir)?;
        let folder = Folder::lock(disk, dir)?;
        let found = find(&*folder.disk, dir)?;
        let contents = Reader::new(&*folder.disk, dir, false, &mut |_| {}).read(&found)?;
        let store_state = finish(contents.loader, dir)?;
        let mut names: Vec<(JobId, u32)> = store_state.slots.iter().map(|(place, slot)| (slot.id, place)).collect();
        names.sort_unstable();
        Ok(Self { store_state, names, folder })
    }

    fn page(&self, last: Option<JobId>) -> Vec<Portable> {
        let begin = last.map_or(0, |last| self.names.partition_point(|(id, _)| *id <= last));
        let mut page = Vec::new();
        let mut bytes = 0;
        for (_, place) in self.names[begin..].iter().take(PAGE_JOBS) {
            let Some(slot) = self.store_state.slots.get(*place) else { continue };
            bytes += slot.weight();
            page.push(Portable { job: slot.job(), idempotency_key: self.store_state.key(*place).cloned() });
            if bytes > PAGE_BYTES {
                break;
            }
        }
        page
    }
}

impl Source for FolderSource {
    fn queues(&mut self) -> StoreFuture<'_, Vec<QueueMark>> {
        let queue_indexes = self.store_state.indexes.sorted_queue_indexes();
        let mark = |queue_index: &QueueIndex| QueueMark {
            name: Arc::clone(&queue_index.name),
            paused: queue_index.paused,
            created: queue_index.created,
        };
        Box::pin(ready(Ok(queue_indexes.map(mark).collect())))
    }

    fn count(&mut self) -> StoreFuture<'_, usize> {
        Box::pin(ready(Ok(self.names.len())))
    }

    fn after(&mut self, last: Option<JobId>) -> StoreFuture<'_, Vec<Portable>> {
        Box::pin(ready(Ok(self.page(last))))
    }

    fn runs_after(&mut self, last: Option<RunId>) -> StoreFuture<'_, Vec<PortableRun>> {
        let mut bytes = 0;
        let page = self.store_state.runs.behind(last).take(PAGE_JOBS).take_while(|slot| {
            let fits = bytes <= PAGE_BYTES;
            bytes += slot.bytes();
            fits
        });
        let portable =
            |slot: &RunSlot| PortableRun { run: slot.run.clone(), messages: slot.inbox.values().cloned().collect() };
        Box::pin(ready(Ok(page.map(portable).collect())))
    }

    fn groups_after(&mut self, last: Option<Group>) -> StoreFuture<'_, Vec<PortableGroup>> {
        let page = self.store_state.groups.behind(last.as_ref()).take(PAGE_JOBS);
        let page = page.map(|(group, row)| PortableGroup { group: group.clone(), row: row.clone() });
        Box::pin(ready(Ok(page.collect())))
    }
}

/// A folder that is filled under another name, and gets its own at the end.
pub struct FolderTarget {
    to: PathBuf,
    draft: PathBuf,
    stage: Stage,
}

enum Stage {
    Filling(Embedded),
    /// Between the two: neither is in memory.
    Closed,
    Reading(Box<FolderSource>),
}

impl FolderTarget {
    /// A target for a store: a folder that does not exist yet, or is empty. What an interrupted copy to the
    /// same target has left is removed.
    ///
    /// # Errors
    /// That the folder is not empty, that another copy goes there at this moment, or what the disk says.
    pub fn create(to: impl AsRef<Path>) -> Result<Self, CopyError> {
        let to = to.as_ref().to_owned();
        must_be_empty(&to)?;
        let draft = draft_of(&to)?;
        remove_draft(&draft)?;
        let (store, _) = Embedded::open(&draft, Options::default())?;
        Ok(Self { to, draft, stage: Stage::Filling(store) })
    }

    fn filling(&self) -> Result<&Embedded, StoreError> {
        match &self.stage {
            Stage::Filling(store) => Ok(store),
            Stage::Closed | Stage::Reading(_) => Err(StoreError::Broken("the copy is complete already".to_owned())),
        }
    }

    fn reading(&mut self) -> Result<&mut FolderSource, StoreError> {
        match &mut self.stage {
            Stage::Reading(source) => Ok(source),
            Stage::Filling(_) | Stage::Closed => Err(StoreError::Broken("the copy is not complete yet".to_owned())),
        }
    }

    fn read_back(&mut self) -> Result<(), StoreError> {
        self.filling()?.close()?;
        self.stage = Stage::Closed;
        let source = FolderSource::open(&self.draft).map_err(|error| StoreError::Broken(error.to_string()))?;
        self.stage = Stage::Reading(Box::new(source));
        Ok(())
    }

    /// Gives the folder its name, which an empty folder may have had so far.
    fn publish(self) -> Result<(), StoreError> {
        let Self { to, draft, stage } = self;
        let Stage::Reading(source) = stage else {
            return Err(StoreError::Broken("the copy is not complete yet".to_owned()));
        };
        let Folder { disk, lock, .. } = source.folder;
        drop(lock);
        if to.exists() {
            std::fs::remove_dir(&to).doing("replace the empty folder", &to).map_err(|error| stays(&draft, &error))?;
        }
        disk.rename(&draft, &to).doing("rename", &draft).map_err(|error| stays(&draft, &error))?;
        disk.sync_dir(parent(&to)).doing("flush the folder", parent(&to)).map_err(|error| stays(&to, &error))
    }
}

/// Complete and verified it is, only not where it should be.
fn stays(place: &Path, io_error: &IoError) -> StoreError {
    let place = place.display();
    StoreError::Unavailable(format!("{io_error}; the copy is complete in {place}: give the folder its name yourself"))
}

impl Source for FolderTarget {
    fn queues(&mut self) -> StoreFuture<'_, Vec<QueueMark>> {
        match self.reading() {
            Ok(source) => source.queues(),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn count(&mut self) -> StoreFuture<'_, usize> {
        match self.reading() {
            Ok(source) => source.count(),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn after(&mut self, last: Option<JobId>) -> StoreFuture<'_, Vec<Portable>> {
        match self.reading() {
            Ok(source) => source.after(last),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn runs_after(&mut self, last: Option<RunId>) -> StoreFuture<'_, Vec<PortableRun>> {
        match self.reading() {
            Ok(source) => source.runs_after(last),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn groups_after(&mut self, last: Option<Group>) -> StoreFuture<'_, Vec<PortableGroup>> {
        match self.reading() {
            Ok(source) => source.groups_after(last),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

impl Target for FolderTarget {
    fn add_queues(&mut self, queues: Vec<QueueMark>) -> StoreFuture<'_, ()> {
        match self.filling() {
            Ok(store) => store.answer(|store_state| {
                queues.iter().for_each(|queue| store_state.restore_queue(queue));
                Ok(())
            }),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn add(&mut self, jobs: Vec<Portable>) -> StoreFuture<'_, ()> {
        match self.filling() {
            Ok(store) => store.answer(|store_state| jobs.into_iter().try_for_each(|moved| store_state.restore(moved))),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn add_runs(&mut self, runs: Vec<PortableRun>) -> StoreFuture<'_, ()> {
        match self.filling() {
            Ok(store) => {
                store.answer(|store_state| runs.into_iter().try_for_each(|moved| store_state.restore_run(moved)))
            }
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn add_groups(&mut self, groups: Vec<PortableGroup>) -> StoreFuture<'_, ()> {
        match self.filling() {
            Ok(store) => store.answer(|store_state| {
                groups.into_iter().for_each(|moved| store_state.restore_group(moved));
                Ok(())
            }),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn seal(&mut self) -> StoreFuture<'_, ()> {
        Box::pin(ready(self.read_back()))
    }

    fn finish(self: Box<Self>) -> StoreFuture<'static, ()> {
        Box::pin(ready(self.publish()))
    }
}

/// Where a store is built that is to have this name.
fn draft_of(to: &Path) -> Result<PathBuf, CopyError> {
    let Some(name) = to.file_name() else {
        let to = to.display();
        return Err(CopyError::Refused(format!("{to} is no name for a folder; give one that ends in a name")));
    };
    let mut name = name.to_owned();
    name.push(".copying");
    Ok(to.with_file_name(name))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn names(dir: &Path) -> Result<Vec<String>, IoError> {
    use super::disk::Disk;
    match NativeDisk.list(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.doing("list", dir),
    }
}

fn must_be_empty(to: &Path) -> Result<(), CopyError> {
    let found = names(to).map_err(OpenError::from)?;
    if found.is_empty() {
        return Ok(());
    }
    let what = if found.iter().any(|name| Name::parse(name).is_some()) { "a store" } else { "other files" };
    let to = to.display();
    Err(CopyError::Refused(format!(
        "found {what} in {to}; allowed is a folder that is empty or not there yet: give another one, or move this \
         one away"
    )))
}

/// Removes what an interrupted copy has left, and nothing else.
fn remove_draft(draft: &Path) -> Result<(), CopyError> {
    let found = names(draft).map_err(OpenError::from)?;
    if !draft.exists() {
        return Ok(());
    }
    if let Some(other) = found.iter().find(|name| !is_own(name)) {
        let draft = draft.display();
        return Err(CopyError::Refused(format!(
            "found {other} in {draft}, where the copy is built; move that folder away"
        )));
    }
    // Another copy that runs has its lock.
    let _lock = Folder::lock(Arc::new(NativeDisk), draft)?;
    std::fs::remove_dir_all(draft).doing("remove", draft).map_err(OpenError::from)?;
    Ok(())
}
