//! For operators: the paths below `/admin`. What is about dead letters, many jobs at once and workers is in `dead` and
//! `workers`.

mod config;
pub(super) mod graphs;
mod history;
mod jobs;
mod keys;
mod maintenance;
mod queues;
mod stats;

pub(crate) use config::config;
pub(crate) use history::{HISTORY_PARAMETERS, history};
pub(crate) use jobs::{LIST_PARAMETERS, cancel, job, jobs, retry};
pub(crate) use keys::{create_key, keys, revoke_key, rotate_key};
pub(crate) use maintenance::{maintenance, set_maintenance};
pub(crate) use queues::{pause, queue, queues, resume};
pub(crate) use stats::stats;
