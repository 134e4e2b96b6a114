//! How many connections are open, and which of them makes room when places run short.
//!
//! A new connection never waits for one that does nothing: it replaces a connection that waits for
//! its client. That is one that waits for the next request, for the rest of a request, or for the client to take
//! its answer; on a server that asks for keys, also any that has not shown one. Those without a key go first,
//! as long as they hold more than their share. The network with the most such connections gives one up: the
//! one that has waited the longest. A request that is carried out for a client with a key is never cut off.

use super::peer::{Peer, Seen};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a connection may wait for its client before it makes room for another one. A client that is
/// there needs less to send its request.
pub(super) const GRACE: Duration = Duration::from_millis(100);
/// How many connections may be open beyond the limit while as many others, asked to close, still are.
pub(super) const CLOSING: usize = 16;
/// The share of connections, one in this many, that is always open to clients that have not shown a key yet.
const SHARE_WITHOUT_KEY: usize = 8;

/// How many may be open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) most: usize,
    /// How many one network may have open, not counting those that have shown a key; zero for no limit.
    pub(crate) most_of_network: usize,
}

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    bounds: Bounds,
    /// Whether the server asks for keys.
    asks_for_keys: AtomicBool,
    open: Mutex<Open>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    connections: HashMap<u64, Arc<Peer>>,
    next: u64,
}

/// A connection that counts towards the limit until it is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    connections: Arc<Connections>,
    id: u64,
    pub(super) peer: Arc<Peer>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.id);
        self.connections.freed.notify_one();
    }
}

/// The limit that a new connection would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Connections,
    OfNetwork,
}

impl Limit {
    /// The network whose connections alone can make room under this limit, if it is about one.
    fn within(self, network: IpAddr) -> Option<IpAddr> {
        (self == Self::OfNetwork).then_some(network)
    }
}

/// Whether a new connection is accepted.
#[derive(Debug)]
pub(super) enum Found {
    /// There is one.
    Peer(Taken),
    /// It is accepted, because this many others were asked to close.
    Made(Taken, Limit, usize),
    /// There may be one at this time, or when one is freed.
    Soon(Instant),
    /// All are taken by requests that are carried out.
    Full(Limit),
}

/// A connection that could make room, and since when it waits.
type Candidate<'o> = (Instant, &'o Arc<Peer>);

impl Connections {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, asks_for_keys: AtomicBool::new(false), open: Mutex::default(), freed: Notify::new() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server asks for keys from now on.
    pub(crate) fn ask_for_keys(&self, asks: bool) {
        self.asks_for_keys.store(asks, Ordering::Relaxed);
    }

    fn asks_for_keys(&self) -> bool {
        self.asks_for_keys.load(Ordering::Relaxed)
    }

    /// How many connections are open.
    pub(crate) fn count(&self) -> usize {
        self.open().connections.len()
    }

    /// Completes after a connection has closed.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Accepts or refuses a new connection. At the limit, others are asked to close.
    pub(super) fn take(self: &Arc<Self>, client: IpAddr, now: Instant) -> Found {
        let mut open = self.open();
        let peer = Arc::new(Peer::new(client, now));
        let share = self.bounds.most.div_ceil(SHARE_WITHOUT_KEY);
        let made = match self.reached(&open, peer.network) {
            None => None,
            Some(_) if open.connections.len() >= self.bounds.most + CLOSING => return Found::Soon(now + GRACE),
            Some(limit) => match self.expendable(&open, limit.within(peer.network), share, now) {
                Ok(candidates) => Some((limit, self.close(candidates, limit))),
                Err(Some(ripe)) => return Found::Soon(ripe),
                Err(None) => return Found::Full(limit),
            },
        };
        let id = open.next;
        open.next += 1;
        open.connections.insert(id, Arc::clone(&peer));
        let taken = Taken { connections: Arc::clone(self), id, peer };
        match made {
            None => Found::Peer(taken),
            Some((limit, closed)) => Found::Made(taken, limit, closed),
        }
    }

    /// Tells a connection to close, if there is one that waits for its client.
    pub(super) fn close_one(&self, now: Instant) {
        let open = self.open();
        if let Ok(candidates) = self.expendable(&open, None, 1, now) {
            self.close(candidates, Limit::Connections);
        }
    }

    /// The limit that excludes a connection from a network.
    fn reached(&self, open: &Open, network: IpAddr) -> Option<Limit> {
        let Bounds { most, most_of_network, .. } = self.bounds;
        let staying = |peer: &&Arc<Peer>| !peer.seen().closing;
        let of_network = |peer: &&Arc<Peer>| peer.network == network && !self.has_shown_key(&peer.seen());
        if most_of_network > 0
            && open.connections.values().filter(of_network).filter(staying).count() >= most_of_network
        {
            return Some(Limit::OfNetwork);
        }
        let full = open.connections.len() >= most && open.connections.values().filter(staying).count() >= most;
        full.then_some(Limit::Connections)
    }

    /// The connections that may be closed for a new one, of one network or of all. Where none has waited long
    /// enough, the time at which one will have; `None` where none waits. Connections that have shown a key are
    /// among them only where fewer than this share have not.
    fn expendable<'o>(
        &self,
        open: &'o Open,
        network: Option<IpAddr>,
        share: usize,
        now: Instant,
    ) -> Result<Vec<Candidate<'o>>, Option<Instant>> {
        let (mut without_key, mut others) = (Vec::new(), Vec::new());
        for peer in open.connections.values().filter(|peer| network.is_none_or(|network| peer.network == network)) {
            let seen = peer.seen();
            match seen.waits_since {
                _ if seen.closing => {}
                waits if self.asks_for_keys() && !seen.admitted => {
                    without_key.push((waits.unwrap_or(seen.since), peer))
                }
                Some(since) if network.is_none() || !self.asks_for_keys() => others.push((since, peer)),
                _ => {}
            }
        }
        let mut candidates = without_key;
        if candidates.len() < share {
            candidates.append(&mut others);
        }
        let first = candidates.iter().map(|(since, _)| *since + GRACE).min();
        candidates.retain(|(since, _)| *since + GRACE <= now);
        if candidates.is_empty() { Err(first) } else { Ok(candidates) }
    }

    fn has_shown_key(&self, seen: &Seen) -> bool {
        self.asks_for_keys() && seen.admitted
    }

    /// Tells those to close that have waited the longest, of the network that has the most of them.
    fn close(&self, mut candidates: Vec<Candidate<'_>>, limit: Limit) -> usize {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for (_, peer) in &candidates {
            *counts.entry(peer.network).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or_default();
        candidates.retain(|(_, peer)| counts.get(&peer.network) == Some(&most));
        candidates.sort_unstable_by_key(|(since, _)| *since);
        // Looking through very many connections for each new one would take too long.
        candidates.truncate((self.bounds.most / 1_000).max(1));
        candidates.iter().for_each(|(_, peer)| peer.close(limit));
        candidates.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

    fn connections(most: usize, most_of_network: usize, keys: bool) -> Arc<Connections> {
        let connections = Connections::new(Bounds { most, most_of_network });
        connections.ask_for_keys(keys);
        connections
    }

    fn taken(found: Found) -> Taken {
        match found {
            Found::Peer(taken) | Found::Made(taken, ..) => taken,
            other => panic!("refused: {other:?}"),
        }
    }

    /// A connection that comes a second after the one before.
    async fn connect(connections: &Arc<Connections>, client: IpAddr) -> Taken {
        tokio::time::advance(Duration::from_secs(1)).await;
        taken(connections.take(client, Instant::now()))
    }

    fn closing<const N: usize>(connections: [&Taken; N]) -> [bool; N] {
        connections.map(|taken| taken.peer.seen().closing)
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_waits_the_longest_makes_room_and_one_at_work_never() {
        let connections = connections(3, 0, false);
        let works = connect(&connections, HERE).await;
        works.peer.begin(true);
        let (first, second) = (connect(&connections, HERE).await, connect(&connections, HERE).await);
        tokio::time::advance(Duration::from_secs(1)).await;
        first.peer.begin(true);
        first.peer.end();
        let third = connect(&connections, HERE).await;
        assert_eq!(closing([&works, &first, &second, &third]), [false, false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_and_an_answer_that_is_not_read_make_room() {
        let connections = connections(2, 0, false);
        let (body, unread) = (connect(&connections, HERE).await, connect(&connections, HERE).await);
        for taken in [&body, &unread] {
            taken.peer.begin(true);
        }
        assert!(matches!(connections.take(HERE, Instant::now()), Found::Full(Limit::Connections)));
        body.peer.await_body();
        let third = connect(&connections, HERE).await;
        third.peer.begin(true);
        assert_eq!(closing([&body, &unread]), [true, false]);
        unread.peer.block();
        let _fourth = connect(&connections, HERE).await;
        assert_eq!(closing([&body, &unread]), [true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_just_come_is_given_time_to_send_its_request() {
        let connections = connections(1, 0, false);
        let first = connect(&connections, HERE).await;
        let come = Instant::now();
        assert!(matches!(connections.take(HERE, come), Found::Soon(at) if at == come + GRACE));
        let _second = taken(connections.take(HERE, come + GRACE));
        assert_eq!(closing([&first]), [true]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_without_a_key_make_room_before_those_who_have_one_whatever_they_do() {
        let connections = connections(3, 0, true);
        let with_key = connect(&connections, HERE).await;
        with_key.peer.begin(true);
        with_key.peer.end();
        let (working, silent) = (connect(&connections, HERE).await, connect(&connections, ELSEWHERE).await);
        working.peer.begin(false);
        let (_third, _fourth) = (connect(&connections, HERE).await, connect(&connections, HERE).await);
        assert_eq!(closing([&with_key, &working, &silent]), [false, true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_with_a_key_leave_a_share_to_those_who_have_yet_to_show_it() {
        let connections = connections(16, 0, true);
        let mut kept = Vec::new();
        for _ in 0..16 {
            let taken = connect(&connections, HERE).await;
            taken.peer.begin(true);
            taken.peer.end();
            kept.push(taken);
        }
        let (first, _second) = (connect(&connections, HERE).await, connect(&connections, HERE).await);
        assert_eq!(closing([&kept[0], &kept[1], &kept[2]]), [true, true, false], "two are an eighth of sixteen");
        let third = connect(&connections, HERE).await;
        assert_eq!(closing([&kept[2], &first, &third]), [false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn where_descriptors_run_out_those_with_a_key_are_kept_as_long_as_there_are_others() {
        let connections = connections(100, 0, true);
        let with_key = connect(&connections, HERE).await;
        with_key.peer.begin(true);
        with_key.peer.end();
        let silent = connect(&connections, HERE).await;
        tokio::time::advance(GRACE).await;
        connections.close_one(Instant::now());
        assert_eq!(closing([&with_key, &silent]), [false, true]);
        connections.close_one(Instant::now());
        assert_eq!(closing([&with_key]), [true], "better than a server that accepts no client");
    }

    #[tokio::test(start_paused = true)]
    async fn the_network_with_the_most_waiting_connections_gives_one_up() {
        let connections = connections(4, 0, false);
        let oldest = connect(&connections, HERE).await;
        let others = [
            connect(&connections, ELSEWHERE).await,
            connect(&connections, ELSEWHERE).await,
            connect(&connections, ELSEWHERE).await,
        ];
        let _new = connect(&connections, HERE).await;
        assert_eq!(closing([&oldest, &others[0], &others[1]]), [false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_has_no_more_than_its_share() {
        let connections = connections(100, 2, true);
        let with_key = connect(&connections, HERE).await;
        with_key.peer.begin(true);
        let first = [connect(&connections, HERE).await, connect(&connections, HERE).await];
        let elsewhere = connect(&connections, ELSEWHERE).await;
        let _third = connect(&connections, HERE).await;
        assert_eq!(closing([&with_key, &first[0], &first[1], &elsewhere]), [false, true, false, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_are_told_to_close_and_do_not_are_not_exceeded_for_ever() {
        let connections = connections(1, 0, false);
        let mut kept = Vec::new();
        for _ in 0..=CLOSING {
            kept.push(connect(&connections, HERE).await);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(matches!(connections.take(HERE, Instant::now()), Found::Soon(_)));
        kept.clear();
        assert_eq!(connections.count(), 0);
        assert!(matches!(connections.take(HERE, Instant::now()), Found::Peer(_)));
    }
}
