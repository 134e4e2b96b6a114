//! A random client: well-formed and broken requests to every endpoint of a real server with data and workers.
//! Every request is answered, no answer is an error of the server, nothing grows, and a well-behaved client at the same
//! time gets the right answers.
//!
//! `RANDOM_CLIENT_SEED` repeats a run, `RANDOM_CLIENT_SECONDS` sets its length.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod broken;
mod client;
mod graphs;
mod hooks;
mod mutate;
mod neighbour;
mod vocabulary;
mod wire;
mod workers;
mod world;

use std::time::Duration;
use tokio::time::Instant;
use world::World;

/// How many random clients there are at once.
const CLIENTS: u64 = 5;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_breaks_the_server_or_disturbs_others() {
    let seed = number("RANDOM_CLIENT_SEED").unwrap_or_else(|| fastrand::u64(..));
    let length = Duration::from_secs(number("RANDOM_CLIENT_SECONDS").unwrap_or(60));
    eprintln!("RANDOM_CLIENT_SEED={seed}");
    let world = World::open().await;
    let until = Instant::now() + length;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            tokio::spawn(client::run(world.address, fastrand::Rng::with_seed(seed.wrapping_add(client)), until))
        })
        .collect();
    let broken: Vec<_> = (0..CLIENTS)
        .map(|client| {
            tokio::spawn(broken::run(world.address, fastrand::Rng::with_seed(!seed.wrapping_add(client)), until))
        })
        .collect();
    let workers = tokio::spawn(workers::run(world.address, fastrand::Rng::with_seed(seed ^ 0xff), until));
    let neighbour = tokio::spawn(neighbour::run(world.address, until));

    let mut tally = client::Tally::default();
    for client in clients {
        tally.add(client.await.expect("a client fails no request"));
    }
    tally.add(workers.await.expect("the workers fail no request"));
    let mut connections = 0;
    for client in broken {
        connections += client.await.expect("broken requests break nothing");
    }
    let neighbour = neighbour.await.expect("the neighbour gets right answers");
    let rounds = neighbour.rounds;
    eprintln!("{tally}; {connections} broken connections; {rounds} rounds of the neighbour");
    tally.assert_covers_statuses();
    assert!(rounds > 0 && connections > 0);
    world.arrived.has(&neighbour.hooked).await;
    world.has_not_grown(&tally, neighbour.jobs).await;
    world.close().await;
}
