//! Whether there is a pooler in transaction mode between the node and the database.
//!
//! Prepared statements, settings, advisory locks and `LISTEN` belong to a connection. Behind such a pooler they
//! would belong to another client at the next statement, so that such a pooler is refused at the start.

use super::db_error::DbError;
use super::pool::{Pool, first, reach};
use std::sync::Arc;

/// Several, because a busy pooler may lend two connections although it would lend one twice.
const LOOKS: usize = 3;

const PROCESS: &str = "SELECT pg_backend_pid()";

/// Refuses a database where two connections that are both open have the same process behind them.
pub(super) async fn refuse(pool: &Arc<Pool>) -> Result<(), DbError> {
    for _ in 0..LOOKS {
        let session = pool.session().await?;
        let one = session.first(PROCESS).await?;
        let (client, connection) = reach(&pool.options().config, &pool.options().tls).await?;
        tokio::spawn(async move { drop(connection.await) });
        if first(&client, PROCESS).await? == one {
            return Err(DbError::Broken(
                "found one server process behind two connections: a pooler in between lends them for single \
                 transactions, as PgBouncer does with pool_mode = transaction; needed is a process for each \
                 connection: set pool_mode = session for this database, or give the address of PostgreSQL itself"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}
