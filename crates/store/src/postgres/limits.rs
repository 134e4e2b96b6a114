//! Limits: which jobs of limited queues may start.
//!
//! Claims in queues with limits take turns, over all nodes, by one lock of the database that lasts until they are
//! committed. So what they read of active jobs and of starts is all there is. Runs end without that lock, and only
//! make room.

use super::db_error::DbError;
use super::pool::Session;
use super::text;
use super::value::{Param, Reader, Statement};
use crate::codec::{Decoder, Encode, Unreadable, limits};
use crate::limit::{GroupRow, Lane, Room};
use crate::{Bounds, Claimed, Group, Job, Spec};
use redrive_policy::Moment;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_postgres::Row;

pub(super) const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('redrive limits ' || current_schema()))";
const GROUPS: &str = "SELECT name, body FROM limit_groups WHERE name = ANY ($1::text[])";
/// How many jobs of each lane are active.
pub(super) const ACTIVE: &str = "SELECT lane, sum((SELECT count(*) FROM generate_series(0, cardinality(ids) - 1) AS place \
       WHERE get_bit(gone, place) = 0))::bigint FROM claims WHERE lane IS NOT NULL AND state = 3 GROUP BY lane";
/// How many jobs of a queue are active.
const ACTIVE_IN_QUEUE: &str = "SELECT coalesce(sum((SELECT count(*) FROM generate_series(0, cardinality(ids) - 1) AS place \
       WHERE get_bit(gone, place) = 0)), 0)::bigint FROM claims \
     WHERE state = 3 AND queue = (SELECT id FROM queue_names WHERE name = $1)";
const WRITE: &str = "INSERT INTO limit_groups (name, body, is_set, over_us) \
     SELECT * FROM unnest($1::text[], $2::bytea[], $3::boolean[], $4::bigint[]) AS u (name, body, is_set, over_us) \
     ON CONFLICT (name) DO UPDATE SET body = excluded.body, is_set = excluded.is_set, over_us = excluded.over_us";
const PRUNE: &str = "DELETE FROM limit_groups WHERE over_us <= $1";

/// The lane of a job as it is stored; none where it has no limits of its own.
pub(super) fn lane(spec: &Spec) -> Option<Vec<u8>> {
    let mut out = limits(spec)?;
    if spec.limits.as_ref().is_some_and(|limits| limits.by_kind) {
        out.text(&spec.kind);
    }
    Some(out)
}

/// The limits of a job as they are stored.
pub(super) fn limits(spec: &Spec) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    limits::encode(spec.limits.as_ref()?, &mut out);
    Some(out)
}

pub(super) fn read_lane(bytes: &[u8]) -> Result<Lane, Unreadable> {
    let mut from = Decoder::new(bytes);
    let limits = Arc::new(limits::decode(&mut from)?);
    let kind = if limits.by_kind { Some(Arc::from(from.text()?)) } else { None };
    Ok(Lane { limits, kind })
}

fn broken(unreadable: Unreadable) -> DbError {
    DbError::Broken(format!("limits cannot be read: {unreadable}"))
}

/// The queues whose claims have to look at limits, as far as this node knows. The statement that claims in queues
/// without limits leaves out all others, and names them.
#[derive(Debug, Default)]
pub(super) struct LimitedQueues(Mutex<HashSet<Arc<str>>>);

impl LimitedQueues {
    pub(super) fn has(&self, queue: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(queue)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(super) fn note(&self, queue: &Arc<str>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(queue));
    }
}

/// What the transaction knows of limits, and has used up of them.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    rows: HashMap<Group, GroupRow>,
    active: HashMap<Group, usize>,
    /// Whether active jobs have been counted by lane.
    counted: bool,
    touched: BTreeSet<Group>,
}

/// The groups of a job, each with the bounds that it brings.
pub(super) fn groups(spec: &Spec) -> Vec<(Group, Bounds)> {
    let own = Lane::of(spec);
    let queue = (Group::Queue(Arc::clone(&spec.queue)), Bounds::default());
    std::iter::once(queue).chain(own.iter().flat_map(Lane::groups)).collect()
}

impl Ledger {
    /// Reads what is to be known of a queue and of these lanes.
    pub(super) async fn learn(
        &mut self,
        session: &mut Session,
        queue: &Arc<str>,
        lanes: &[Lane],
    ) -> Result<(), DbError> {
        let queue_group = Group::Queue(Arc::clone(queue));
        let mut new: BTreeSet<Group> = lanes.iter().flat_map(|lane| lane.groups().map(|(group, _)| group)).collect();
        new.insert(queue_group.clone());
        new.retain(|group| !self.rows.contains_key(group));
        if !new.is_empty() {
            self.rows.extend(read(session, &new).await?);
            for group in new {
                self.rows.entry(group).or_default();
            }
        }
        if !lanes.is_empty() && !std::mem::replace(&mut self.counted, true) {
            for row in &session.query(&Statement::new(ACTIVE, Vec::new())).await? {
                let mut row = Reader::new(row);
                let (bytes, jobs): (&[u8], i64) = (row.next()?, row.next()?);
                for (group, _) in read_lane(bytes).map_err(broken)?.groups() {
                    *self.active.entry(group).or_default() += usize::try_from(jobs).unwrap_or(0);
                }
            }
        }
        let counts = self.rows.get(&queue_group).is_some_and(|row| row.setting.is_some());
        if counts && !self.active.contains_key(&queue_group) {
            let statement = Statement::new(ACTIVE_IN_QUEUE, vec![Box::new(text::stored(queue))]);
            let rows = session.query(&statement).await?;
            let active: Option<i64> = rows.first().map(|row| Reader::new(row).next()).transpose()?;
            self.active.insert(queue_group, active.and_then(|jobs| usize::try_from(jobs).ok()).unwrap_or(0));
        }
        Ok(())
    }

    /// How many jobs of a lane of a queue may start, as far as the groups do not share that with other lanes; where
    /// none may, the group that is full.
    pub(super) fn most(&self, queue: &Arc<str>, lane: Option<&Lane>, now: Moment) -> Result<usize, (Group, Room)> {
        let queue = (Group::Queue(Arc::clone(queue)), Bounds::default());
        let groups = std::iter::once(queue).chain(lane.into_iter().flat_map(Lane::groups));
        let mut most = usize::MAX;
        for (group, own) in groups {
            let active = self.active.get(&group).copied().unwrap_or(0);
            let room = self.rows.get(&group).unwrap_or(&GroupRow::EMPTY).most(own, active, now);
            most = most.min(room.map_err(|room| (group, room))?);
        }
        Ok(most)
    }

    /// Whether a job has to wait. What holds it is noted in the answer to the claim.
    pub(super) fn holds(&self, job: &Job, claimed: &mut Claimed, now: Moment) -> bool {
        let full = groups(&job.spec).into_iter().find_map(|(group, own)| match self.room(&group, own, now) {
            Room::Open => None,
            room => Some((group, room)),
        });
        let Some((group, room)) = full else { return false };
        let until = self.until(&group, now);
        claimed.pass(group, room, until);
        true
    }

    /// When other limits apply to a group.
    pub(super) fn until(&self, group: &Group, now: Moment) -> Option<Moment> {
        self.rows.get(group).and_then(|row| row.until(now))
    }

    fn room(&self, group: &Group, own: Bounds, now: Moment) -> Room {
        let active = self.active.get(group).copied().unwrap_or(0);
        self.rows.get(group).unwrap_or(&GroupRow::EMPTY).room(own, active, now)
    }

    /// A job starts.
    pub(super) fn start(&mut self, job: &Job, now: Moment) {
        for (group, own) in groups(&job.spec) {
            *self.active.entry(group.clone()).or_default() += 1;
            if self.rows.entry(group.clone()).or_default().start(own, now) {
                self.touched.insert(group);
            }
        }
    }

    /// The statement that stores the starts; none where nothing has to be stored.
    pub(super) fn statement(&self) -> Option<Statement<'static>> {
        let rows = self.touched.iter().filter_map(|group| Some((group, self.rows.get(group)?)));
        (!self.touched.is_empty()).then(|| write(rows))
    }
}

/// What is stored of groups.
pub(super) async fn read(session: &mut Session, groups: &BTreeSet<Group>) -> Result<HashMap<Group, GroupRow>, DbError> {
    let names: Vec<String> = groups.iter().map(|group| text::stored(&group.to_string()).into_owned()).collect();
    rows(&session.query(&Statement::new(GROUPS, vec![Box::new(names)])).await?)
}

/// The groups of rows.
pub(super) fn rows(rows: &[Row]) -> Result<HashMap<Group, GroupRow>, DbError> {
    let mut found = HashMap::new();
    for row in rows {
        let mut row = Reader::new(row);
        let (name, body): (&str, &[u8]) = (row.next()?, row.next()?);
        let stored = limits::decode_group(&mut Decoder::new(body)).map_err(broken)?;
        let group = Group::parse(&text::read(name)).filter(|_| stored != GroupRow::EMPTY);
        found.extend(group.map(|group| (group, stored)));
    }
    Ok(found)
}

/// Deletes what does not matter any more.
pub(super) async fn prune(session: &mut Session, now: Moment) -> Result<(), DbError> {
    session.write(&Statement::new(PRUNE, vec![Box::new(now.micros())])).await.map(drop)
}

/// The statement that stores what groups have.
pub(super) fn write<'g>(rows: impl Iterator<Item = (&'g Group, &'g GroupRow)>) -> Statement<'static> {
    let (mut names, mut bodies, mut set, mut over) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (group, row) in rows {
        let mut body = Vec::new();
        limits::encode_group(row, &mut body);
        names.push(text::stored(&group.to_string()).into_owned());
        bodies.push(body);
        set.push(row.setting.is_some());
        over.push(row.over().map(Moment::micros));
    }
    let params: Vec<Param<'static>> = vec![Box::new(names), Box::new(bodies), Box::new(set), Box::new(over)];
    Statement::new(WRITE, params)
}
