//! The embedded store: the suite, and everything that can happen to a folder.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail as tests do")]

mod backups;
mod compaction;
mod conformance;
mod copies;
mod damage;
#[path = "../common/description.rs"]
mod description;
mod descriptors;
mod faults;
mod fixture;
mod flush;
mod folder;
mod history;
mod lists;
mod lost_folder;
mod model;
mod power;
#[path = "../common/scratch.rs"]
mod scratch;
mod sim;
mod subject;
mod tail;
mod versions;
mod workload;
