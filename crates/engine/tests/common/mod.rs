//! What the tests of the engine share: randomness from a seed, and a store with hooks around every call.

#![allow(dead_code, reason = "each test crate uses the part that it needs")]

mod seeded;
pub(crate) mod wrapped;

pub(crate) use seeded::Seeded;
pub(crate) use wrapped::{Around, Passing, Verb, Wrapped};
