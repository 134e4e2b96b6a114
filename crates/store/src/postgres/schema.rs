//! The tables, created and migrated at start: forward only, by one node at a time.

use super::db_error::DbError;
use super::pool::{Pool, Session};
use super::value::{Reader, Statement};
use std::sync::Arc;

/// A step from one version of the tables to the next.
struct Migration {
    version: i32,
    /// The lowest version that a program must know to work on the tables after this step. Where that is its own
    /// version, older programs refuse to start; where it is an earlier one, they work on.
    needs: i32,
    sql: &'static str,
}

/// All of them, in order. A step that has been released is never changed.
const MIGRATIONS: [Migration; 5] = [
    Migration { version: 1, needs: 1, sql: include_str!("migrations/0001.sql") },
    // Nodes that do not know the inbox take nothing out of it, and can go on.
    Migration { version: 2, needs: 1, sql: include_str!("migrations/0002.sql") },
    // Nodes that set nothing aside can go on; a row that they cannot read fails their own statements only.
    Migration { version: 3, needs: 1, sql: include_str!("migrations/0003.sql") },
    // Nodes that do not know runs would end their jobs without a word to them.
    Migration { version: 4, needs: 4, sql: include_str!("migrations/0004.sql") },
    // Nodes that do not know unique jobs would store duplicates. Those that do not know limits would exceed them, take
    // retries in `claims` for active jobs, and leave out events that runs listen to.
    Migration { version: 5, needs: 5, sql: include_str!("migrations/0005.sql") },
];

/// Migrates the tables. Where they are up to date, no privilege but to read them is needed.
pub(super) async fn migrate(pool: &Arc<Pool>) -> Result<(), DbError> {
    let schema = pool.options().schema.clone();
    let mut session = pool.session().await?;
    if missing(&mut session, &schema).await?.is_empty() {
        return Ok(());
    }
    session.begin_by(&format!("BEGIN; SELECT pg_advisory_xact_lock(hashtext('redrive migrations {schema}'))")).await?;
    // Another node may have been faster.
    let missing = missing(&mut session, &schema).await?;
    // Only where it is missing: the statement needs a privilege on the database even if it has nothing to do.
    let make = if has_schema(&mut session, &schema).await? { "" } else { &format!("CREATE SCHEMA \"{schema}\";") };
    let mut sql = format!(
        "{make}CREATE TABLE IF NOT EXISTS \"{schema}\".migrations (version integer PRIMARY KEY, needs integer NOT NULL, \
         applied timestamptz NOT NULL DEFAULT now());"
    );
    for Migration { version, needs, sql: step } in missing {
        sql.push_str(step);
        sql.push_str(&format!(";INSERT INTO migrations (version, needs) VALUES ({version}, {needs});"));
    }
    session.run(&sql).await?;
    session.commit(&[]).await.map(drop)
}

async fn has_schema(session: &mut Session, schema: &str) -> Result<bool, DbError> {
    let there = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text)";
    yes(session, Statement::new(there, vec![Box::new(schema)])).await
}

async fn yes(session: &mut Session, question: Statement<'_>) -> Result<bool, DbError> {
    let answer = session.query(&question).await?;
    Ok(answer.first().map(|row| Reader::new(row).next::<bool>()).transpose()? == Some(true))
}

/// Whether there are tables of any version.
pub(super) async fn is_there(session: &mut Session, schema: &str) -> Result<bool, DbError> {
    has_table(session, schema, "migrations").await
}

/// Whether there is a table of this name.
pub(super) async fn has_table(session: &mut Session, schema: &str, table: &str) -> Result<bool, DbError> {
    // Not by to_regclass(), which may answer from what this connection saw before it had the lock.
    let there = "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = $1::text AND c.relname = $2::text)";
    yes(session, Statement::new(there, vec![Box::new(schema), Box::new(table)])).await
}

/// The steps that were not applied yet.
async fn missing(session: &mut Session, schema: &str) -> Result<Vec<&'static Migration>, DbError> {
    let (mut version, mut needs) = (0, 0);
    if is_there(session, schema).await? {
        // For PostgreSQL, the tables of a schema that the role may not use do not exist.
        let usable = "SELECT has_schema_privilege($1::text, 'USAGE')";
        if !yes(session, Statement::new(usable, vec![Box::new(schema)])).await? {
            return Err(DbError::Denied(format!("PostgreSQL says: permission denied for schema {schema}")));
        }
        let sql = "SELECT coalesce(max(version), 0), coalesce(max(needs), 0) FROM migrations";
        let rows = session.query(&Statement::new(sql, Vec::new())).await?;
        if let Some(row) = rows.first() {
            let mut row = Reader::new(row);
            (version, needs) = (row.next::<i32>()?, row.next::<i32>()?);
        }
    }
    let known = MIGRATIONS.iter().map(|step| step.version).max().unwrap_or(0);
    if needs > known {
        return Err(DbError::Broken(format!(
            "found tables of version {version} in the schema \"{schema}\", which need a program that knows \
             version {needs}; this one knows up to {known}: start a newer redrive"
        )));
    }
    Ok(MIGRATIONS.iter().filter(|step| step.version > version).collect())
}
