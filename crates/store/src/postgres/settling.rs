//! Writing what became of runs: their jobs leave their claims.

use super::block::{self, Block, Blocks, NewBlock, new_blocks, retry_blocks};
use super::db_error::DbError;
use super::run::Messages;
use super::stored_row::{Place, StoredRow};
use super::tally::Moves;
use super::value::{Reader, Statement};
use super::write::{self, QueueNumber};
use super::{ended, sql, value};
use crate::{JobId, State};
use std::collections::{BTreeMap, HashMap};
use tokio_postgres::Row;

/// The statement that writes what became of some runs, and what it makes of their claims.
pub(super) struct Settling<'j> {
    pub(super) statement: Statement<'j>,
    pub(super) claims: Claims<'j>,
}

/// What a statement makes of claims.
pub(super) struct Claims<'j> {
    /// The claims as they will be; absent where all jobs have left.
    after: BTreeMap<i64, Option<Block>>,
    again: Vec<NewBlock<'j>>,
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The claims as they are now; absent where all jobs have left.
    pub(super) claims: HashMap<i64, Option<Block>>,
    /// Where the jobs are whose leases were extended.
    pub(super) extended: HashMap<JobId, Place>,
}

impl Written {
    /// Whether it was written what became of a job of this claim.
    pub(super) fn has(&self, place: Place) -> bool {
        matches!(place, Place::Claim(no, _) if self.claims.contains_key(&no))
    }
}

impl<'j> Settling<'j> {
    /// For jobs of these claims that have changed, and for what their runs learn of it; none where no job has.
    pub(super) fn of(
        jobs: &[&'j StoredRow],
        blocks: &Blocks,
        messages: &Messages,
        queue: &QueueNumber<'_>,
    ) -> Result<Option<Self>, DbError> {
        let mut left: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let (mut over, mut back, mut active) = (Vec::new(), Vec::new(), BTreeMap::<i64, Vec<&'j StoredRow>>::new());
        let (mut back_from, mut retries) = (Vec::new(), BTreeMap::<i64, Vec<&'j StoredRow>>::new());
        let mut moves = Moves::default();
        for stored in jobs.iter().filter(|stored| stored.changed) {
            let Place::Claim(no, place) = stored.place else { continue };
            left.entry(no).or_default().push(place);
            moves.add(no, stored, queue)?;
            match stored.job.state {
                State::Active => active.entry(no).or_default().push(*stored),
                State::Retryable => retries.entry(no).or_default().push(*stored),
                state if state.is_terminal() => {
                    over.push((Some(no), *stored));
                }
                _ => {
                    back.push(*stored);
                    back_from.push(no);
                }
            }
        }
        if left.is_empty() {
            return Ok(None);
        }
        let missing = || DbError::Broken("a claim that is to be written was not read".to_owned());
        let mut after = BTreeMap::new();
        let (mut whole, mut part, mut gone, mut stay) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (no, places) in left {
            let before = blocks.get(&no).ok_or_else(missing)?;
            let block = before.without(places);
            match &block {
                None => whole.push((no, before)),
                Some(block) => {
                    part.push((no, before));
                    gone.push(block.gone.clone());
                    stay.push(block.left());
                }
            }
            after.insert(no, block);
        }
        let (mut again, mut again_from) = (Vec::new(), Vec::new());
        for (no, jobs) in active {
            let new = new_blocks(jobs, queue)?;
            again_from.extend(new.iter().map(|_| no));
            again.extend(new);
        }
        for (no, jobs) in retries {
            let (new, alone) = retry_blocks(jobs, queue)?;
            again_from.extend(new.iter().map(|_| no));
            again.extend(new);
            back_from.extend(alone.iter().map(|_| no));
            back.extend(alone);
        }
        let claim = |id: JobId| {
            let stored = jobs.iter().find(|stored| stored.job.id == id)?;
            if let Place::Claim(no, _) = stored.place { Some(no) } else { None }
        };
        let told = messages.params_of_claims(claim);
        let shape = sql::Shape {
            told: told.is_some(),
            whole: !whole.is_empty(),
            part: !part.is_empty(),
            ended: !over.is_empty(),
            back: !back.is_empty(),
            again: !again.is_empty(),
            counted: !moves.is_empty(),
        };
        let mut params: Vec<value::Param<'j>> = Vec::new();
        let guards = |claims: &[(i64, &Block)]| -> [value::Param<'j>; 3] {
            [
                Box::new(claims.iter().map(|(_, block)| block.source).collect::<Vec<_>>()),
                Box::new(claims.iter().map(|(no, _)| *no).collect::<Vec<_>>()),
                Box::new(claims.iter().map(|(_, block)| block.revision).collect::<Vec<_>>()),
            ]
        };
        if shape.whole {
            params.extend(guards(&whole));
        }
        if shape.part {
            params.extend(guards(&part));
            params.push(Box::new(gone));
            params.push(Box::new(stay));
        }
        if shape.ended {
            let (rows, from) = ended::params(over, queue)?;
            params.extend(rows);
            params.push(Box::new(from));
        }
        if shape.back {
            params.extend(write::waiting(&back, queue)?);
            params.push(Box::new(back_from));
        }
        if shape.counted {
            params.extend(moves.params());
        }
        if shape.again {
            params.extend(block::params(&mut again));
            params.push(Box::new(again_from));
        }
        params.extend(told.into_iter().flatten());
        Ok(Some(Self { statement: Statement::new(sql::settle(shape), params), claims: Claims { after, again } }))
    }
}

impl Claims<'_> {
    /// What was written, by the answer of the statement.
    pub(super) fn written(mut self, rows: &[Row]) -> Result<Written, DbError> {
        let mut written = Written::default();
        let mut numbers: HashMap<JobId, i64> = HashMap::new();
        for row in rows {
            let mut row = Reader::new(row);
            let no: i64 = row.next()?;
            match row.next::<Option<uuid::Uuid>>()? {
                None => drop(self.after.remove(&no).map(|block| written.claims.insert(no, block))),
                Some(first) => drop(numbers.insert(JobId::from_bytes(first.into_bytes()), no)),
            }
        }
        for block in self.again.iter().filter(|block| block.is_active()) {
            let Some(no) = block.jobs.first().and_then(|first| numbers.get(&first.job.id)) else { continue };
            written.claims.insert(*no, Some(block.block()));
            written.extended.extend(block.places(*no));
        }
        Ok(written)
    }
}
