//! A store in a database as a whole: read as of one moment, or written in one transaction.

mod transaction;

use super::core::Core;
use super::db_error::DbError;
use super::options::Options;
use super::schema;
use crate::transfer::{CopyError, Portable, PortableGroup, PortableRun, QueueMark, Source, Target};
use crate::{Group, JobId, RunId, StoreError, StoreFuture};
use transaction::Transaction;

/// The other store may take long between two statements.
const UNHURRIED: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

/// A store in a database that is read as of one moment, while no node has it.
pub struct DatabaseSource(Transaction);

/// An empty store in a database that is filled in one transaction.
pub struct DatabaseTarget(Transaction);

/// What a database has beside the jobs that servers work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BesideJobs {
    /// Entries of the inbox that no server has taken in yet.
    pub waiting: usize,
    /// Entries of the inbox that were set aside.
    pub refused: usize,
    /// Jobs that were set aside because they cannot be read.
    pub unreadable: usize,
}

impl DatabaseSource {
    /// Opens a store exclusively.
    ///
    /// # Errors
    /// There is no store, nodes have it open, or the database reports an error.
    pub async fn open(options: Options) -> Result<Self, CopyError> {
        let place = options.to_string();
        let (source, found) = Self::open_with_all(options).await?;
        if found.unreadable > 0 {
            return Err(CopyError::Refused(format!(
                "found {} jobs in {place} that were set aside because they cannot be read; they would be left \
                 behind: list them with `redrive store unreadable`, and put them back or delete them first",
                found.unreadable
            )));
        }
        match (found.waiting, found.refused) {
            (0, 0) => Ok(source),
            (waiting, refused) => Err(CopyError::Refused(format!(
                "found {waiting} jobs in the inbox of {place} that no server has taken in yet, and {refused} that were \
                 set aside; they are no jobs yet and would be left behind: start a server there until it has taken \
                 them in, and see to the others with `redrive store inbox`"
            ))),
        }
    }

    /// Opens a store exclusively, whatever was set aside in it or waits in its inbox, and counts that.
    ///
    /// # Errors
    /// There is no store, nodes have it open, or the database reports an error.
    pub async fn open_with_all(options: Options) -> Result<(Self, BesideJobs), CopyError> {
        let place = options.to_string();
        let core = Core::new(options.alone());
        let schema = &core.pool.options().schema;
        let there = async { schema::is_there(&mut core.session().await?, schema).await }.await;
        if !there.map_err(failed)? {
            return Err(CopyError::Failed(format!("there is no store in {place}; check the address")));
        }
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {UNHURRIED}");
        let mut transaction = Transaction::open(core, &begin).await.map_err(failed)?;
        let unreadable = transaction.unreadable().await.map_err(failed)?;
        let (waiting, refused) = transaction.entries().await.map_err(failed)?;
        Ok((Self(transaction), BesideJobs { waiting, refused, unreadable }))
    }
}

impl DatabaseTarget {
    /// Creates the tables where they are missing, and opens the store exclusively.
    ///
    /// # Errors
    /// There are jobs or queues already, nodes have it open, or the database reports an error.
    pub async fn create(options: Options) -> Result<Self, CopyError> {
        let place = options.to_string();
        let core = Core::new(options.alone());
        let mut transaction = Transaction::open(core, &format!("BEGIN; {UNHURRIED}")).await.map_err(failed)?;
        let found =
            async { Ok((transaction.count().await?, transaction.queues().await?.len(), transaction.entries().await?)) };
        let (jobs, queues, (waiting, refused)) = found.await.map_err(failed)?;
        let runs = transaction.runs_after(None).await.map_err(failed)?.len();
        let groups = transaction.groups_after(None).await.map_err(failed)?.len();
        let entries = waiting + refused;
        // A job that was set aside still has its spec, and is counted with the others.
        if jobs + queues + entries + runs + groups > 0 {
            let many = match (runs, groups) {
                (0, 0) => "",
                (0, _) => "limits, ",
                (_, 0) => "runs, ",
                _ => "runs, limits, ",
            };
            return Err(CopyError::Refused(format!(
                "found {many}{jobs} jobs, {queues} queues and {entries} inbox entries in {place}; allowed is an empty \
                 store: name another schema (?schema=name), or drop this one"
            )));
        }
        Ok(Self(transaction))
    }
}

fn failed(db_error: DbError) -> CopyError {
    CopyError::Failed(db_error.to_string())
}

/// The result of one step.
macro_rules! answer {
    ($work:expr) => {
        Box::pin(async move { $work.await.map_err(StoreError::from) })
    };
}

impl Source for DatabaseSource {
    fn queues(&mut self) -> StoreFuture<'_, Vec<QueueMark>> {
        answer!(self.0.queues())
    }

    fn count(&mut self) -> StoreFuture<'_, usize> {
        answer!(self.0.count())
    }

    fn after(&mut self, last: Option<JobId>) -> StoreFuture<'_, Vec<Portable>> {
        answer!(self.0.after(last))
    }

    fn runs_after(&mut self, last: Option<RunId>) -> StoreFuture<'_, Vec<PortableRun>> {
        answer!(self.0.runs_after(last))
    }

    fn groups_after(&mut self, last: Option<Group>) -> StoreFuture<'_, Vec<PortableGroup>> {
        answer!(self.0.groups_after(last))
    }

    /// Ends the snapshot, so that entries that came after it can be seen.
    fn left_behind(&mut self) -> StoreFuture<'_, usize> {
        answer!(async {
            self.0.session.roll_back().await?;
            Ok::<_, DbError>(self.0.entries().await?.0)
        })
    }
}

impl Source for DatabaseTarget {
    fn queues(&mut self) -> StoreFuture<'_, Vec<QueueMark>> {
        answer!(self.0.queues())
    }

    fn count(&mut self) -> StoreFuture<'_, usize> {
        answer!(self.0.count())
    }

    fn after(&mut self, last: Option<JobId>) -> StoreFuture<'_, Vec<Portable>> {
        answer!(self.0.after(last))
    }

    fn runs_after(&mut self, last: Option<RunId>) -> StoreFuture<'_, Vec<PortableRun>> {
        answer!(self.0.runs_after(last))
    }

    fn groups_after(&mut self, last: Option<Group>) -> StoreFuture<'_, Vec<PortableGroup>> {
        answer!(self.0.groups_after(last))
    }
}

impl Target for DatabaseTarget {
    fn add_queues(&mut self, queues: Vec<QueueMark>) -> StoreFuture<'_, ()> {
        answer!(self.0.add_queues(queues))
    }

    fn add(&mut self, jobs: Vec<Portable>) -> StoreFuture<'_, ()> {
        answer!(self.0.add(jobs))
    }

    fn add_runs(&mut self, runs: Vec<PortableRun>) -> StoreFuture<'_, ()> {
        answer!(self.0.add_runs(runs))
    }

    fn add_groups(&mut self, groups: Vec<PortableGroup>) -> StoreFuture<'_, ()> {
        answer!(self.0.add_groups(groups))
    }

    fn seal(&mut self) -> StoreFuture<'_, ()> {
        answer!(self.0.use_numbers())
    }

    fn finish(mut self: Box<Self>) -> StoreFuture<'static, ()> {
        answer!(async { self.0.session.commit(&[]).await.map(drop) })
    }
}
