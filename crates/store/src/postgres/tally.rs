//! Counting how many jobs go from which state to which.

use super::db_error::DbError;
use super::stored_row::{StoredRow, counted};
use super::value::Param;
use std::collections::BTreeMap;

/// Jobs by their queue, the state that they leave, and the state that they enter.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<(i32, Option<i16>, Option<i16>), i64>);

impl Tally {
    /// Counts a job.
    pub(super) fn add(&mut self, queue: i32, was: Option<i16>, state: Option<i16>) {
        *self.0.entry((queue, was, state)).or_default() += 1;
    }

    /// Counts what became of stored jobs.
    pub(super) fn of<'j>(
        jobs: impl IntoIterator<Item = &'j StoredRow>,
        queue: &dyn Fn(&str) -> Option<i32>,
    ) -> Result<Self, DbError> {
        let mut tally = Self::default();
        for stored in jobs {
            tally.add(number(queue, &stored.job.spec.queue)?, Some(stored.was), Some(counted(&stored.job)));
        }
        Ok(tally)
    }

    /// The four parameters of it. What came back to where it was is left out.
    pub(super) fn params(mut self) -> Vec<Param<'static>> {
        self.0.retain(|(_, was, state), _| was != state);
        let keys = || self.0.keys();
        vec![
            Box::new(keys().map(|(queue, ..)| *queue).collect::<Vec<_>>()),
            Box::new(keys().map(|(_, was, _)| *was).collect::<Vec<_>>()),
            Box::new(keys().map(|(.., state)| *state).collect::<Vec<_>>()),
            Box::new(self.0.values().copied().collect::<Vec<_>>()),
        ]
    }
}

/// Jobs that leave claims, by the claim, their queue, the state that they leave, and the state that they enter.
#[derive(Debug, Default)]
pub(super) struct Moves(BTreeMap<(i64, i32, i16, i16), i64>);

impl Moves {
    /// Counts what became of a job of this claim. What stays in its state is not counted.
    pub(super) fn add(
        &mut self,
        claim: i64,
        stored: &StoredRow,
        queue: &dyn Fn(&str) -> Option<i32>,
    ) -> Result<(), DbError> {
        let state = counted(&stored.job);
        if state != stored.was {
            *self.0.entry((claim, number(queue, &stored.job.spec.queue)?, stored.was, state)).or_default() += 1;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The five parameters of it.
    pub(super) fn params(self) -> Vec<Param<'static>> {
        let keys = || self.0.keys();
        vec![
            Box::new(keys().map(|(claim, ..)| *claim).collect::<Vec<_>>()),
            Box::new(keys().map(|(_, queue, ..)| *queue).collect::<Vec<_>>()),
            Box::new(keys().map(|(_, _, was, _)| *was).collect::<Vec<_>>()),
            Box::new(keys().map(|(.., state)| *state).collect::<Vec<_>>()),
            Box::new(self.0.values().copied().collect::<Vec<_>>()),
        ]
    }
}

/// The number of a queue, which every stored job's queue has.
pub(super) fn number(queue: &dyn Fn(&str) -> Option<i32>, name: &str) -> Result<i32, DbError> {
    queue(name).ok_or_else(|| DbError::Broken(format!("the queue \"{name}\" has no number")))
}
