//! Jobs that have ended, as they are stored: those that ended at once, in one row.

use super::db_error::DbError;
use super::row::{encode, encode_failures, state_number};
use super::stored_row::{StoredRow, uuids};
use super::tally::number;
use super::value::Param;
use super::write::QueueNumber;
use redrive_policy::Moment;
use std::collections::BTreeMap;

/// How many jobs one row has at most, and how many bytes of theirs: who reads one job reads the whole row.
const MOST_JOBS: usize = 256;
const MOST_BYTES: usize = 64 << 10;
/// Jobs above this size have rows of their own, because lists take each job of a row to be as large as the largest.
const LARGE: usize = 4 << 10;

/// What all jobs of a row have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shared {
    /// The claim that they leave, where they do: whether they are written depends on it.
    claim: Option<i64>,
    source: i64,
    finished: Option<i64>,
    expires: Option<i64>,
    queue: i32,
    priority: i32,
    state: i16,
    dead: bool,
}

/// A row to be written.
struct NewRow<'j> {
    shared: Shared,
    jobs: Vec<&'j StoredRow>,
    rests: Vec<Vec<u8>>,
    failures: Vec<Option<Vec<u8>>>,
    bytes: usize,
    largest: usize,
}

impl<'j> NewRow<'j> {
    const fn new(shared: Shared) -> Self {
        Self { shared, jobs: Vec::new(), rests: Vec::new(), failures: Vec::new(), bytes: 0, largest: 0 }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.jobs.len() < MOST_JOBS && self.bytes + bytes <= MOST_BYTES
    }
}

/// The rows of these jobs, each with the claim that it leaves.
fn rows<'j>(
    jobs: impl IntoIterator<Item = (Option<i64>, &'j StoredRow)>,
    queue: &QueueNumber<'_>,
) -> Result<Vec<NewRow<'j>>, DbError> {
    let mut rows: Vec<NewRow<'j>> = Vec::new();
    let mut open: BTreeMap<Shared, usize> = BTreeMap::new();
    for (claim, stored) in jobs {
        let job = &stored.job;
        let shared = Shared {
            claim,
            source: stored.source,
            finished: job.times.finished.map(Moment::micros),
            expires: job.spec.expires.map(Moment::micros),
            queue: number(queue, &job.spec.queue)?,
            priority: job.spec.priority,
            state: state_number(job.state),
            dead: job.dead,
        };
        let (rest, failures) = (encode(job), encode_failures(job));
        let bytes = rest.len() + failures.as_ref().map_or(0, Vec::len);
        let place = match open.get(&shared) {
            Some(place) if bytes <= LARGE && rows[*place].has_room(bytes) => *place,
            _ => {
                rows.push(NewRow::new(shared));
                if bytes <= LARGE {
                    open.insert(shared, rows.len() - 1);
                }
                rows.len() - 1
            }
        };
        let row = &mut rows[place];
        row.jobs.push(stored);
        row.rests.push(rest);
        row.failures.push(failures);
        row.bytes += bytes;
        row.largest = row.largest.max(bytes);
    }
    Ok(rows)
}

/// The parameters that write jobs, each with the claim that it leaves, in the order in which the statement takes them;
/// and for each row its claim, where they leave some.
pub(super) fn params<'j>(
    jobs: impl IntoIterator<Item = (Option<i64>, &'j StoredRow)>,
    queue: &QueueNumber<'_>,
) -> Result<(Vec<Param<'j>>, Vec<i64>), DbError> {
    let mut new = rows(jobs, queue)?;
    let (mut firsts, mut lasts, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rests, mut failures) = (Vec::new(), Vec::new());
    for row in &mut new {
        firsts.push(at(ids.len() + 1));
        ids.extend(uuids(row.jobs.iter().map(|stored| &stored.job.id)));
        lasts.push(at(ids.len()));
        rests.append(&mut row.rests);
        failures.append(&mut row.failures);
    }
    let shared = || new.iter().map(|row| row.shared);
    let params: Vec<Param<'j>> = vec![
        Box::new(firsts),
        Box::new(lasts),
        Box::new(shared().map(|shared| shared.source).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.finished).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.expires).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.queue).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.priority).collect::<Vec<_>>()),
        Box::new(new.iter().map(|row| at(row.largest)).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.state).collect::<Vec<_>>()),
        Box::new(shared().map(|shared| shared.dead).collect::<Vec<_>>()),
        Box::new(new.iter().map(|row| i16::try_from(row.jobs.len()).unwrap_or(i16::MAX)).collect::<Vec<_>>()),
        Box::new(ids),
        Box::new(rests),
        Box::new(failures.iter().any(Option::is_some).then_some(failures)),
    ];
    let claims = shared().filter_map(|shared| shared.claim).collect();
    Ok((params, claims))
}

/// A place in an array, or a size.
fn at(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
