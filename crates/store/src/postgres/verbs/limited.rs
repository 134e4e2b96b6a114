//! Candidates for claims in a queue with limits.

use super::super::core::Core;
use super::super::db_error::DbError;
use super::super::limits::{self, Ledger};
use super::super::pool::Session;
use super::super::value::{Param, Reader, Statement, limit};
use super::super::{sql, text};
use crate::limit::{Lane, Room};
use crate::{Claimed, Group};
use redrive_policy::Moment;
use std::sync::Arc;
use tokio_postgres::Row;

/// What was found in a queue: rows of jobs, and the groups that are full.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) rows: Vec<Row>,
    pub(super) full: Vec<(Group, Room)>,
}

/// The next jobs of a queue, locked: of each lane at most as many as may start. The transaction has the lock of limits.
pub(super) async fn candidates(
    session: &mut Session,
    ledger: &mut Ledger,
    queue: &Arc<str>,
    count: usize,
    now: Moment,
) -> Result<Candidates, DbError> {
    let mut found = Candidates::default();
    let rows = session.query(&Statement::new(&sql::LANES, vec![Box::new(text::stored(queue))])).await?;
    let mut lanes: Vec<(&[u8], Lane)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let bytes: &[u8] = Reader::new(row).next()?;
        // Limits of a newer version are left to nodes that can read them.
        lanes.extend(limits::read_lane(bytes).ok().map(|lane| (bytes, lane)));
    }
    let known: Vec<Lane> = lanes.iter().map(|(_, lane)| lane.clone()).collect();
    ledger.learn(session, queue, &known).await?;
    let unlimited = match ledger.most(queue, None, now) {
        Ok(most) => most.min(count),
        Err(full) => {
            found.full.push(full);
            return Ok(found);
        }
    };
    let (mut open, mut most) = (Vec::new(), Vec::new());
    for (bytes, lane) in lanes {
        match ledger.most(queue, Some(&lane), now) {
            Ok(room) => {
                open.push(bytes);
                most.push(limit(room.min(count)));
            }
            Err(full) => found.full.push(full),
        }
    }
    let params: Vec<Param<'_>> = vec![
        Box::new(text::stored(queue)),
        Box::new(limit(unlimited)),
        Box::new(now.micros()),
        Box::new(open),
        Box::new(most),
    ];
    found.rows = session.query(&Statement::new(&sql::CLAIM_LIMITED, params)).await?;
    Ok(found)
}

/// Takes the lock of limits, which lasts until the transaction is over.
pub(super) async fn lock(session: &mut Session) -> Result<(), DbError> {
    session.query(&Statement::new(limits::LOCK, Vec::new())).await.map(drop)
}

/// Notes in an answer which groups are full.
pub(super) fn pass(claimed: &mut Claimed, full: &[(Group, Room)], ledger: &Ledger, now: Moment) {
    for (group, room) in full {
        claimed.pass(group.clone(), *room, ledger.until(group, now));
    }
}

/// The queues of a claim that have limits, as far as this node knows.
pub(super) fn has_limits(core: &Core, queues: &[&Arc<str>]) -> bool {
    queues.iter().any(|queue| core.limited.has(queue))
}
