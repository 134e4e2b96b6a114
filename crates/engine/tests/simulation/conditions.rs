//! What no actor of a simulation decides: the clock, outages of the store, and crashes of the server.

use super::common::Seeded;
use super::common::wrapped::in_place;
use super::world::World;
use redrive_policy::{Moment, Span};
use redrive_store::{Held, Store};

/// How rough a simulation is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Climate {
    /// How often, in a thousand calls, the store fails before, and as often after it did its work.
    pub(crate) faults_permille: u64,
    /// How many turns a call to the store takes at most, each way.
    pub(crate) slowness: u64,
    /// Whether the clock also steps back.
    backwards: bool,
    /// Whether the clock also leaps, by hours and days.
    leaps: bool,
    kills_permille: u64,
    outages_permille: u64,
}

impl Climate {
    pub(crate) fn random(rng: &Seeded) -> Self {
        Self {
            faults_permille: *rng.pick(&[0, 10, 50, 150]),
            slowness: *rng.pick(&[0, 1, 3]),
            backwards: rng.permille(600),
            leaps: rng.permille(500),
            kills_permille: *rng.pick(&[0, 1, 4]),
            outages_permille: *rng.pick(&[0, 2]),
        }
    }
}

pub(crate) struct Conditions {
    climate: Climate,
    rng: Seeded,
    /// How many turns the outage goes on.
    outage: u64,
}

impl Conditions {
    pub(crate) const fn new(climate: Climate, rng: Seeded) -> Self {
        Self { climate, rng, outage: 0 }
    }

    /// One turn of it.
    pub(crate) fn change(&mut self, world: &World, store: &dyn Store) {
        if self.rng.permille(60) {
            self.move_clock(world, store);
        }
        match self.outage {
            0 if self.rng.permille(self.climate.outages_permille) => {
                self.outage = self.rng.between(5, 60);
                world.faults.outage(true);
            }
            0 => {}
            1 => self.clear(world),
            _ => self.outage -= 1,
        }
    }

    /// The outage is over.
    pub(crate) fn clear(&mut self, world: &World) {
        self.outage = 0;
        world.faults.outage(false);
    }

    /// Whether the server dies now.
    pub(crate) fn kills(&self) -> bool {
        self.rng.permille(self.climate.kills_permille)
    }

    fn move_clock(&self, world: &World, store: &dyn Store) {
        let rng = &self.rng;
        match rng.below(20) {
            0..=8 => world.advance(Span::from_millis(rng.below(3_000) as u32)),
            9..=12 => world.advance(Span::from_secs(rng.below(60) as u32)),
            // The moments that matter: just before something is due, when it is, and just after.
            13..=16 => {
                let off = rng.below(3) as i64 - 1;
                // Asked without any fault in between.
                let next = in_place(store.next_wake(&Held::new())).ok().flatten();
                let next = next.map(|next| Moment::from_micros(next.micros() + off));
                if let Some(next) = next.filter(|next| *next > world.now()) {
                    world.set_clock(next);
                }
            }
            17 if self.climate.leaps => {
                let most = *rng.pick(&[600_u64, 7_200, 200_000]);
                world.advance(Span::from_secs(rng.between(1, most) as u32));
            }
            18 if self.climate.backwards => {
                let back = rng.below(30_000_000) as i64;
                world.set_clock(Moment::from_micros(world.now().micros() - back));
            }
            _ => world.advance(Span::saturating_ms(0.001)),
        }
    }
}
