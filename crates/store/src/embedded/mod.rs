//! A store in one folder of this machine: an append-only log, and everything in memory.
//!
//! `docs/durability.md` says what it promises, and how.

mod backup;
mod check;
mod compactor;
mod core;
mod disk;
mod due;
mod fault;
mod flusher;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod gather;
mod groups;
mod header;
mod high_water;
mod ids;
mod indexes;
mod lanes;
mod load;
mod log;
mod names;
mod notice;
mod open;
mod options;
mod queue_index;
mod read;
mod record;
mod reserve;
mod runs;
mod segment;
mod shared_spec;
mod slot;
mod slots;
mod snapshot;
mod spare;
mod steps;
mod store;
mod store_state;
mod transfer;
mod uniques;
mod verbs;
mod waiter;
mod walk;

pub use backup::{backup, backup_on};
pub use check::{Findings, check, check_on};
pub use disk::{Disk, DiskFile, Identity, LockError, NativeDisk};
pub use fault::{Damage, IoError, IoErrorKind, OpenError};
pub use names::is_own as is_store_file;
pub use notice::Notice;
pub use open::{Access, Opened, Repair};
pub use options::Options;
pub use read::LoadProgress;
pub use store::{Embedded, Status};
pub use transfer::{FolderSource, FolderTarget};
