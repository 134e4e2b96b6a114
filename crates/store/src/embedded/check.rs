//! Reading a folder from end to end without changing anything.

use super::disk::{Disk, LockError, NativeDisk};
use super::fault::{Damage, IoError, OpenError};
use super::names::{LOCK, Name};
use super::read::{Contents, LoadProgress, Reader, Survey, no_log_was_lost, survey};
use super::runs::RunSlot;
use super::slot::{Slot, order};
use crate::{EventKind, KEPT_FAILURES, KEPT_REVISIONS, State};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What a folder has, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// How many jobs are in each state, in the order of [`State::ALL`], as far as they can be read.
    pub jobs: [usize; 8],
    /// How many of the discarded ones are dead letters.
    pub dead: usize,
    /// How many queues there are.
    pub queues: usize,
    /// How many runs there are.
    pub runs: usize,
    /// How many messages wait in their inboxes.
    pub messages: usize,
    /// How many frames were read.
    pub frames: u64,
    /// How many records were read.
    pub records: u64,
    /// The length of the snapshot, in bytes.
    pub snapshot_bytes: u64,
    /// The length of the log after it, in bytes.
    pub log_bytes: u64,
    /// Whether the store was closed cleanly.
    pub clean: bool,
    /// The number of the last frame of the log that can be read.
    pub last_frame: u64,
    /// The number of the last frame that is known to have been flushed. A log that ends before it is damaged;
    /// without it, a lost end would not be noticed.
    pub high_water: Option<u64>,
    /// A last write that was torn, and never acknowledged: opening the store cuts it off. The file,
    /// and where it begins.
    pub torn: Option<(PathBuf, u64)>,
    /// Files that are not in use yet, or not any more: opening the store removes them.
    pub leftovers: Vec<PathBuf>,
    /// Places that are not as they were written; the first hundred.
    pub damages: Vec<Damage>,
    /// What can be read and cannot be true; the first hundred.
    pub contradictions: Vec<String>,
}

impl Findings {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty() && self.contradictions.is_empty()
    }
}

/// Reads all of a store that is not open, and verifies every checksum and every job.
///
/// # Errors
/// That there is no store, that it is in use or of a newer format, or what the disk says. Damage is no
/// error here: it is listed in what comes back.
pub fn check(dir: impl AsRef<Path>, progress: &mut dyn FnMut(LoadProgress)) -> Result<Findings, OpenError> {
    check_on(&NativeDisk, dir, progress)
}

/// As [`check`], on a disk of one's own.
///
/// # Errors
/// As [`check`].
pub fn check_on(
    disk: &dyn Disk,
    dir: impl AsRef<Path>,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<Findings, OpenError> {
    let dir = dir.as_ref();
    let found = find(disk, dir)?;
    let _lock = lock_if_there(disk, dir)?;
    let contents = Reader::new(disk, dir, true, progress).read(&found)?;
    Ok(findings(dir, &found, contents))
}

/// The files of a store that must be there.
pub(super) fn find(disk: &dyn Disk, dir: &Path) -> Result<Survey, OpenError> {
    if let Err(error) = disk.list(dir)
        && error.kind() == ErrorKind::NotFound
    {
        return Err(OpenError::Missing(dir.to_owned()));
    }
    let found = survey(disk, dir)?;
    if found.segments.is_empty() && found.snapshot.is_none() {
        no_log_was_lost(disk, dir)?;
        return Err(OpenError::Missing(dir.to_owned()));
    }
    Ok(found)
}

/// The lock, unless there is no file for it or the folder is read-only: then no other process has it either.
pub(super) fn lock_if_there(disk: &dyn Disk, dir: &Path) -> Result<Option<Box<dyn Send + Sync>>, OpenError> {
    let path = dir.join(LOCK);
    if disk.open(&path, false).is_err() {
        return Ok(None);
    }
    match disk.lock(&path) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held(holder)) => Err(OpenError::InUse { dir: dir.to_owned(), holder }),
        Err(LockError::Disk(error))
            if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            Ok(None)
        }
        Err(LockError::Disk(error)) => Err(IoError::new("lock", &path, &error).into()),
    }
}

fn findings(dir: &Path, found: &Survey, contents: Contents) -> Findings {
    let tail = contents.tail.as_ref();
    let torn = tail.and_then(|tail| {
        tail.torn?;
        Some((Name::Segment(tail.header.number).within(dir), tail.offset))
    });
    let unused = tail.and_then(|tail| tail.unused).map(Name::Segment);
    let leftovers = found.leftovers.iter().copied().chain(unused).map(|name| name.within(dir));
    let mut findings = Findings {
        jobs: [0; 8],
        dead: 0,
        queues: 0,
        runs: contents.loader.runs().len(),
        messages: contents.loader.runs().iter().map(|slot| slot.inbox.len()).sum(),
        frames: contents.frames,
        records: contents.loader.records,
        snapshot_bytes: contents.snapshot_bytes,
        log_bytes: contents.log_bytes,
        clean: contents.loader.marks.closed && torn.is_none(),
        last_frame: tail.map_or(0, |tail| tail.next_sequence.saturating_sub(1)),
        high_water: contents.high_water,
        torn,
        leftovers: leftovers.collect(),
        damages: contents.damages,
        contradictions: Vec::new(),
    };
    for (_, slot) in contents.loader.slots().iter() {
        findings.jobs[slot.state() as usize] += 1;
        findings.dead += usize::from(slot.is_dead());
        if let Some(contradiction) = contradiction(slot).filter(|_| findings.contradictions.len() < LISTED) {
            findings.contradictions.push(format!("job {} {contradiction}", slot.id));
        }
    }
    for slot in contents.loader.runs().iter() {
        if let Some(contradiction) = run_contradiction(slot).filter(|_| findings.contradictions.len() < LISTED) {
            findings.contradictions.push(format!("run {} {contradiction}", slot.run.id));
        }
    }
    findings.queues = contents.loader.queues();
    // Behind damage, records that do not fit together are its consequence.
    if let Err(why) = contents.loader.finish()
        && findings.damages.is_empty()
    {
        findings.contradictions.push(format!("the log has {why}"));
    }
    findings
}

/// How many contradictions are listed at most.
const LISTED: usize = 100;

/// What cannot be true of a job, whatever happened to it.
fn contradiction(slot: &Slot) -> Option<&'static str> {
    let job = slot.job();
    let (state, times) = (job.state, job.times);
    let checks = [
        ((state == State::Active) == job.lease.is_some(), "has a lease and is not active, or the other way round"),
        (
            state.after(EventKind::Due).is_some() == job.due.is_some(),
            "is due and does not wait, or the other way round",
        ),
        (state.is_terminal() == times.finished.is_some(), "has ended and has no end, or the other way round"),
        (state != State::Available || times.available.is_some(), "is available since no time"),
        (!job.dead || state == State::Discarded, "is a dead letter and not discarded"),
        (job.lease.as_ref().is_none_or(|lease| lease.token.number == job.leases), "has another lease than its last"),
        (job.settled.is_none() || state == State::Completed, "was completed and is not"),
        (job.failures.len() <= KEPT_FAILURES, "has more failures than are stored"),
        (job.failures.is_sorted_by(|a, b| order(a) < order(b)), "has failures out of order"),
        (job.revisions.len() <= KEPT_REVISIONS, "has more revisions than are stored"),
        (job.revisions.is_sorted_by(|a, b| a.generation < b.generation), "has revisions out of order"),
    ];
    checks.into_iter().find(|(lease_refs, _)| !lease_refs).map(|(_, what)| what)
}

/// What cannot be true of a run, whatever happened to it.
fn run_contradiction(slot: &RunSlot) -> Option<&'static str> {
    let run = &slot.run;
    let over = run.end.is_some();
    let checks = [
        (!over || run.timer.is_none(), "has ended and has a timer"),
        (!over || run.key.is_none(), "has ended and has a key"),
        (!over || run.revision > 0, "has ended without a step"),
        (run.parent.is_none_or(|parent| parent.run != run.id), "has started itself"),
    ];
    checks.into_iter().find(|(fits, _)| !fits).map(|(_, what)| what)
}
