//! Parameters of statements, and the columns of rows.

use super::db_error::DbError;
use crate::JobId;
use redrive_policy::{Moment, Span};
use std::error::Error;
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

/// A parameter of a statement.
pub(super) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// A statement and its parameters.
pub(super) struct Statement<'a> {
    pub(super) sql: &'static str,
    pub(super) params: Vec<Param<'a>>,
}

impl<'a> Statement<'a> {
    pub(super) fn new(sql: &'static str, params: Vec<Param<'a>>) -> Self {
        Self { sql, params }
    }
}

/// The place of a row in its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tid([u8; 6]);

impl<'r> FromSql<'r> for Tid {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TID
    }
}

impl ToSql for Tid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TID
    }

    to_sql_checked!();
}

/// A limit as PostgreSQL takes it; limits of callers may be larger than any number of rows.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The columns of a row, one after the other.
pub(super) struct Reader<'r> {
    row: &'r Row,
    at: usize,
}

impl<'r> Reader<'r> {
    pub(super) const fn new(row: &'r Row) -> Self {
        Self { row, at: 0 }
    }

    /// How many columns there are.
    pub(super) fn len(&self) -> usize {
        self.row.len()
    }

    /// Goes on with this column.
    pub(super) const fn skip_to(&mut self, column: usize) {
        self.at = column;
    }

    pub(super) fn next<T: FromSql<'r>>(&mut self) -> Result<T, DbError> {
        let value = self.row.try_get(self.at).map_err(|error| DbError::Broken(error.to_string()))?;
        self.at += 1;
        Ok(value)
    }

    pub(super) fn id(&mut self) -> Result<JobId, DbError> {
        Ok(JobId::from_bytes(self.next::<Uuid>()?.into_bytes()))
    }

    pub(super) fn moment(&mut self) -> Result<Option<Moment>, DbError> {
        Ok(self.next::<Option<i64>>()?.map(Moment::from_micros))
    }

    pub(super) fn span(&mut self) -> Result<Option<Span>, DbError> {
        Ok(self.next::<Option<f64>>()?.map(Span::saturating_ms))
    }
}
