//! The inbox as people see it: what waits, and what was set aside and why.

use super::core::Core;
use super::db_error::DbError;
use super::options::Options;
use super::pool::Session;
use super::schema;
use super::stored_row::uuids;
use super::text;
use super::value::{Param, Reader, Statement, limit};
use crate::{JobId, StoreError};
use redrive_policy::Moment;
use std::sync::Arc;

/// The inbox of a store. Servers may run meanwhile.
#[derive(Debug)]
pub struct Inbox(Arc<Core>);

/// What is in an inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// How many entries wait for a node to make jobs of them.
    pub waiting: usize,
    /// How many were set aside.
    pub refused: usize,
    /// Those that were set aside, oldest first, as many as were asked for.
    pub set_aside: Vec<SetAside>,
}

/// An entry that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetAside {
    /// The id that the application was given.
    pub id: JobId,
    /// When it was enqueued.
    pub at: Moment,
    /// When a node set it aside.
    pub refused: Moment,
    /// Why.
    pub reason: String,
    /// The document, as JSON text.
    pub document: String,
}

const COUNT: &str = "SELECT count(*) FILTER (WHERE refused_us IS NULL), count(*) FILTER (WHERE refused_us IS NOT NULL) \
     FROM inbox";
const SET_ASIDE: &str = "SELECT id, at_us, refused_us, coalesce(reason, ''), document::text FROM inbox \
     WHERE refused_us IS NOT NULL ORDER BY id LIMIT $1";
/// The ids are checked and the nodes notified in one statement; no id stands for all.
const AGAIN: &str = "WITH told AS (\
       UPDATE inbox SET refused_us = NULL, reason = NULL \
       WHERE refused_us IS NOT NULL AND ($1::uuid[] IS NULL OR id = ANY ($1)) RETURNING id) \
     SELECT id, pg_notify('redrive_' || current_schema(), '@')::text FROM told";
const FORGET: &str = "DELETE FROM inbox WHERE refused_us IS NOT NULL AND ($1::uuid[] IS NULL OR id = ANY ($1)) \
     RETURNING id";

impl Inbox {
    /// Connects.
    ///
    /// # Errors
    /// The database cannot be reached, or holds no store with an inbox.
    pub async fn open(options: Options) -> Result<Self, StoreError> {
        let place = options.to_string();
        let core = Core::new(options.with_connections(1));
        let schema = &core.pool.options().schema;
        let there = async { schema::has_table(&mut core.session().await?, schema, "inbox").await }.await?;
        if there {
            return Ok(Self(core));
        }
        let why =
            format!("there is no inbox in {place}; check the address, or start a server of this version there once");
        Err(StoreError::Broken(why))
    }

    /// What is there, with at most `most` of what was set aside.
    ///
    /// # Errors
    /// What the database says.
    pub async fn look(&self, most: usize) -> Result<Contents, StoreError> {
        Ok(self.contents(most).await?)
    }

    async fn contents(&self, most: usize) -> Result<Contents, DbError> {
        let mut session = self.0.session().await?;
        let (waiting, refused) = count(&mut session).await?;
        let rows = session.query(&Statement::new(SET_ASIDE, vec![Box::new(limit(most))])).await?;
        let mut set_aside = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut row = Reader::new(row);
            set_aside.push(SetAside {
                id: row.id()?,
                at: Moment::from_micros(row.next()?),
                refused: Moment::from_micros(row.next()?),
                reason: text::read(row.next()?).into_owned(),
                document: row.next()?,
            });
        }
        Ok(Contents { waiting, refused, set_aside })
    }

    /// Lets nodes decode entries again that were set aside: these, or all. Returns which there were.
    ///
    /// # Errors
    /// What the database says.
    pub async fn again(&self, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        Ok(self.change(AGAIN, ids).await?)
    }

    /// Deletes entries that were set aside: these, or all. Returns which there were.
    ///
    /// # Errors
    /// What the database says.
    pub async fn forget(&self, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        Ok(self.change(FORGET, ids).await?)
    }

    async fn change(&self, sql: &'static str, ids: Option<&[JobId]>) -> Result<Vec<JobId>, DbError> {
        let params: Vec<Param<'_>> = vec![Box::new(ids.map(uuids))];
        let rows = self.0.session().await?.write(&Statement::new(sql, params)).await?;
        rows.iter().map(|row| Reader::new(row).id()).collect()
    }
}

/// How many entries wait, and how many were set aside.
pub(super) async fn count(session: &mut Session) -> Result<(usize, usize), DbError> {
    let rows = session.query(&Statement::new(COUNT, Vec::new())).await?;
    let Some(row) = rows.first() else { return Ok((0, 0)) };
    let mut row = Reader::new(row);
    let mut next = || Ok::<_, DbError>(usize::try_from(row.next::<i64>()?).unwrap_or(0));
    Ok((next()?, next()?))
}
