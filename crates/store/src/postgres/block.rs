//! Claims as they are stored: the jobs that one worker claimed at once, in one row. Those that fail together, and are
//! due together, wait in such a row too.

use super::db_error::DbError;
use super::limits;
use super::row::{alive, due, encode, encode_failures, lease_us, state_number};
use super::stored_row::{Place, StoredRow, uuids};
use super::tally::number;
use super::value::{Param, Reader};
use super::write::QueueNumber;
use crate::{JobId, State};
use redrive_policy::Moment;
use std::collections::HashMap;
use tokio_postgres::Row;

/// How many jobs wait in one row at most: who looks for one of them reads the whole row.
const MOST_JOBS: usize = 64;
/// Jobs above this size, with their specs, wait in rows of their own.
const LARGE: usize = 4 << 10;

/// What changes of a claim in the database: jobs leave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The source of its jobs.
    pub(super) source: i64,
    /// The number of its last change.
    pub(super) revision: i32,
    /// How many jobs it had.
    size: usize,
    /// A bit for each of them, the lowest of each byte first: whether it has left.
    pub(super) gone: Vec<u8>,
}

/// Claims by their numbers.
pub(super) type Blocks = HashMap<i64, Block>;

impl Block {
    /// A claim that was just written.
    pub(super) fn new(source: i64, size: usize) -> Self {
        Self { source, revision: 0, size, gone: vec![0; size.div_ceil(8)] }
    }

    /// The claim of a row behind the columns of its job, with its number, its version, and the place of the job.
    pub(super) fn read(row: &mut Reader<'_>, source: i64) -> Result<(i64, i16, usize, Self), DbError> {
        let (no, revision, version): (i64, i32, i16) = (row.next()?, row.next()?, row.next()?);
        let (gone, size, place): (&[u8], i32, i32) = (row.next()?, row.next()?, row.next()?);
        let (size, place) = (usize::try_from(size).unwrap_or(0), usize::try_from(place - 1).unwrap_or(0));
        Ok((no, version, place, Self { source, revision, size, gone: gone.to_vec() }))
    }

    /// Whether the job at this place is in it.
    pub(super) fn has(&self, place: usize) -> bool {
        place < self.size && self.gone.get(place / 8).is_some_and(|byte| byte & (1 << (place % 8)) == 0)
    }

    /// The job at this place leaves it.
    pub(super) fn leave(&mut self, place: usize) {
        if let Some(byte) = self.gone.get_mut(place / 8) {
            *byte |= 1 << (place % 8);
        }
    }

    /// The claim as its next change writes it.
    pub(super) fn next(&self) -> Self {
        Self { revision: self.revision + 1, ..self.clone() }
    }

    /// Whether all jobs have left it.
    pub(super) fn is_empty(&self) -> bool {
        (0..self.size).all(|place| !self.has(place))
    }

    /// How many jobs have not left it.
    pub(super) fn left(&self) -> i16 {
        let left = (0..self.size).filter(|place| self.has(*place)).count();
        i16::try_from(left).unwrap_or(i16::MAX)
    }

    /// The claim after these jobs have left it; absent where no job is left.
    pub(super) fn without(&self, places: impl IntoIterator<Item = usize>) -> Option<Self> {
        let mut after = self.next();
        places.into_iter().for_each(|place| after.leave(place));
        (!after.is_empty()).then_some(after)
    }
}

/// A claim to be written.
pub(super) struct NewBlock<'j> {
    pub(super) jobs: Vec<&'j StoredRow>,
    rests: Vec<Vec<u8>>,
    shared: Shared,
}

/// What all jobs of a claim have in common. A node reads a claim only if it can read all its jobs, so that rows of
/// different versions are never in the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shared {
    source: i64,
    queue: i32,
    priority: i32,
    expires: Option<i64>,
    due: i64,
    alive: i64,
    lease: i64,
    version: u8,
    lane: Option<Vec<u8>>,
    state: i16,
}

impl Shared {
    fn of(stored: &StoredRow, version: u8, queue: &QueueNumber<'_>) -> Result<Self, DbError> {
        let job = &stored.job;
        Ok(Self {
            source: stored.source,
            queue: number(queue, &job.spec.queue)?,
            priority: job.spec.priority,
            expires: job.spec.expires.map(Moment::micros),
            due: job.due.or_else(|| due(job)).map_or(i64::MAX, Moment::micros),
            alive: alive(job).map_or(i64::MAX, Moment::micros),
            lease: lease_us(job).unwrap_or(i64::MAX),
            version,
            lane: limits::lane(&job.spec),
            state: state_number(job.state),
        })
    }
}

impl NewBlock<'_> {
    /// The claim as it will be.
    pub(super) fn block(&self) -> Block {
        Block::new(self.shared.source, self.jobs.len())
    }

    /// Whether its jobs are active.
    pub(super) const fn is_active(&self) -> bool {
        self.shared.state == state_number(State::Active)
    }

    /// The places of its jobs, once it has a number.
    pub(super) fn places(&self, no: i64) -> impl Iterator<Item = (JobId, Place)> {
        self.jobs.iter().enumerate().map(move |(place, stored)| (stored.job.id, Place::Claim(no, place)))
    }
}

/// Claims of jobs that were claimed together.
pub(super) fn new_blocks<'j>(
    together: impl IntoIterator<Item = &'j StoredRow>,
    queue: &QueueNumber<'_>,
) -> Result<Vec<NewBlock<'j>>, DbError> {
    let mut blocks: Vec<NewBlock<'j>> = Vec::new();
    for stored in together {
        let rest = encode(&stored.job);
        let shared = Shared::of(stored, rest.first().copied().unwrap_or(0), queue)?;
        // Jobs that are alike mostly stand together.
        let place = blocks.iter().rposition(|block| block.shared == shared).unwrap_or_else(|| {
            blocks.push(NewBlock { jobs: Vec::new(), rests: Vec::new(), shared });
            blocks.len() - 1
        });
        blocks[place].jobs.push(stored);
        blocks[place].rests.push(rest);
    }
    Ok(blocks)
}

/// Rows for jobs that leave one claim and wait for a retry, and those of them that have no company, or are too large to
/// be read with others.
pub(super) fn retry_blocks<'j>(
    mut jobs: Vec<&'j StoredRow>,
    queue: &QueueNumber<'_>,
) -> Result<(Vec<NewBlock<'j>>, Vec<&'j StoredRow>), DbError> {
    if jobs.len() < 2 {
        return Ok((Vec::new(), jobs));
    }
    jobs.sort_unstable_by_key(|stored| stored.job.id);
    let (small, mut alone): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|stored| stored.job.bytes() <= LARGE);
    let mut blocks = Vec::new();
    for together in small.chunks(MOST_JOBS) {
        for block in new_blocks(together.iter().copied(), queue)? {
            if block.jobs.len() > 1 { blocks.push(block) } else { alone.extend(block.jobs) }
        }
    }
    Ok((blocks, alone))
}

/// The parameters that write claims, in the order in which the statement takes them.
pub(super) fn params<'j>(blocks: &mut [NewBlock<'j>]) -> Vec<Param<'j>> {
    let (mut firsts, mut lasts, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    let (mut jobs, mut rests) = (Vec::<&'j StoredRow>::new(), Vec::new());
    for block in blocks.iter_mut() {
        firsts.push(at(jobs.len() + 1));
        jobs.extend(&block.jobs);
        lasts.push(at(jobs.len()));
        gone.push(block.block().gone);
        rests.append(&mut block.rests);
    }
    let failures: Vec<Option<Vec<u8>>> = jobs.iter().map(|stored| encode_failures(&stored.job)).collect();
    let shared = || blocks.iter().map(|block| &block.shared);
    vec![
        Box::new(firsts),
        Box::new(lasts),
        Box::new(shared().map(|shared| shared.source).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.due).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.alive).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.lease).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.expires).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.queue).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.priority).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| i16::from(shared.version)).collect::<Vec<_>>()),
        Box::new(gone),
        Box::new(shared().map(|shared| shared.lane.clone()).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.state).collect::<Vec<_>>()),
        Box::new(blocks.iter().map(|block| block.block().left()).collect::<Vec<_>>()),
        Box::new(uuids(jobs.iter().map(|stored| &stored.job.id))),
        Box::new(rests),
        Box::new(failures.iter().any(Option::is_some).then_some(failures)),
    ]
}

/// A place in an array.
fn at(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

/// The numbers of new claims, as the database returns them by their first jobs.
pub(super) fn numbered(rows: &[Row], blocks: &[NewBlock<'_>]) -> Result<Vec<i64>, DbError> {
    let mut numbers = HashMap::new();
    for row in rows {
        let mut row = Reader::new(row);
        let no: i64 = row.next()?;
        numbers.insert(row.id()?, no);
    }
    let number = |block: &NewBlock<'_>| block.jobs.first().and_then(|first| numbers.get(&first.job.id).copied());
    let all: Option<Vec<i64>> = blocks.iter().map(number).collect();
    all.ok_or_else(|| DbError::Broken("a claim that was written has no number".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_there_until_its_last_job_has_left() {
        let block = Block::new(1, 9);
        assert_eq!(block.gone.len(), 2);
        let after = block.without([0, 8]).unwrap();
        assert_eq!((after.revision, after.gone.as_slice()), (1, &[1, 1][..]));
        assert!(!after.has(0) && after.has(1) && !after.has(8) && !after.has(9));
        assert_eq!(after.without(1..8), None);
    }
}
