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
mod gather;
mod header;
mod high_water;
mod ids;
mod indexes;
mod lane;
mod ledger;
mod load;
mod log;
mod names;
mod notice;
mod open;
mod options;
mod read;
mod record;
mod reserve;
mod segment;
mod slot;
mod slots;
mod snapshot;
mod spare;
mod steps;
mod store;
mod terms;
mod ticket;
mod transfer;
mod verbs;
mod walk;

pub use backup::{backup, backup_on};
pub use check::{Findings, check, check_on};
pub use disk::{Disk, DiskFile, Identity, LockError, NativeDisk};
pub use fault::{Damage, OpenError, Trouble, TroubleKind};
pub use notice::Notice;
pub use open::{Access, Opened, Repair};
pub use options::Options;
pub use read::Progress;
pub use store::{Embedded, Status};
pub use transfer::{FolderSource, FolderTarget};
