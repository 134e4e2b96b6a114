//! The store on PostgreSQL 13 and newer: many nodes, one database.
//!
//! Each verb is one transaction. Those that change jobs read them under a lock, apply the same rules as
//! the reference model, and write what has changed, so that the decisions of the engine run inside of the
//! transaction that writes their outcome. Calls of several callers share transactions.

mod access;
mod aside;
mod batcher;
mod block;
mod catalogue;
mod clock;
mod core;
mod counts;
mod db_error;
mod depths;
mod ended;
mod inbox;
mod lease_cache;
mod limits;
mod listeners;
mod notifier;
mod options;
mod pool;
mod pooler;
mod privileges;
mod queues;
mod read;
mod row;
mod run;
mod schema;
mod settling;
mod source;
mod sql;
mod store;
mod stored_row;
mod tally;
mod text;
mod tls;
mod transfer;
mod unique;
mod unreadable;
mod vacuum;
mod value;
mod verbs;
mod write;

pub use clock::DatabaseClock;
pub use inbox::{Contents, Inbox, SetAside};
pub use notifier::Change;
pub use options::Options;
pub use store::Postgres;
pub use transfer::{BesideJobs, DatabaseSource, DatabaseTarget};
pub use unreadable::{UnreadableJob, UnreadableJobs, UnreadableList};
