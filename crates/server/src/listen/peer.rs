//! What one connection does, and whether it waits for its client.

use super::connections::Limit;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The client's address; of an address of version 6, its first half.
    pub(super) network: IpAddr,
    state: Mutex<State>,
    close: Notify,
}

#[derive(Debug)]
struct State {
    activity: Activity,
    /// When the client was last waited for, or the request began.
    since: Instant,
    /// Since when the client has not taken what was written.
    blocked: Option<Instant>,
    admitted: bool,
    /// The limit that it has to close for.
    closing: Option<Limit>,
    timed_out: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// No request has come yet, or all were answered.
    Idle,
    /// The body of a request has not come yet.
    AwaitsBody,
    /// A request is carried out.
    Works,
}

/// What is known of a connection when places run short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Since when it waits for its client; `None` while a request is carried out.
    pub(super) waits_since: Option<Instant>,
    /// When it last began or ended a request.
    pub(super) since: Instant,
    /// Whether a request with a valid key has come.
    pub(super) admitted: bool,
    /// Whether it was asked to close already.
    pub(super) closing: bool,
}

impl Peer {
    pub(super) fn new(client: IpAddr, now: Instant) -> Self {
        let state = State {
            activity: Activity::Idle,
            since: now,
            blocked: None,
            admitted: false,
            closing: None,
            timed_out: false,
        };
        Self { network: network(client), state: Mutex::new(state), close: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn seen(&self) -> Seen {
        let state = self.state();
        let idle = (state.activity != Activity::Works).then_some(state.since);
        Seen {
            waits_since: state.blocked.or(idle),
            since: state.since,
            admitted: state.admitted,
            closing: state.closing.is_some(),
        }
    }

    /// A request has come.
    pub(super) fn begin(&self, admitted: bool) {
        let mut state = self.state();
        state.activity = Activity::Works;
        state.since = Instant::now();
        state.admitted |= admitted;
    }

    /// The request that runs waits for its body.
    pub(super) fn await_body(&self) {
        self.change(Activity::Works, Activity::AwaitsBody);
    }

    /// The request that runs has its body.
    pub(super) fn have_body(&self) {
        self.change(Activity::AwaitsBody, Activity::Works);
    }

    fn change(&self, from: Activity, to: Activity) {
        let mut state = self.state();
        if state.activity == from {
            state.activity = to;
        }
    }

    /// The response is written, or the client has gone.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.activity = Activity::Idle;
        state.since = Instant::now();
    }

    /// The client does not take what is written.
    pub(super) fn block(&self) {
        let mut state = self.state();
        state.blocked = state.blocked.or_else(|| Some(Instant::now()));
    }

    /// The client has taken everything that was written.
    pub(super) fn unblock(&self) {
        self.state().blocked = None;
    }

    /// The client has not taken what was written for too long.
    pub(super) fn time_out(&self) {
        self.state().timed_out = true;
    }

    pub(super) fn timed_out(&self) -> bool {
        self.state().timed_out
    }

    /// Tells the connection to close, because of this limit.
    pub(super) fn close(&self, limit: Limit) {
        self.state().closing = Some(limit);
        self.close.notify_one();
    }

    /// Completes once the connection is asked to close.
    pub(super) async fn told_to_close(&self) -> Limit {
        self.close.notified().await;
        self.state().closing.unwrap_or(Limit::Connections)
    }

    /// Whether a request is carried out whose answer the client can take.
    pub(super) fn works(&self) -> bool {
        self.seen().waits_since.is_none()
    }

    pub(super) fn awaits_body(&self) -> bool {
        self.state().activity == Activity::AwaitsBody
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.state().blocked.is_some()
    }
}

/// A client that has one address of version 6 has all that begin with the same 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address @ IpAddr::V4(_) => address,
    }
}
