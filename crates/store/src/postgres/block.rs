//! Claims as they are stored: the jobs that one worker claimed at once, in one row.

use super::db_error::DbError;
use super::row::{alive, due, encode, encode_failures, lease_us};
use super::stored_row::{StoredRow, uuids};
use super::tally::number;
use super::value::{Param, Reader};
use redrive_policy::Moment;
use std::collections::{BTreeMap, HashMap};
use tokio_postgres::Row;

/// What changes of a claim in the database: jobs leave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The number of its last change.
    pub(super) revision: i64,
    /// How many jobs it had.
    size: usize,
    /// A bit for each of them, the lowest of each byte first: whether it has left.
    pub(super) gone: Vec<u8>,
}

/// Claims by their numbers.
pub(super) type Blocks = HashMap<i64, Block>;

impl Block {
    /// A claim that was just written.
    pub(super) fn new(size: usize) -> Self {
        Self { revision: 0, size, gone: vec![0; size.div_ceil(8)] }
    }

    /// The claim of a row behind the columns of its job, with its number, its version, and the place of the job.
    pub(super) fn read(row: &mut Reader<'_>) -> Result<(i64, i16, usize, Self), DbError> {
        let (no, revision, version): (i64, i64, i16) = (row.next()?, row.next()?, row.next()?);
        let (gone, size, place): (&[u8], i32, i32) = (row.next()?, row.next()?, row.next()?);
        let (size, place) = (usize::try_from(size).unwrap_or(0), usize::try_from(place - 1).unwrap_or(0));
        Ok((no, version, place, Self { revision, size, gone: gone.to_vec() }))
    }

    /// Whether the job at this place is in it.
    pub(super) fn has(&self, place: usize) -> bool {
        self.gone.get(place / 8).is_some_and(|byte| byte & (1 << (place % 8)) == 0)
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
    version: u8,
}

/// Claims of jobs that were claimed together. A node reads a claim only if it can read all its jobs, so that rows of
/// different versions are never in the same.
pub(super) fn new_blocks<'j>(together: impl IntoIterator<Item = &'j StoredRow>) -> Vec<NewBlock<'j>> {
    let mut blocks: BTreeMap<u8, NewBlock<'j>> = BTreeMap::new();
    for stored in together {
        let rest = encode(&stored.job);
        let version = rest.first().copied().unwrap_or(0);
        let block = blocks.entry(version).or_insert_with(|| NewBlock { jobs: vec![], rests: vec![], version });
        block.jobs.push(stored);
        block.rests.push(rest);
    }
    blocks.into_values().collect()
}

/// The parameters that write claims, in the order in which the statement takes them.
pub(super) fn params<'j>(
    blocks: &mut [NewBlock<'j>],
    queue: &dyn Fn(&str) -> Option<i32>,
) -> Result<Vec<Param<'j>>, DbError> {
    let (mut firsts, mut lasts, mut sames) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first_sources, mut last_sources, mut sources) = (Vec::new(), Vec::new(), Vec::<i64>::new());
    let (mut versions, mut gone, mut first_dues) = (Vec::new(), Vec::new(), Vec::new());
    let (mut jobs, mut rests) = (Vec::<&'j StoredRow>::new(), Vec::new());
    let mut columns: Vec<Columns> = Vec::new();
    for block in blocks {
        let first = columns.len();
        for stored in &block.jobs {
            columns.push(Columns::of(stored, queue)?);
        }
        let own = columns.get(first..).unwrap_or_default();
        let is_same = own.windows(2).all(|pair| pair[0] == pair[1]);
        first_dues.push(own.iter().map(|columns| columns.due).min().unwrap_or(i64::MAX));
        firsts.push(at(first + 1));
        lasts.push(at(columns.len()));
        sames.push(at(if is_same { first + 1 } else { columns.len() }));
        let mut own: Vec<i64> = block.jobs.iter().map(|stored| stored.source).collect();
        own.sort_unstable();
        own.dedup();
        first_sources.push(at(sources.len() + 1));
        sources.extend(own);
        last_sources.push(at(sources.len()));
        versions.push(i16::from(block.version));
        gone.push(Block::new(block.jobs.len()).gone);
        jobs.extend(&block.jobs);
        rests.append(&mut block.rests);
    }
    let expires: Vec<Option<i64>> = jobs.iter().map(|stored| stored.job.spec.expires.map(Moment::micros)).collect();
    let failures: Vec<Option<Vec<u8>>> = jobs.iter().map(|stored| encode_failures(&stored.job)).collect();
    Ok(vec![
        Box::new(firsts),
        Box::new(lasts),
        Box::new(sames),
        Box::new(first_sources),
        Box::new(last_sources),
        Box::new(versions),
        Box::new(gone),
        Box::new(first_dues),
        Box::new(sources),
        Box::new(uuids(jobs.iter().map(|stored| &stored.job.id))),
        Box::new(columns.iter().map(|columns| columns.queue).collect::<Vec<_>>()),
        Box::new(columns.iter().map(|columns| columns.priority).collect::<Vec<_>>()),
        Box::new(expires.iter().any(Option::is_some).then_some(expires)),
        Box::new(columns.iter().map(|columns| columns.due).collect::<Vec<_>>()),
        Box::new(columns.iter().map(|columns| columns.alive).collect::<Vec<_>>()),
        Box::new(columns.iter().map(|columns| columns.lease).collect::<Vec<_>>()),
        Box::new(rests),
        Box::new(failures.iter().any(Option::is_some).then_some(failures)),
    ])
}

/// The columns of a job that are mostly the same for all jobs of a claim.
#[derive(PartialEq, Eq)]
struct Columns {
    queue: i32,
    priority: i32,
    due: i64,
    alive: i64,
    lease: i64,
}

impl Columns {
    fn of(stored: &StoredRow, queue: &dyn Fn(&str) -> Option<i32>) -> Result<Self, DbError> {
        let job = &stored.job;
        Ok(Self {
            queue: number(queue, &job.spec.queue)?,
            priority: job.spec.priority,
            due: due(job).map_or(i64::MAX, Moment::micros),
            alive: alive(job).map_or(i64::MAX, Moment::micros),
            lease: lease_us(job).unwrap_or(i64::MAX),
        })
    }
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
        let block = Block::new(9);
        assert_eq!(block.gone.len(), 2);
        let after = block.without([0, 8]).unwrap();
        assert_eq!((after.revision, after.gone.as_slice()), (1, &[1, 1][..]));
        assert!(!after.has(0) && after.has(1) && !after.has(8) && !after.has(9));
        assert_eq!(after.without(1..8), None);
    }
}
