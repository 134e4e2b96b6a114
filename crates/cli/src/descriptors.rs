//! File descriptors: the store's share is reserved, and connections get the rest.

use crate::exit::Failed;
use redrive_server::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the store, the runtime and the standard streams. A folder takes about ten; the pool of connections to
/// PostgreSQL has 17.
const RESERVED: usize = 64;

/// Ensures that the process may open as many files as the server needs; otherwise lowers the number of
/// connections, and returns a line for the log.
pub(crate) fn reserve(limits: &mut Limits) -> Result<Option<String>, Failed> {
    let needed = limits.descriptors() + RESERVED;
    let allowed = raise_limit(needed);
    if allowed >= needed {
        return Ok(None);
    }
    let wanted = limits.connections;
    let reserved = needed - wanted;
    limits.connections = allowed.saturating_sub(reserved);
    if limits.connections == 0 {
        return Err(Failed::unreachable(format!(
            "found a limit of {allowed} file descriptors (ulimit -n); needed are {} and more: {reserved} for the store \
             and for accepting, and one for each connection",
            reserved + 1
        )));
    }
    Ok(Some(format!(
        "{allowed} file descriptors are allowed (ulimit -n), and {reserved} of them are reserved for the store and for \
         accepting: at most {} connections are open at once, and not {wanted} (limits.connections)",
        limits.connections
    )))
}

/// Raises the limit to what is needed, as far as the system allows; returns the limit in effect.
fn raise_limit(needed: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let wanted = needed.min(number(limit.maximum));
    let higher = Rlimit { current: Some(wanted as u64), maximum: limit.maximum };
    if number(limit.current) < wanted && setrlimit(Resource::Nofile, higher).is_ok() {
        return wanted;
    }
    number(limit.current)
}
