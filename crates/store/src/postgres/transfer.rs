//! A store in a database as a whole: read as of one moment, or written in one transaction.

use super::catalogue::Written;
use super::columns::Rows;
use super::core::Core;
use super::kept::{Kept, uuids};
use super::options::Options;
use super::pool::Session;
use super::trouble::Trouble;
use super::value::{Order, Param, Reader, limit, signed};
use super::{read, schema, sql, text};
use crate::transfer::{CopyError, PAGE_BYTES, PAGE_JOBS, Portable, QueueMark, Source, Target};
use crate::{Answer, JobId, StoreError};
use redrive_policy::{Moment, Span};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Between two statements the other side may take its time.
const UNHURRIED: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

/// A store in a database that is read as of one moment, while no node has it.
pub struct DatabaseSource(Vault);

/// An empty store in a database that is filled in one transaction.
pub struct DatabaseTarget(Vault);

/// The only connection to a store, in a transaction.
struct Vault {
    core: Arc<Core>,
    session: Session,
}

impl DatabaseSource {
    /// Takes a store for itself.
    ///
    /// # Errors
    /// That there is none, that nodes have it, or what the database says.
    pub async fn open(options: Options) -> Result<Self, CopyError> {
        let place = options.to_string();
        let core = Core::new(options.alone());
        let schema = &core.pool.options().schema;
        let there = async { schema::is_there(&mut core.session().await?, schema).await }.await;
        if !there.map_err(failed)? {
            return Err(CopyError::Failed(format!("there is no store in {place}; check the address")));
        }
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {UNHURRIED}");
        Ok(Self(Vault::open(core, &begin).await.map_err(failed)?))
    }
}

impl DatabaseTarget {
    /// Makes the tables where they are missing, and takes the store for itself.
    ///
    /// # Errors
    /// That there are jobs or queues already, that nodes have it, or what the database says.
    pub async fn create(options: Options) -> Result<Self, CopyError> {
        let place = options.to_string();
        let core = Core::new(options.alone());
        let mut vault = Vault::open(core, &format!("BEGIN; {UNHURRIED}")).await.map_err(failed)?;
        let found = async { Ok((vault.count().await?, vault.queues().await?.len())) }.await.map_err(failed)?;
        if found != (0, 0) {
            let (jobs, queues) = found;
            return Err(CopyError::Refused(format!(
                "found {jobs} jobs and {queues} queues in {place}; allowed is an empty store: name another schema \
                 (?schema=name), or drop this one"
            )));
        }
        Ok(Self(vault))
    }
}

fn failed(trouble: Trouble) -> CopyError {
    CopyError::Failed(trouble.to_string())
}

/// Runs the work of one answer.
macro_rules! answer {
    ($work:expr) => {
        Box::pin(async move { $work.await.map_err(StoreError::from) })
    };
}

impl Source for DatabaseSource {
    fn queues(&mut self) -> Answer<'_, Vec<QueueMark>> {
        answer!(self.0.queues())
    }

    fn count(&mut self) -> Answer<'_, usize> {
        answer!(self.0.count())
    }

    fn after(&mut self, last: Option<JobId>) -> Answer<'_, Vec<Portable>> {
        answer!(self.0.after(last))
    }
}

impl Source for DatabaseTarget {
    fn queues(&mut self) -> Answer<'_, Vec<QueueMark>> {
        answer!(self.0.queues())
    }

    fn count(&mut self) -> Answer<'_, usize> {
        answer!(self.0.count())
    }

    fn after(&mut self, last: Option<JobId>) -> Answer<'_, Vec<Portable>> {
        answer!(self.0.after(last))
    }
}

impl Target for DatabaseTarget {
    fn add_queues(&mut self, queues: Vec<QueueMark>) -> Answer<'_, ()> {
        answer!(self.0.add_queues(queues))
    }

    fn add(&mut self, jobs: Vec<Portable>) -> Answer<'_, ()> {
        answer!(self.0.add(jobs))
    }

    fn seal(&mut self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn finish(mut self: Box<Self>) -> Answer<'static, ()> {
        answer!(self.0.session.commit(&[]))
    }
}

const QUEUES: &str = "SELECT name, paused, created_us FROM queues ORDER BY name";
const COUNT: &str = "SELECT count(*) FROM specs";
/// The names of the jobs after $1, at most $2, and no more than $3 bytes were said about all but the last.
const NAMES: &str = "SELECT id, key FROM (\
       SELECT id, key, sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS before FROM (\
         SELECT id, key, body FROM specs WHERE id > $1 ORDER BY id LIMIT $2) s) s \
     WHERE before < $3 ORDER BY id";
const INSERT_QUEUES: &str = "INSERT INTO queues (name, paused, created_us) \
     SELECT * FROM unnest($1::text[], $2::boolean[], $3::bigint[])";
const INSERT_SPECS: &str = "INSERT INTO specs (id, kind, body, policy, own_policy, timeout_ms, lease_ms, key) \
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::integer[], $5::bytea[], $6::double precision[], \
     $7::double precision[], $8::bytea[])";

impl Vault {
    async fn open(core: Arc<Core>, begin: &str) -> Result<Self, Trouble> {
        schema::migrate(&core.pool).await?;
        let mut session = core.session().await?;
        session.begin_by(begin).await?;
        Ok(Self { core, session })
    }

    async fn queues(&mut self) -> Result<Vec<QueueMark>, Trouble> {
        let rows = self.session.query(&Order::new(QUEUES, Vec::new())).await?;
        let mut queues = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut row = Reader::new(row);
            let name = text::read(row.next()?).into();
            queues.push(QueueMark { name, paused: row.next()?, created: Moment::from_micros(row.next()?) });
        }
        Ok(queues)
    }

    async fn count(&mut self) -> Result<usize, Trouble> {
        let rows = self.session.query(&Order::new(COUNT, Vec::new())).await?;
        let count: Option<i64> = rows.first().map(|row| Reader::new(row).next()).transpose()?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
    }

    async fn after(&mut self, last: Option<JobId>) -> Result<Vec<Portable>, Trouble> {
        // No name is nil: all are UUIDs of version 7.
        let last = last.map_or(Uuid::nil(), |last| Uuid::from_bytes(last.to_bytes()));
        let params: Vec<Param<'_>> = vec![Box::new(last), Box::new(limit(PAGE_JOBS)), Box::new(limit(PAGE_BYTES))];
        let rows = self.session.query(&Order::new(NAMES, params)).await?;
        let mut keys: HashMap<JobId, Option<Arc<str>>> = HashMap::with_capacity(rows.len());
        for row in &rows {
            let mut row = Reader::new(row);
            let id = JobId::from_bytes(row.next::<Uuid>()?.into_bytes());
            keys.insert(id, row.next::<Option<&[u8]>>()?.map(key).transpose()?);
        }
        let rows = self.session.query(&Order::new(&sql::READ, vec![Box::new(uuids(keys.keys()))])).await?;
        let mut jobs = read::jobs(&mut self.session, &self.core.catalogue, &rows).await?;
        if jobs.len() != keys.len() {
            let why = format!("found {} names and {} jobs after {last}; each name has one job", keys.len(), jobs.len());
            return Err(Trouble::Broken(why));
        }
        jobs.sort_by_key(|kept| kept.job.id);
        let portable = |kept: Kept| {
            let idempotency_key = keys.remove(&kept.job.id).flatten();
            Portable { job: kept.job, idempotency_key }
        };
        Ok(jobs.into_iter().map(portable).collect())
    }

    async fn add_queues(&mut self, queues: Vec<QueueMark>) -> Result<(), Trouble> {
        let params: Vec<Param<'_>> = vec![
            Box::new(queues.iter().map(|queue| text::kept(&queue.name)).collect::<Vec<_>>()),
            Box::new(queues.iter().map(|queue| queue.paused).collect::<Vec<_>>()),
            Box::new(queues.iter().map(|queue| queue.created.micros()).collect::<Vec<_>>()),
        ];
        self.session.query(&Order::new(INSERT_QUEUES, params)).await?;
        let rows = self.session.query(&Order::new("SELECT id, name FROM queues", Vec::new())).await?;
        for row in &rows {
            let mut row = Reader::new(row);
            let number = row.next()?;
            self.core.catalogue.note_queue(number, &text::read(row.next()?).into());
        }
        Ok(())
    }

    async fn add(&mut self, jobs: Vec<Portable>) -> Result<(), Trouble> {
        let mut policies = Vec::with_capacity(jobs.len());
        for moved in &jobs {
            policies.push(self.core.catalogue.write(&mut self.session, &moved.job.spec.policy).await?);
        }
        self.session.query(&specs(&jobs, policies)).await?;
        let kept: Vec<Kept> = jobs.into_iter().map(|moved| arrived(moved.job)).collect();
        for (statement, ended) in [(&sql::INSERT_LIVE, false), (&sql::INSERT_ENDED, true)] {
            let mut rows = Vec::new();
            for kept in kept.iter().filter(|kept| kept.ended == ended) {
                let name = &kept.job.spec.queue;
                let number = self.core.catalogue.queue(name);
                let number = number.ok_or_else(|| Trouble::Broken(format!("the queue \"{name}\" has no number")))?;
                rows.push((kept, number));
            }
            if !rows.is_empty() {
                let rows = Rows::of(rows.into_iter())?;
                self.session.query(&Order::new(statement, rows.into_params())).await?;
            }
        }
        if let Some(order) = failures(&kept)? {
            self.session.query(&order).await?;
        }
        Ok(())
    }
}

fn key(bytes: &[u8]) -> Result<Arc<str>, Trouble> {
    std::str::from_utf8(bytes).map(Arc::from).map_err(|_| Trouble::Broken("a kept key is not UTF-8".to_owned()))
}

/// A job that was elsewhere. Its failures are numbered anew: those that are no longer kept leave no trace.
fn arrived(job: crate::Job) -> Kept {
    let failed = job.failures.len() as u32;
    Kept { failed, ended: job.state.is_terminal(), job, changed: true, new_failure: false }
}

fn specs(jobs: &[Portable], policies: Vec<Written>) -> Order<'_> {
    let (numbers, own): (Vec<_>, Vec<_>) = policies.into_iter().map(Written::into_columns).unzip();
    let spec = || jobs.iter().map(|moved| &*moved.job.spec);
    let keys = jobs.iter().map(|moved| moved.idempotency_key.as_deref().map(str::as_bytes));
    let params: Vec<Param<'_>> = vec![
        Box::new(uuids(jobs.iter().map(|moved| &moved.job.id))),
        Box::new(spec().map(|spec| text::kept(&spec.kind)).collect::<Vec<_>>()),
        Box::new(spec().map(|spec| &*spec.body).collect::<Vec<_>>()),
        Box::new(numbers),
        Box::new(own),
        Box::new(spec().map(|spec| spec.timeout.map(Span::ms)).collect::<Vec<_>>()),
        Box::new(spec().map(|spec| spec.lease.map(Span::ms)).collect::<Vec<_>>()),
        Box::new(keys.collect::<Vec<_>>()),
    ];
    Order::new(INSERT_SPECS, params)
}

/// All failures of jobs.
fn failures(jobs: &[Kept]) -> Result<Option<Order<'_>>, Trouble> {
    let runs = || jobs.iter().flat_map(|kept| (1_i32..).zip(&kept.job.failures).map(|run| (kept.job.id, run)));
    if runs().next().is_none() {
        return Ok(None);
    }
    let verdicts: Result<Vec<String>, _> = runs().map(|(_, (_, run))| serde_json::to_string(&run.verdict)).collect();
    let verdicts = verdicts.map_err(|error| Trouble::Broken(format!("a verdict cannot be written: {error}")))?;
    let params: Vec<Param<'_>> = vec![
        Box::new(runs().map(|(id, _)| Uuid::from_bytes(id.to_bytes())).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (number, _))| number).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (_, run))| signed(run.life)).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (_, run))| signed(run.attempt)).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (_, run))| run.at.micros()).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (_, run))| &*run.error).collect::<Vec<_>>()),
        Box::new(verdicts),
    ];
    Ok(Some(Order::new(sql::INSERT_FAILURES, params)))
}
