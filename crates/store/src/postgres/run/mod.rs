//! Runs, their messages and their steps.

mod advance;
mod messages;
mod read;
mod rows;
mod sql;
mod start;
mod work;

pub(in crate::postgres) use advance::advance;
pub(in crate::postgres) use messages::{Messages, insert_of_claims, messages_as_they_are};
pub(in crate::postgres) use read::{get, list, listening, next, of_key, pending, portable};
pub(in crate::postgres) use rows::insert;
pub(in crate::postgres) use sql::NUMBERS_USED;
pub(in crate::postgres) use start::{prune, signal, start};
