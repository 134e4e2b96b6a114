//! Reading a folder: the newest snapshot, then the log after it.

use super::disk::{Disk, DiskFile};
use super::fault::{Damage, Doing, IoError, OpenError};
use super::frame::{HEADER, Header, SECTOR, find, is_zero};
use super::header::{FIRST_FRAME, FileHeader, HeaderFlaw, Kind};
use super::high_water::HighWater;
use super::load::Loader;
use super::names::{HIGH_WATER, Name};
use super::walk::{End, START, Walked, walk};
use std::path::{Path, PathBuf};

/// How far a folder has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadProgress {
    /// Bytes read so far.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// The files of a folder, by what they are for.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) snapshot: Option<u64>,
    /// The segments that are read, the first one first, without gaps.
    pub(super) segments: Vec<u64>,
    /// What a crash has left, or a newer snapshot replaces.
    pub(super) leftovers: Vec<Name>,
    /// A segment that should be there.
    pub(super) missing: Option<u64>,
}

/// Where the log ends.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) header: FileHeader,
    pub(super) offset: u64,
    pub(super) next_sequence: u64,
    /// What is cut off, behind `offset`: how many bytes.
    pub(super) torn: Option<u64>,
    /// A segment that was begun and not used.
    pub(super) unused: Option<u64>,
}

/// All that a folder has.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) loader: Loader,
    pub(super) tail: Option<Tail>,
    /// The number of the last frame that is known to have been flushed.
    pub(super) high_water: Option<u64>,
    pub(super) frames: u64,
    pub(super) snapshot_bytes: u64,
    pub(super) log_bytes: u64,
    pub(super) damages: Vec<Damage>,
}

/// Looks at the names in a folder.
pub(super) fn survey(disk: &dyn Disk, dir: &Path) -> Result<Survey, IoError> {
    let mut survey = Survey::default();
    let (mut segments, mut snapshots) = (Vec::new(), Vec::new());
    for name in disk.list(dir).doing("list", dir)?.iter().filter_map(|name| Name::parse(name)) {
        match name {
            Name::Segment(number) => segments.push(number),
            Name::Snapshot(number) => snapshots.push(number),
            Name::Spare(_) | Name::Draft(_) => survey.leftovers.push(name),
        }
    }
    survey.snapshot = snapshots.iter().copied().max();
    let first = survey.snapshot.unwrap_or(1);
    let old = snapshots.into_iter().filter(|number| *number < first).map(Name::Snapshot);
    survey.leftovers.extend(old.chain(segments.iter().filter(|number| **number < first).copied().map(Name::Segment)));
    segments.retain(|number| *number >= first);
    segments.sort_unstable();
    let gap = segments.iter().zip(first..).find(|(number, expected)| *number != expected).map(|(_, expected)| expected);
    let none = (segments.is_empty() && survey.snapshot.is_some()).then_some(first);
    survey.missing = gap.or(none);
    survey.segments = segments;
    Ok(survey)
}

/// A folder without a log has never had one.
pub(super) fn no_log_was_lost(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    match HighWater::read(disk, dir)? {
        None | Some(0) => Ok(()),
        Some(mark) => {
            let found = "neither a log nor a snapshot".to_owned();
            let expected = format!(
                "the log, of which {mark} frames were flushed (to start with an empty store, remove the file {HIGH_WATER} as well)"
            );
            Err(Damage { file: dir.join(HIGH_WATER), offset: 0, found, expected }.into())
        }
    }
}

/// Reads a folder.
pub(super) struct Reader<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    /// Whether to go on behind damage, to see the extent of it.
    thorough: bool,
    progress: &'a mut dyn FnMut(LoadProgress),
    seen: LoadProgress,
    contents: Contents,
}

/// How many damages are listed at most.
const LISTED_DAMAGES: usize = 100;

impl<'a> Reader<'a> {
    pub(super) fn new(
        disk: &'a dyn Disk,
        dir: &'a Path,
        thorough: bool,
        progress: &'a mut dyn FnMut(LoadProgress),
    ) -> Self {
        let contents = Contents {
            loader: Loader::default(),
            tail: None,
            high_water: None,
            frames: 0,
            snapshot_bytes: 0,
            log_bytes: 0,
            damages: Vec::new(),
        };
        Self { disk, dir, thorough, progress, seen: LoadProgress::default(), contents }
    }

    pub(super) fn read(mut self, survey: &Survey) -> Result<Contents, OpenError> {
        let snapshot = survey.snapshot.map(Name::Snapshot);
        for name in snapshot.into_iter().chain(survey.segments.iter().copied().map(Name::Segment)) {
            let path = name.within(self.dir);
            self.seen.total += self.open(&path)?.size().doing("measure", &path)?;
        }
        if let Some(missing) = survey.missing {
            let file = Name::Segment(missing).within(self.dir);
            let expected = format!("segment {missing} of the log");
            self.damage(file, 0, "no such file".to_owned(), expected)?;
        }
        let mut next_sequence = 1;
        if let Some(number) = survey.snapshot {
            next_sequence = self.read_snapshot(number)?;
        }
        self.read_log(&survey.segments, next_sequence)?;
        self.read_high_water()?;
        Ok(self.contents)
    }

    /// Whether the log goes as far as it was flushed. If not, its end is lost, however good it looks.
    fn read_high_water(&mut self) -> Result<(), OpenError> {
        self.contents.high_water = HighWater::read(self.disk, self.dir)?;
        let (Some(mark), Some(tail)) = (self.contents.high_water, &self.contents.tail) else { return Ok(()) };
        if tail.next_sequence > mark {
            return Ok(());
        }
        let file = Name::Segment(tail.header.number).within(self.dir);
        let found = format!("the end of the log after frame {}", tail.next_sequence.saturating_sub(1));
        let expected = format!(
            "the frame with number {}, because {HIGH_WATER} says that frames up to {mark} were flushed (to go on \
             without them, keep a copy of the folder and remove the file {HIGH_WATER})",
            tail.next_sequence
        );
        let offset = tail.offset;
        self.damage(file, offset, found, expected)
    }

    fn damage(&mut self, file: PathBuf, offset: u64, found: String, expected: String) -> Result<(), OpenError> {
        if let Some(found) = self.contents.loader.newer.take() {
            return Err(OpenError::TooNewRecord { file, offset, found });
        }
        let damage = Damage { file, offset, found, expected };
        if !self.thorough {
            return Err(damage.into());
        }
        if self.contents.damages.len() < LISTED_DAMAGES {
            self.contents.damages.push(damage);
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>, IoError> {
        self.disk.open(path, false).doing("open", path)
    }

    fn advance(&mut self, bytes: u64) {
        self.seen.done += bytes;
        (self.progress)(self.seen);
    }

    /// The head of a file; `None` where it is damaged.
    fn head(&mut self, path: &Path, bytes: &[u8], kind: Kind, number: u64) -> Result<Option<FileHeader>, OpenError> {
        let expected = format!("the head of {} {number}", if kind == Kind::Segment { "segment" } else { "snapshot" });
        let found = match FileHeader::decode(bytes) {
            Ok(header) if header.kind == kind && header.number == number => return Ok(Some(header)),
            Ok(header) => format!("the head of another file, number {}", header.number),
            Err(HeaderFlaw::Newer(format)) => return Err(OpenError::TooNew { file: path.to_owned(), format }),
            Err(HeaderFlaw::Unreadable) if bytes.len() < START => format!("{} bytes in all", bytes.len()),
            Err(HeaderFlaw::Unreadable) => "something else".to_owned(),
        };
        self.damage(path.to_owned(), 0, found, expected)?;
        Ok(None)
    }

    /// Reads a snapshot in pieces, because it may be large. Answers the number of the next frame in the
    /// log.
    fn read_snapshot(&mut self, number: u64) -> Result<u64, OpenError> {
        let path = Name::Snapshot(number).within(self.dir);
        let mut file = self.open(&path)?;
        let size = file.size().doing("measure", &path)?;
        self.contents.snapshot_bytes = size;
        let mut bytes = vec![0; START.min(size as usize)];
        file.read_at(0, &mut bytes).doing("read", &path)?;
        let Some(header) = self.head(&path, &bytes, Kind::Snapshot, number)? else { return Ok(1) };
        self.advance(FIRST_FRAME);
        let (mut offset, mut sequence) = (FIRST_FRAME, 1);
        while offset < size {
            let outcome = self.snapshot_frame(&mut *file, &path, offset, sequence, header.salt, &mut bytes)?;
            match outcome {
                Ok(read) => (offset, sequence) = (offset + read, sequence + 1),
                Err(found) => {
                    self.damage(path, offset, found, format!("the frame with number {sequence}"))?;
                    return Ok(self.contents.loader.marks.begin.unwrap_or(1));
                }
            }
        }
        let marks = self.contents.loader.marks;
        let jobs = self.contents.loader.slots().len() as u64;
        if marks.end != Some(jobs) || marks.begin.is_none() {
            let found = format!("{jobs} jobs, and an end mark of {:?}", marks.end);
            self.damage(path, offset, found, "a beginning, and an end that counts the jobs".to_owned())?;
        }
        Ok(marks.begin.unwrap_or(1))
    }

    /// One frame of a snapshot: its length, or what is wrong with it.
    fn snapshot_frame(
        &mut self,
        file: &mut dyn DiskFile,
        path: &Path,
        offset: u64,
        sequence: u64,
        salt: u32,
        bytes: &mut Vec<u8>,
    ) -> Result<Result<u64, String>, IoError> {
        let mut head = [0; HEADER];
        let read = file.read_at(offset, &mut head).doing("read", path)?;
        let header = match Header::read(&head[..read], salt) {
            Some(header) if header.sequence == sequence => header,
            Some(header) => return Ok(Err(format!("the frame with number {}", header.sequence))),
            None => return Ok(Err("a frame whose header has a wrong checksum".to_owned())),
        };
        let size = header.size();
        if offset + size as u64 > self.contents.snapshot_bytes {
            return Ok(Err("a frame that is longer than its file".to_owned()));
        }
        bytes.resize(size - HEADER, 0);
        let read = file.read_at(offset + HEADER as u64, bytes).doing("read", path)?;
        let Ok(records) = header.check(&bytes[..read], salt) else {
            return Ok(Err("a frame whose records have a wrong checksum".to_owned()));
        };
        if self.contents.loader.marks.end.is_some() {
            return Ok(Err("a frame behind the end".to_owned()));
        }
        if let Err(found) = self.contents.loader.apply(&records) {
            return Ok(Err(found));
        }
        self.contents.frames += 1;
        self.advance(size as u64);
        Ok(Ok(size as u64))
    }

    fn read_log(&mut self, segments: &[u64], mut next_sequence: u64) -> Result<(), OpenError> {
        for (index, number) in segments.iter().enumerate() {
            let path = Name::Segment(*number).within(self.dir);
            let bytes = self.load(&path)?;
            let Some(header) = self.head(&path, &bytes, Kind::Segment, *number)? else { continue };
            if header.length != bytes.len() as u64 {
                let expected = format!("a file of {} bytes", header.length);
                let found = format!("the end of the file after {} bytes", bytes.len());
                self.damage(path.clone(), bytes.len() as u64, found, expected)?;
            }
            let (walked, behind) = self.walk_on(&path, &bytes, &header, next_sequence)?;
            next_sequence = walked.next_sequence;
            self.contents.log_bytes += (walked.offset - START) as u64;
            self.advance(bytes.len() as u64);
            if !self.follow(*number, segments.get(index + 1..).unwrap_or_default(), &walked)? {
                let torn = (walked.end == End::Torn).then_some(behind);
                let unused = segments.get(index + 1).copied();
                let offset = walked.offset as u64;
                self.contents.tail = Some(Tail { header, offset, next_sequence, torn, unused });
                return Ok(());
            }
        }
        Ok(())
    }

    fn load(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        let mut file = self.open(path)?;
        let size = file.size().doing("measure", path)?;
        let mut bytes = vec![0; size as usize];
        let read = file.read_at(0, &mut bytes).doing("read", path)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Walks a segment to its end, over damaged places if need be. Answers also how many bytes there are
    /// from where it can be read no further to the last one that is not zero.
    fn walk_on(
        &mut self,
        path: &Path,
        bytes: &[u8],
        header: &FileHeader,
        next_sequence: u64,
    ) -> Result<(Walked, u64), OpenError> {
        let mut from = (START, next_sequence);
        loop {
            // Behind damage, records that do not fit together are its consequence.
            let lenient = !self.contents.damages.is_empty();
            let loader = &mut self.contents.loader;
            let walked = walk(bytes, header.salt, from.0, from.1, |records| {
                if loader.marks.sealed {
                    return Err("records behind the end of the segment".to_owned());
                }
                loader.apply(records).or_else(|found| if lenient { Ok(()) } else { Err(found) })
            });
            self.contents.frames += walked.frames;
            let End::Damaged { found, expected } = &walked.end else {
                let last = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                let behind = last.saturating_sub(walked.offset) as u64;
                return Ok((walked, behind));
            };
            self.damage(path.to_owned(), walked.offset as u64, found.clone(), expected.clone())?;
            let next = find(bytes, walked.offset, header.salt);
            let next = match next {
                // What is wrong with this one is not its number.
                Some(same) if same == (walked.offset, walked.next_sequence) => {
                    find(bytes, walked.offset + SECTOR, header.salt)
                }
                other => other,
            };
            match next {
                Some(next) => from = next,
                None => return Ok((walked, 0)),
            }
        }
    }

    /// Whether the log goes on behind a segment, in one of those that come after it.
    fn follow(&mut self, number: u64, after: &[u64], walked: &Walked) -> Result<bool, OpenError> {
        let sealed = std::mem::take(&mut self.contents.loader.marks.sealed);
        if sealed && walked.end == End::Torn {
            let file = Name::Segment(number).within(self.dir);
            let found = "something behind the seal of the segment".to_owned();
            self.damage(file, walked.offset as u64, found, "zeros".to_owned())?;
        }
        let Some(next) = after.first() else {
            if sealed {
                let file = Name::Segment(number + 1).within(self.dir);
                let expected = format!("segment {} of the log, in which it goes on", number + 1);
                self.damage(file, 0, "no such file".to_owned(), expected)?;
            }
            return Ok(false);
        };
        if sealed {
            return Ok(true);
        }
        // Without its seal, a segment is the end of the log: the next one was made and not used yet.
        let bytes = self.load(&Name::Segment(*next).within(self.dir))?;
        if after.len() > 1 || !is_zero(bytes.get(START..).unwrap_or_default()) {
            let file = Name::Segment(number).within(self.dir);
            let found = format!("the end of the segment without its seal, although segment {next} is in use");
            let expected = format!("the frame with number {}", walked.next_sequence);
            self.damage(file, walked.offset as u64, found, expected)?;
            return Ok(true);
        }
        Ok(false)
    }
}
