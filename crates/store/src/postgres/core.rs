//! What all verbs share: connections, the catalogue, and when to try again.

use super::block::Blocks;
use super::catalogue::Catalogue;
use super::db_error::DbError;
use super::lease_cache::LeaseCache;
use super::limits::LimitedQueues;
use super::listeners::Listeners;
use super::notifier::Notifier;
use super::options::Options;
use super::pool::{Pool, Session};
use super::read::{Damaged, Found};
use super::run::Messages;
use super::settling::{Settling, Written};
use super::source::Sources;
use super::sql;
use super::stored_row::{StoredRow, uuids};
use super::vacuum::Vacuum;
use super::value::Statement;
use super::{limits, read, unreadable, write};
use crate::standstill::Grace;
use crate::{EventKind, Job, JobId, Refusal, Standstill, State, Transition};
use redrive_policy::{Policy, Retryable};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio_postgres::Row;

/// A transaction in which each statement sees what is committed by then.
pub(super) const BEGIN: &str = "BEGIN";
/// A transaction that sees one moment.
pub(super) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";

/// How transactions are repeated that were certainly rolled back.
static AGAIN: LazyLock<Option<Policy>> = LazyLock::new(|| {
    let policy = Policy::builder()
        .exponential(Duration::from_millis(5), 3.0)
        .max_delay(Duration::from_millis(200))
        .max_attempts(5);
    policy.build().ok()
});

#[derive(Debug)]
pub(super) struct Core {
    pub(super) pool: Arc<Pool>,
    pub(super) catalogue: Catalogue,
    pub(super) notifier: Arc<Notifier>,
    pub(super) lease_cache: LeaseCache,
    pub(super) listeners: Listeners,
    pub(super) sources: Sources,
    pub(super) vacuum: Arc<Vacuum>,
    pub(super) limited: LimitedQueues,
    grace: Mutex<Grace>,
}

impl Core {
    pub(super) fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            pool: Pool::new(options),
            catalogue: Catalogue::default(),
            notifier: Arc::default(),
            lease_cache: LeaseCache::default(),
            listeners: Listeners::default(),
            sources: Sources::default(),
            vacuum: Arc::default(),
            limited: LimitedQueues::default(),
            grace: Mutex::default(),
        })
    }

    /// The extra time of runs after a standstill of this node.
    pub(super) fn grace(&self) -> Grace {
        self.grace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn stood_still(&self, standstill: Standstill) {
        self.grace.lock().unwrap_or_else(PoisonError::into_inner).add(standstill);
    }

    pub(super) async fn session(&self) -> Result<Session, DbError> {
        self.pool.session().await
    }

    /// Runs one transaction, and repeats it where it was rolled back and may succeed when repeated.
    pub(super) async fn repeat<T, F>(&self, mut work: impl FnMut() -> F) -> Result<T, DbError>
    where
        F: Future<Output = Result<T, DbError>>,
    {
        match &*AGAIN {
            Some(policy) => work.retry(policy).when(DbError::may_repeat).await,
            None => work().await,
        }
    }

    /// The jobs of rows that the open transaction is about to change. Jobs that cannot be read are set aside in the
    /// same transaction, so that they hold up no other.
    pub(super) async fn read_locked(&self, session: &mut Session, rows: &[Row]) -> Result<Found, DbError> {
        let mut found = read::jobs(session, &self.catalogue, rows).await?;
        if !found.damaged.is_empty() {
            unreadable::set_aside(session, &found.damaged, &mut found.blocks).await?;
        }
        Ok(found)
    }

    /// Sets aside jobs that could not be read without a lock, where that is still so.
    pub(super) async fn set_aside(&self, damaged: &[Damaged]) -> Result<(), DbError> {
        if damaged.is_empty() {
            return Ok(());
        }
        let ids: Vec<JobId> = damaged.iter().map(|damaged| damaged.id).collect();
        let mut session = self.session().await?;
        self.lock(&mut session, &ids, WAITING_FIRST, Wanted::Ended).await?;
        session.commit(&[]).await.map(drop)
    }

    /// Begins a transaction that locks these jobs; fails where a newer version wrote one of them.
    pub(super) async fn lock_rows(
        &self,
        session: &mut Session,
        ids: &[JobId],
        wanted: Wanted,
    ) -> Result<Locked, DbError> {
        let locked = self.lock(session, ids, WAITING_FIRST, wanted).await?;
        match locked.newer.iter().next() {
            Some((id, why)) => Err(read::newer(*id, why)),
            None => Ok(locked),
        }
    }

    /// As [`Core::lock_rows`], and returns which of the jobs a newer version wrote. The tables are looked at in this
    /// order.
    pub(super) async fn lock(
        &self,
        session: &mut Session,
        ids: &[JobId],
        order: [Table; 3],
        wanted: Wanted,
    ) -> Result<Locked, DbError> {
        self.lock_by(session, ids, order, wanted, true).await
    }

    /// As [`Core::lock`], in the transaction that is open.
    pub(super) async fn lock_more(
        &self,
        session: &mut Session,
        ids: &[JobId],
        order: [Table; 3],
        wanted: Wanted,
    ) -> Result<Locked, DbError> {
        self.lock_by(session, ids, order, wanted, false).await
    }

    async fn lock_by(
        &self,
        session: &mut Session,
        ids: &[JobId],
        order: [Table; 3],
        wanted: Wanted,
        begin: bool,
    ) -> Result<Locked, DbError> {
        let mut locked = Locked::default();
        let mut missing = uuids(ids);
        // A job that moves between the tables meanwhile is found in none of them; the next round finds it.
        for (look, table) in order.iter().chain(&order).enumerate() {
            let statement: &'static str = match (table, wanted) {
                (Table::Live, _) => &sql::LOCK_LIVE,
                (Table::Claims, _) => &sql::LOCK_ACTIVE,
                (Table::Ended, Wanted::Ended) => &sql::LOCK_ENDED,
                (Table::Ended, Wanted::Unended) => &sql::READ_ENDED,
            };
            let statement = Statement::new(statement, vec![Box::new(missing)]);
            let rows = if begin && look == 0 {
                session.begin(BEGIN, &statement).await?
            } else {
                session.query(&statement).await?
            };
            let found = self.read_locked(session, &rows).await?;
            locked.jobs.extend(found.jobs.into_iter().map(|stored| (stored.job.id, stored)));
            locked.newer.extend(found.newer);
            locked.blocks.extend(found.blocks);
            missing = uuids(ids.iter().filter(|id| !locked.jobs.contains_key(id) && !locked.newer.contains_key(id)));
            if missing.is_empty() {
                break;
            }
        }
        Ok(locked)
    }

    /// What runs have to learn of these events: those of the jobs, and those that listen.
    pub(super) fn messages<'t>(&self, transitions: impl IntoIterator<Item = &'t Transition>) -> Messages {
        let listening = self.listeners.all();
        let mut messages = Messages::default();
        transitions.into_iter().for_each(|transition| messages.learn(transition, &listening));
        messages
    }

    /// What runs that listen have to learn of new jobs, or of jobs that were claimed.
    pub(super) fn messages_of_jobs<'j>(&self, kind: EventKind, jobs: impl Iterator<Item = &'j Job>) -> Messages {
        if self.listeners.all().is_empty() {
            return Messages::default();
        }
        let transition = |job: &Job| match (kind, job.times.started) {
            (EventKind::Claimed, Some(at)) => Transition::new(job.clone(), kind, Some(State::Available), at),
            _ => Transition::new(job.clone(), kind, None, job.times.created),
        };
        self.messages(&jobs.map(transition).collect::<Vec<_>>())
    }

    /// Writes what has changed of locked jobs and what their runs have to learn of it, and commits.
    pub(super) async fn commit(
        &self,
        session: &mut Session,
        jobs: &[&StoredRow],
        blocks: &Blocks,
        messages: &Messages,
    ) -> Result<Written, DbError> {
        let written = self.commit_with(session, jobs, blocks, messages.statement()).await?;
        self.tell_of(messages);
        Ok(written)
    }

    /// Writes what has changed of locked jobs, and commits. Further statements, which answer nothing, come first.
    pub(super) async fn commit_with<'j>(
        &self,
        session: &mut Session,
        jobs: &[&'j StoredRow],
        blocks: &Blocks,
        further: impl IntoIterator<Item = Statement<'j>>,
    ) -> Result<Written, DbError> {
        let (mut statements, settling) = {
            let queue = self.catalogue.queue_numbers();
            let mut statements: Vec<Statement<'j>> = further.into_iter().collect();
            statements.extend(write::changes(jobs, &queue)?);
            (statements, Settling::of(jobs, blocks, &Messages::default(), &queue)?)
        };
        let settling = settling.map(|settling| {
            let Settling { statement, claims } = settling;
            statements.push(statement);
            claims
        });
        let rows = session.commit(&statements).await?;
        let written = settling.map(|claims| claims.written(&rows)).transpose()?.unwrap_or_default();
        let changed = || jobs.iter().filter(|stored| stored.changed);
        self.vacuum.wrote(changed().count());
        self.lease_cache.note(&written);
        self.tell(changed().map(|stored| &*stored.job));
        Ok(written)
    }

    /// Notifies other nodes of messages to runs that were written: should this node end before it advances them, others
    /// do it soon.
    pub(super) fn tell_of(&self, messages: &Messages) {
        if !messages.is_empty() {
            self.notifier.runs();
        }
    }

    /// Notifies other nodes of jobs that are available, and of runs that have ended whose groups have limits.
    pub(super) fn tell<'j>(&self, jobs: impl Iterator<Item = &'j Job>) {
        let jobs = jobs.inspect(|job| self.tell_opened(job));
        // Jobs of one queue mostly stand together.
        let mut counted: Option<(&Arc<str>, usize)> = None;
        for job in jobs.filter(|job| job.state == State::Available) {
            let queue = &job.spec.queue;
            match &mut counted {
                Some((last, jobs)) if *last == queue => *jobs += 1,
                _ => drop(counted.replace((queue, 1)).map(|(queue, jobs)| self.notifier.available(queue, jobs))),
            }
        }
        counted.into_iter().for_each(|(queue, jobs)| self.notifier.available(queue, jobs));
    }
}

impl Core {
    /// Notifies other nodes that groups may allow runs again, where a run of this job has ended.
    pub(super) fn tell_opened(&self, job: &Job) {
        let limited = job.spec.limits.is_some() || (!self.limited.is_empty() && self.limited.has(&job.spec.queue));
        if limited && job.leases > 0 && job.state != State::Active {
            limits::groups(&job.spec).into_iter().for_each(|(group, _)| self.notifier.opened(group));
        }
    }
}

/// Whether jobs that have ended are to be locked; else they are only read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    Ended,
    Unended,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Table {
    Live,
    Claims,
    Ended,
}

pub(super) const WAITING_FIRST: [Table; 3] = [Table::Live, Table::Claims, Table::Ended];
pub(super) const ACTIVE_FIRST: [Table; 3] = [Table::Claims, Table::Ended, Table::Live];

/// Jobs that the open transaction has locked.
#[derive(Debug, Default)]
pub(super) struct Locked {
    pub(super) jobs: HashMap<JobId, StoredRow>,
    /// The claims of those that are active.
    pub(super) blocks: Blocks,
    /// Jobs that a newer version wrote, each with which version that was.
    pub(super) newer: HashMap<JobId, String>,
}

impl Locked {
    /// The job of an id.
    pub(super) fn job(&mut self, id: JobId) -> Result<&mut StoredRow, Refusal> {
        self.jobs.get_mut(&id).ok_or(Refusal::NotFound)
    }
}
