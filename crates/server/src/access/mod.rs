//! Who may call what: keys with scopes and queues, and what each endpoint asks of its callers.
//!
//! Configured keys are in the settings of a server and may do everything. Stored keys are in its store, as hashes, and
//! may do what their scopes say, in the queues that they are for. A server that has neither admits everyone; once a
//! key was stored, it never does again by itself.

mod caller;
mod check;
mod configured;
mod guard;
mod program;
mod rule;
mod scope;
mod secret;
mod stored;

pub(crate) use caller::Caller;
pub(crate) use check::check;
pub use configured::{ApiKeys, SHORTEST_KEY};
pub(crate) use guard::{Guard, elapsed};
pub(crate) use program::{Change, Keys, KeysProgram, MOST_KEYS};
pub(crate) use rule::{Access, OPEN, Queues, Rule, admin, enqueue, inspect, read, work};
pub(crate) use scope::{Scope, Scopes};
pub(crate) use secret::NewSecret;
pub(crate) use stored::{LONGEST_NAME, QueuePattern, StoredKey, StoredSecret, is_key_name};
