//! What the inbox and the jobs that cannot be read have in common: entries that were set aside, each with its reason,
//! in a table for people to look at.

use super::core::Core;
use super::db_error::DbError;
use super::options::Options;
use super::pool::Session;
use super::stored_row::uuids;
use super::value::{Param, Reader, Statement, limit};
use super::{schema, text};
use crate::{JobId, StoreError};
use std::sync::Arc;

/// The longest reason that is stored, in characters.
const LONGEST_REASON: usize = 4_000;

/// A connection to the table. Servers may run meanwhile.
#[derive(Debug)]
pub(super) struct Aside(Arc<Core>);

impl Aside {
    /// Connects. `missing` says what is not there where the table is not.
    pub(super) async fn open(options: Options, table: &str, missing: &str) -> Result<Self, StoreError> {
        let place = options.to_string();
        let core = Core::new(options.with_connections(1));
        let schema = &core.pool.options().schema;
        let there = async { schema::has_table(&mut core.session().await?, schema, table).await }.await?;
        if there {
            return Ok(Self(core));
        }
        let why =
            format!("there is no {missing} in {place}; check the address, or start a server of this version there");
        Err(StoreError::Broken(why))
    }

    pub(super) async fn session(&self) -> Result<Session, DbError> {
        self.0.session().await
    }

    /// Runs a statement on these, or on all, and returns which there were.
    pub(super) async fn change(&self, sql: &'static str, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        let changed = async {
            let params: Vec<Param<'_>> = vec![Box::new(ids.map(uuids))];
            let rows = self.session().await?.write(&Statement::new(sql, params)).await?;
            rows.iter().map(|row| Reader::new(row).id()).collect::<Result<_, DbError>>()
        };
        Ok(changed.await?)
    }
}

/// The first rows that a statement finds, at most `most`.
pub(super) async fn rows<T>(
    session: &mut Session,
    sql: &'static str,
    most: usize,
    read: impl Fn(&mut Reader<'_>) -> Result<T, DbError>,
) -> Result<Vec<T>, DbError> {
    let rows = session.query(&Statement::new(sql, vec![Box::new(limit(most))])).await?;
    rows.iter().map(|row| read(&mut Reader::new(row))).collect()
}

/// The numbers in the one row that a statement finds.
pub(super) async fn numbers<const N: usize>(session: &mut Session, sql: &'static str) -> Result<[usize; N], DbError> {
    let rows = session.query(&Statement::new(sql, Vec::new())).await?;
    let mut numbers = [0; N];
    if let Some(row) = rows.first() {
        let mut row = Reader::new(row);
        for number in &mut numbers {
            *number = usize::try_from(row.next::<i64>()?).unwrap_or(0);
        }
    }
    Ok(numbers)
}

/// A reason as it is stored.
pub(super) fn reason(why: &str) -> String {
    text::stored(&why.chars().take(LONGEST_REASON).collect::<String>()).into_owned()
}

/// The ids and the reasons of what is set aside, as two parameters.
pub(super) fn params<'a>(aside: impl Iterator<Item = (&'a JobId, &'a String)> + Clone) -> Vec<Param<'static>> {
    let ids = uuids(aside.clone().map(|(id, _)| id));
    vec![Box::new(ids), Box::new(aside.map(|(_, why)| reason(why)).collect::<Vec<_>>())]
}
