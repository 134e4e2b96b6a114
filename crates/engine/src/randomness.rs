//! Randomness, injected into the engine.

use redrive_policy::Draw;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The one source of randomness of a process.
pub trait Randomness: Send + Sync {
    /// The next 64 random bits.
    fn bits(&self) -> u64;

    /// The next draw for a decision.
    fn draw(&self) -> Draw {
        Draw::from_bits(self.bits())
    }
}

/// Randomness of the operating system, fit for tokens: what was given out does not tell what comes next.
#[derive(Default)]
pub struct SystemRandomness(Mutex<Vec<u64>>);

/// Words that are read at once, so that most calls need no call into the kernel.
const WORDS: usize = 64;

impl Randomness for SystemRandomness {
    fn bits(&self) -> u64 {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match words.pop() {
            Some(word) => word,
            None => {
                *words = fresh();
                words.pop().unwrap_or_default()
            }
        }
    }
}

#[allow(clippy::panic, reason = "a server whose tokens can be guessed must not run")]
fn fresh() -> Vec<u64> {
    let mut bytes = [0; WORDS * 8];
    if let Err(error) = getrandom::fill(&mut bytes) {
        panic!("the operating system gives no random numbers: {error}");
    }
    bytes.chunks_exact(8).map(|chunk| chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))).collect()
}

/// Without the words that are still to be given out.
impl fmt::Debug for SystemRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemRandomness")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sources_differ_and_none_repeats_itself() {
        let (one, other) = (SystemRandomness::default(), SystemRandomness::default());
        let mut drawn: Vec<u64> = (0..1_000).flat_map(|_| [one.bits(), other.bits()]).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 2_000);
    }

    #[test]
    fn what_is_still_to_be_given_out_is_not_shown() {
        let source = SystemRandomness::default();
        source.bits();
        assert_eq!(format!("{source:?}"), "SystemRandomness");
    }
}
