//! A pool of connections.

use super::access;
use super::db_error::{DbError, with_cause};
use super::options::Options;
use super::tls::{self, Tls};
use super::unreadable::Watcher;
use super::value::{Param, Statement};
use crate::JobId;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Connection, Row, SimpleQueryMessage, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long the database may take for one answer. A connection that is silent for longer is given up.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);

/// Some connections to one database.
#[derive(Debug)]
pub(super) struct Pool {
    options: Options,
    idle: Mutex<Vec<Link>>,
    /// The listener for jobs that were set aside.
    pub(super) watcher: Watcher,
    places: Arc<Semaphore>,
}

/// One connection, and what is prepared on it.
struct Link {
    client: Client,
    /// By the place of their texts, which are long: those are not hashed for every call.
    prepared: HashMap<(usize, usize), tokio_postgres::Statement>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("prepared", &self.prepared.len()).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(options: Options) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(options.connections.max(1)));
        Arc::new(Self { options, idle: Mutex::default(), watcher: Watcher::default(), places })
    }

    pub(super) const fn options(&self) -> &Options {
        &self.options
    }

    /// A connection, an idle one if there is one. Waits while all are in use.
    pub(super) async fn session(self: &Arc<Self>) -> Result<Session, DbError> {
        let place = tokio::time::timeout(TIMEOUT, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.map_err(|_| self.all_busy())?.map_err(|_| DbError::Lost("the store is closed".to_owned()))?;
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(link) = idle() {
            if !link.client.is_closed() {
                return Ok(Session {
                    link: Some(link),
                    pool: Arc::clone(self),
                    reusable: true,
                    aside: Vec::new(),
                    _place: place,
                });
            }
        }
        let client = connect(&self.options).await?;
        let link = Link { client, prepared: HashMap::new() };
        Ok(Session { link: Some(link), pool: Arc::clone(self), reusable: true, aside: Vec::new(), _place: place })
    }

    fn all_busy(&self) -> DbError {
        let (connections, waited) = (self.options.connections, TIMEOUT.as_secs());
        DbError::Silent(format!("all {connections} connections to PostgreSQL were busy for {waited} s"))
    }
}

type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// A new connection. The client's own limit is for the way to a host only, not for the greeting there, which
/// never comes from a server that hangs.
pub(super) async fn reach(config: &Config, tls: &Tls) -> Result<(Client, Connection<Socket, Stream>), DbError> {
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
    let limit = config.get_connect_timeout().copied().unwrap_or(TIMEOUT).saturating_mul(hosts);
    let late = || DbError::Silent(format!("PostgreSQL gave no greeting for {} s", limit.as_secs()));
    let connected = tokio::time::timeout(limit, config.connect(tls.connector())).await.map_err(|_| late())?;
    connected.map_err(|error| tls::explained(&error, tls).map_or_else(|| not_connected(error), DbError::Broken))
}

/// A new connection, set up for the statements of this store.
async fn connect(options: &Options) -> Result<Client, DbError> {
    let (client, connection) = reach(&options.config, &options.tls).await?;
    // It ends with its client; its errors reach the callers that wait for an answer.
    tokio::spawn(async move { drop(connection.await) });
    within(options, async { Ok(client.batch_execute(&options.session_settings()).await?) }).await?;
    within(options, access::take(&client, options)).await?;
    Ok(client)
}

/// The first value of an answer, asked in a way that leaves nothing on the connection.
pub(super) async fn first(client: &Client, sql: &str) -> Result<Option<String>, DbError> {
    let messages = client.simple_query(sql).await?;
    Ok(messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

/// No statement was sent yet. The error may pass, unless the database refuses the role or the database that the
/// address names.
fn not_connected(error: tokio_postgres::Error) -> DbError {
    let why = with_cause(&error);
    let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    if cause.is_some_and(|cause| cause.kind() == ErrorKind::TimedOut) {
        return DbError::Silent(why);
    }
    match error.code().map(|state| state.code().get(..2).unwrap_or_default()) {
        // The role, its password, or the database.
        Some("28" | "3D" | "42") => DbError::Broken(why),
        Some(_) => DbError::Refused(why),
        None => DbError::Lost(why),
    }
}

/// A connection in use. Where a transaction on it was neither committed nor rolled back, the connection is closed, and
/// the database rolls back.
pub(super) struct Session {
    link: Option<Link>,
    pool: Arc<Pool>,
    reusable: bool,
    /// Jobs that the open transaction has set aside, each with the reason.
    pub(super) aside: Vec<(JobId, String)>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(link) = self.link.take().filter(|link| self.reusable && !link.client.is_closed()) {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(link);
        }
    }
}

impl Session {
    /// The first value of an answer, as [`first`].
    pub(super) async fn first(&self, sql: &str) -> Result<Option<String>, DbError> {
        within(&self.pool.options, first(self.client()?, sql)).await
    }

    /// One statement, in the transaction that is open, or else in one of its own that only reads.
    pub(super) async fn query(&mut self, statement: &Statement<'_>) -> Result<Vec<Row>, DbError> {
        let prepared_statement = self.prepare(statement.sql).await?;
        let was_reusable = std::mem::replace(&mut self.reusable, false);
        let params = borrowed(&statement.params);
        let rows =
            within(&self.pool.options, async { Ok(self.client()?.query(&prepared_statement, &params).await?) }).await?;
        self.reusable = was_reusable;
        Ok(rows)
    }

    /// Begins a transaction with its first statement.
    pub(super) async fn begin(&mut self, how: &'static str, statement: &Statement<'_>) -> Result<Vec<Row>, DbError> {
        let prepared_statement = self.prepare(statement.sql).await?;
        self.reusable = false;
        let params = borrowed(&statement.params);
        within(&self.pool.options, async {
            let client = self.client()?;
            let (begun, rows) = tokio::join!(client.batch_execute(how), client.query(&prepared_statement, &params));
            begun?;
            Ok(rows?)
        })
        .await
    }

    /// The last statements of a transaction, and its commit, all sent together. The answers of all, one after the
    /// other.
    pub(super) async fn commit(&mut self, statements: &[Statement<'_>]) -> Result<Vec<Row>, DbError> {
        let prepared = self.prepared(statements).await?;
        let params: Vec<_> = statements.iter().map(|statement| borrowed(&statement.params)).collect();
        let client = self.client()?;
        let mut sent: Vec<Sent<'_, Vec<Row>>> = Vec::with_capacity(statements.len() + 1);
        for (prepared_statement, params) in prepared.iter().zip(&params) {
            sent.push(Box::pin(client.query(prepared_statement, params)));
        }
        sent.push(Box::pin(statement_of(client, "COMMIT")));
        let answers = finished(&self.pool.options, sent).await?;
        self.reusable = true;
        self.pool.watcher.tell(&std::mem::take(&mut self.aside));
        Ok(answers.into_iter().flatten().collect())
    }

    /// One statement that writes, in a transaction of its own.
    pub(super) async fn write(&mut self, statement: &Statement<'_>) -> Result<Vec<Row>, DbError> {
        let prepared_statement = self.prepare(statement.sql).await?;
        self.reusable = false;
        let params = borrowed(&statement.params);
        let answer =
            within(&self.pool.options, async { Ok(self.client()?.query(&prepared_statement, &params).await?) }).await;
        // A statement that the database refused was rolled back.
        self.reusable = matches!(answer, Ok(_) | Err(DbError::Taken | DbError::Collided(_)));
        answer.map_err(DbError::while_committing)
    }

    /// Begins a transaction with statements that return nothing.
    pub(super) async fn begin_by(&mut self, sql: &str) -> Result<(), DbError> {
        self.reusable = false;
        self.run(sql).await
    }

    /// Rolls a transaction back.
    pub(super) async fn roll_back(&mut self) -> Result<(), DbError> {
        self.run("ROLLBACK").await?;
        self.reusable = true;
        Ok(())
    }

    /// Statements that are neither prepared nor repeated.
    pub(super) async fn run(&mut self, sql: &str) -> Result<(), DbError> {
        within(&self.pool.options, async { Ok(self.client()?.batch_execute(sql).await?) }).await
    }

    /// A statement that may take its time, outside of any transaction.
    pub(super) async fn run_for_long(&mut self, sql: &str) -> Result<(), DbError> {
        self.reusable = false;
        self.client()?.batch_execute(sql).await?;
        self.reusable = true;
        Ok(())
    }

    async fn prepared(&mut self, statements: &[Statement<'_>]) -> Result<Vec<tokio_postgres::Statement>, DbError> {
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(self.prepare(statement.sql).await?);
        }
        Ok(prepared)
    }

    async fn prepare(&mut self, sql: &'static str) -> Result<tokio_postgres::Statement, DbError> {
        let link = self.link.as_mut().ok_or_else(gone)?;
        let place = (sql.as_ptr().addr(), sql.len());
        if let Some(prepared_statement) = link.prepared.get(&place) {
            return Ok(prepared_statement.clone());
        }
        let prepared_statement = within(&self.pool.options, async { Ok(link.client.prepare(sql).await?) }).await?;
        link.prepared.insert(place, prepared_statement.clone());
        Ok(prepared_statement)
    }

    fn client(&self) -> Result<&Client, DbError> {
        self.link.as_ref().map(|link| &link.client).ok_or_else(gone)
    }
}

type Sent<'a, T> = Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + Send + 'a>>;

/// A statement that returns nothing, among others that do.
async fn statement_of(client: &Client, sql: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
    client.batch_execute(sql).await.map(|()| Vec::new())
}

/// The answers of a transaction up to its commit. The first error says why; those after it only that the
/// transaction is aborted.
async fn finished<T>(options: &Options, sent: Vec<Sent<'_, T>>) -> Result<Vec<T>, DbError> {
    let answers = within(options, async { Ok(all(sent).await) }).await.map_err(DbError::while_committing)?;
    answers.into_iter().map(|answer| answer.map_err(|error| DbError::from(error).while_committing())).collect()
}

fn gone() -> DbError {
    DbError::Lost("the connection was given up".to_owned())
}

fn borrowed<'p>(params: &'p [Param<'_>]) -> Vec<&'p (dyn ToSql + Sync)> {
    params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect()
}

async fn within<T>(options: &Options, answer: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    let late = || DbError::Silent(format!("PostgreSQL gave no answer for {} s", options.timeout.as_secs()));
    tokio::time::timeout(options.timeout, answer).await.map_err(|_| late())?
}

/// Polls all of them in their order, so that what they send goes out in that order, without waiting for
/// the answers in between.
async fn all<T>(mut sent: Vec<Sent<'_, T>>) -> Vec<Result<T, tokio_postgres::Error>> {
    let mut answers: Vec<_> = sent.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (answer, sent) in answers.iter_mut().zip(&mut sent) {
            if answer.is_none()
                && let Poll::Ready(ready) = sent.as_mut().poll(context)
            {
                *answer = Some(ready);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}
