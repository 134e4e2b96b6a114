//! The only connection to a store, in one transaction from its begin to its commit.

use crate::postgres::catalogue::StoredPolicy;
use crate::postgres::core::Core;
use crate::postgres::db_error::DbError;
use crate::postgres::pool::Session;
use crate::postgres::row::encode_revisions;
use crate::postgres::stored_row::{StoredRow, uuids};
use crate::postgres::value::{Param, Reader, Statement, limit};
use crate::postgres::{inbox, limits, queues, read, run, schema, text, unique, unreadable, write};
use crate::transfer::{PAGE_BYTES, PAGE_JOBS, Portable, PortableGroup, PortableRun, QueueMark};
use crate::{Group, JobId, Run, RunId};
use redrive_policy::{Moment, Span};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use uuid::Uuid;

/// The only connection to a store, in a transaction.
pub(super) struct Transaction {
    pub(super) core: Arc<Core>,
    pub(super) session: Session,
}

const QUEUES: &str = "SELECT name, paused, created_us FROM queue_names ORDER BY name";
const COUNT: &str = "SELECT count(*) FROM specs";
/// The ids of the jobs after $1, at most $2; the bodies of all but the last have no more than $3 bytes.
const NAMES: &str = "SELECT id, key FROM (\
       SELECT id, key, sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS before FROM (\
         SELECT id, key, body FROM specs WHERE id > $1 ORDER BY id LIMIT $2) s) s \
     WHERE before < $3 ORDER BY id";
/// Groups after $1, at most $2.
const GROUPS: &str = "SELECT name, body FROM limit_groups WHERE name > $1 ORDER BY name LIMIT $2";
const INSERT_QUEUES: &str = "INSERT INTO queue_names (name, paused, created_us) \
     SELECT * FROM unnest($1::text[], $2::boolean[], $3::bigint[])";
const INSERT_SPECS: &str = "INSERT INTO specs (id, kind, body, policy, own_policy, timeout_ms, lease_ms, key, \
       revisions, limits, source) \
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::integer[], $5::bytea[], $6::double precision[], \
     $7::double precision[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bigint[])";

impl Transaction {
    pub(super) async fn open(core: Arc<Core>, begin: &str) -> Result<Self, DbError> {
        schema::migrate(&core.pool).await?;
        let mut session = core.session().await?;
        session.begin_by(begin).await?;
        Ok(Self { core, session })
    }

    pub(super) async fn queues(&mut self) -> Result<Vec<QueueMark>, DbError> {
        let rows = self.session.query(&Statement::new(QUEUES, Vec::new())).await?;
        let mut queues = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut row = Reader::new(row);
            let name = text::read(row.next()?).into();
            queues.push(QueueMark { name, paused: row.next()?, created: Moment::from_micros(row.next()?) });
        }
        Ok(queues)
    }

    pub(super) async fn count(&mut self) -> Result<usize, DbError> {
        let rows = self.session.query(&Statement::new(COUNT, Vec::new())).await?;
        let count: Option<i64> = rows.first().map(|row| Reader::new(row).next()).transpose()?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
    }

    /// How many inbox entries wait, and how many were set aside.
    pub(super) async fn entries(&mut self) -> Result<(usize, usize), DbError> {
        inbox::count(&mut self.session).await
    }

    /// How many jobs were set aside because they cannot be read.
    pub(super) async fn unreadable(&mut self) -> Result<usize, DbError> {
        unreadable::count(&mut self.session).await
    }

    pub(super) async fn after(&mut self, last: Option<JobId>) -> Result<Vec<Portable>, DbError> {
        // No id is nil: all are UUIDs of version 7.
        let last = last.map_or(Uuid::nil(), |last| Uuid::from_bytes(last.to_bytes()));
        let params: Vec<Param<'_>> = vec![Box::new(last), Box::new(limit(PAGE_JOBS)), Box::new(limit(PAGE_BYTES))];
        let rows = self.session.query(&Statement::new(NAMES, params)).await?;
        let mut keys: HashMap<JobId, Option<Arc<str>>> = HashMap::with_capacity(rows.len());
        for row in &rows {
            let mut row = Reader::new(row);
            let id = row.id()?;
            keys.insert(id, row.next::<Option<&[u8]>>()?.map(key).transpose()?);
        }
        let mut jobs = read::by_id(&mut self.session, &self.core.catalogue, keys.keys(), false).await?.whole()?;
        if jobs.len() != keys.len() {
            let why = format!("found {} ids and {} jobs after {last}; each id has one job", keys.len(), jobs.len());
            return Err(DbError::Broken(why));
        }
        jobs.sort_by_key(|stored| stored.job.id);
        let portable = |stored: StoredRow| {
            let idempotency_key = keys.remove(&stored.job.id).flatten();
            Portable { job: *stored.job, idempotency_key }
        };
        Ok(jobs.into_iter().map(portable).collect())
    }

    pub(super) async fn add_queues(&mut self, queues: Vec<QueueMark>) -> Result<(), DbError> {
        let params: Vec<Param<'_>> = vec![
            Box::new(queues.iter().map(|queue| text::stored(&queue.name)).collect::<Vec<_>>()),
            Box::new(queues.iter().map(|queue| queue.paused).collect::<Vec<_>>()),
            Box::new(queues.iter().map(|queue| queue.created.micros()).collect::<Vec<_>>()),
        ];
        self.session.query(&Statement::new(INSERT_QUEUES, params)).await?;
        let rows = self.session.query(&Statement::new("SELECT id, name FROM queue_names", Vec::new())).await?;
        for row in &rows {
            let mut row = Reader::new(row);
            let number = row.next()?;
            self.core.catalogue.note_queue(number, &text::read(row.next()?).into());
        }
        Ok(())
    }

    pub(super) async fn add(&mut self, jobs: Vec<Portable>) -> Result<(), DbError> {
        let mut policies = Vec::with_capacity(jobs.len());
        for moved in &jobs {
            policies.push(self.core.catalogue.write(&mut self.session, &moved.job.spec.policy).await?);
        }
        let sources = self.core.sources.next(jobs.len());
        self.session.query(&specs(&jobs, policies, sources.clone())).await?;
        let limited = jobs.iter().map(|moved| &moved.job.spec).filter(|spec| spec.limits.is_some());
        let limited: BTreeSet<&Arc<str>> = limited.map(|spec| &spec.queue).collect();
        if !limited.is_empty() {
            self.session.query(&queues::limited(limited)).await?;
        }
        let arrived = |(moved, source): (Portable, i64)| StoredRow::arrived(moved.job, source);
        let arrived: Vec<StoredRow> = jobs.into_iter().zip(sources).map(arrived).collect();
        if let Some(keys) = unique::stored(arrived.iter().map(|stored| &*stored.job)) {
            self.session.query(&keys).await?;
        }
        for statement in write::arrivals(&arrived, &|name| self.core.catalogue.queue(name))? {
            self.session.query(&statement).await?;
        }
        Ok(())
    }

    pub(super) async fn runs_after(&mut self, last: Option<RunId>) -> Result<Vec<PortableRun>, DbError> {
        run::portable(&mut self.session, last).await
    }

    pub(super) async fn add_runs(&mut self, runs: Vec<PortableRun>) -> Result<(), DbError> {
        let new: Vec<&Run> = runs.iter().map(|moved| &moved.run).collect();
        self.session.query(&run::insert(&new)).await?;
        for moved in runs.iter().filter(|moved| !moved.messages.is_empty()) {
            self.session.query(&run::messages_as_they_are(moved)).await?;
        }
        Ok(())
    }

    pub(super) async fn groups_after(&mut self, last: Option<Group>) -> Result<Vec<PortableGroup>, DbError> {
        // All names have a colon, and none is empty.
        let mut last = last.map_or_else(String::new, |last| text::stored(&last.to_string()).into_owned());
        loop {
            let params: Vec<Param<'_>> = vec![Box::new(last), Box::new(limit(PAGE_JOBS))];
            let rows = self.session.query(&Statement::new(GROUPS, params)).await?;
            let Some(newest) = rows.last() else { return Ok(Vec::new()) };
            last = Reader::new(newest).next::<&str>()?.to_owned();
            let mut groups: Vec<PortableGroup> =
                limits::rows(&rows)?.into_iter().map(|(group, row)| PortableGroup { group, row }).collect();
            // Rows of groups that have nothing any more are left out.
            if !groups.is_empty() {
                groups.sort_by(|one, other| one.group.cmp(&other.group));
                return Ok(groups);
            }
        }
    }

    pub(super) async fn add_groups(&mut self, groups: Vec<PortableGroup>) -> Result<(), DbError> {
        let set = groups.iter().filter(|moved| moved.row.holds_runs());
        let limited: Vec<&Arc<str>> = set
            .filter_map(|moved| match &moved.group {
                Group::Queue(name) => Some(name),
                Group::Key(_) | Group::Kind(_) => None,
            })
            .collect();
        self.session.query(&queues::limited(limited)).await?;
        self.session.query(&limits::write(groups.iter().map(|moved| (&moved.group, &moved.row)))).await.map(drop)
    }

    /// New messages get numbers that are free.
    pub(super) async fn use_numbers(&mut self) -> Result<(), DbError> {
        self.session.query(&Statement::new(&run::NUMBERS_USED, Vec::new())).await.map(drop)
    }
}

fn key(bytes: &[u8]) -> Result<Arc<str>, DbError> {
    std::str::from_utf8(bytes).map(Arc::from).map_err(|_| DbError::Broken("a stored key is not UTF-8".to_owned()))
}

fn specs(jobs: &[Portable], policies: Vec<StoredPolicy>, sources: Vec<i64>) -> Statement<'_> {
    let (numbers, own): (Vec<_>, Vec<_>) = policies.into_iter().map(StoredPolicy::into_columns).unzip();
    let spec = || jobs.iter().map(|moved| &*moved.job.spec);
    let keys = jobs.iter().map(|moved| moved.idempotency_key.as_deref().map(str::as_bytes));
    let params: Vec<Param<'_>> = vec![
        Box::new(uuids(jobs.iter().map(|moved| &moved.job.id))),
        Box::new(spec().map(|spec| text::stored(&spec.kind)).collect::<Vec<_>>()),
        Box::new(spec().map(|spec| &*spec.body).collect::<Vec<_>>()),
        Box::new(numbers),
        Box::new(own),
        Box::new(spec().map(|spec| spec.timeout.map(Span::ms)).collect::<Vec<_>>()),
        Box::new(spec().map(|spec| spec.lease.map(Span::ms)).collect::<Vec<_>>()),
        Box::new(keys.collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|moved| encode_revisions(&moved.job)).collect::<Vec<_>>()),
        Box::new(spec().map(limits::limits).collect::<Vec<_>>()),
        Box::new(sources),
    ];
    Statement::new(INSERT_SPECS, params)
}
