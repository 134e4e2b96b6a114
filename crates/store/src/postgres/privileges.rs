//! What to grant where a node lacks a privilege.

use super::db_error::DbError;
use super::pool::Pool;
use super::value::{Reader, Statement};
use std::sync::Arc;

/// The names as SQL writes them: the role, the database and the schema; and whether the schema is
/// there, and its tables.
const WHO: &str = "SELECT quote_ident(current_user), quote_ident(current_database()), quote_ident($1::text), \
       EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text), \
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1::text AND c.relname = 'migrations')";

/// The same error; where a privilege is missing, with the statements that grant it.
pub(super) async fn explained(pool: &Arc<Pool>, db_error: DbError) -> DbError {
    let DbError::Denied(why) = db_error else { return db_error };
    DbError::Broken(match missing(pool).await {
        Ok(what) => format!("{why}. {what}"),
        Err(_) => why,
    })
}

async fn missing(pool: &Arc<Pool>) -> Result<String, DbError> {
    let mut session = pool.session().await?;
    let rows = session.query(&Statement::new(WHO, vec![Box::new(&*pool.options().schema)])).await?;
    let Some(row) = rows.first() else { return Ok(String::new()) };
    let mut row = Reader::new(row);
    let (role, database, schema): (&str, &str, &str) = (row.next()?, row.next()?, row.next()?);
    let (there, tables): (bool, bool) = (row.next()?, row.next()?);
    Ok(match (there, tables) {
        (false, _) => format!(
            "The schema {schema} is not there, and the role {role} may not make it. Run as an administrator, in the \
             database {database}: CREATE SCHEMA {schema} AUTHORIZATION {role};"
        ),
        (true, false) => format!(
            "The role {role} may not make tables in the schema {schema}. Run as an administrator, in the database \
             {database}: GRANT USAGE, CREATE ON SCHEMA {schema} TO {role};"
        ),
        (true, true) => format!(
            "The role {role} does not own the tables in the schema {schema}, and may not use all of them. Run as their \
             owner, in the database {database}: GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT, INSERT, UPDATE, \
             DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO \
             {role}; where the tables are of an older version, start a node as their owner first"
        ),
    })
}
