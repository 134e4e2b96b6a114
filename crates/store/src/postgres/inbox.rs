//! The inbox as people see it: what waits, and what was set aside and why.

use super::aside::{self, Aside};
use super::db_error::DbError;
use super::options::Options;
use super::pool::Session;
use super::text;
use crate::{JobId, StoreError};
use redrive_policy::Moment;

/// The inbox of a store. Servers may run meanwhile.
#[derive(Debug)]
pub struct Inbox(Aside);

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
const RESTORE: &str = "WITH told AS (\
       UPDATE inbox SET refused_us = NULL, reason = NULL \
       WHERE refused_us IS NOT NULL AND ($1::uuid[] IS NULL OR id = ANY ($1)) RETURNING id) \
     SELECT id, pg_notify('redrive_' || current_schema(), '@')::text FROM told";
const DELETE: &str = "DELETE FROM inbox WHERE refused_us IS NOT NULL AND ($1::uuid[] IS NULL OR id = ANY ($1)) \
     RETURNING id";

impl Inbox {
    /// Connects.
    ///
    /// # Errors
    /// The database cannot be reached, or holds no store with an inbox.
    pub async fn open(options: Options) -> Result<Self, StoreError> {
        Aside::open(options, "inbox", "inbox").await.map(Self)
    }

    /// What is there, with at most `most` of what was set aside.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list(&self, most: usize) -> Result<Contents, StoreError> {
        let contents = async {
            let mut session = self.0.session().await?;
            let (waiting, refused) = count(&mut session).await?;
            let set_aside = aside::rows(&mut session, SET_ASIDE, most, |row| {
                Ok(SetAside {
                    id: row.id()?,
                    at: Moment::from_micros(row.next()?),
                    refused: Moment::from_micros(row.next()?),
                    reason: text::read(row.next()?).into_owned(),
                    document: row.next()?,
                })
            });
            Ok::<_, DbError>(Contents { waiting, refused, set_aside: set_aside.await? })
        };
        Ok(contents.await?)
    }

    /// Lets nodes decode entries again that were set aside: these, or all. Returns which there were.
    ///
    /// # Errors
    /// What the database says.
    pub async fn restore(&self, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        self.0.change(RESTORE, ids).await
    }

    /// Deletes entries that were set aside: these, or all. Returns which there were.
    ///
    /// # Errors
    /// What the database says.
    pub async fn delete(&self, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        self.0.change(DELETE, ids).await
    }
}

/// How many entries wait, and how many were set aside.
pub(super) async fn count(session: &mut Session) -> Result<(usize, usize), DbError> {
    aside::numbers(session, COUNT).await.map(|[waiting, refused]| (waiting, refused))
}
