//! The ids of jobs and the tokens of leases.

use redrive_policy::Moment;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The id of a job: a UUID of version 7, so that ids sort by the time they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(Uuid);

impl JobId {
    /// How many bytes the text of an id has.
    pub const TEXT: usize = uuid::fmt::Hyphenated::LENGTH;

    /// A new id from the time, in microseconds since the Unix epoch, and 74 random bits.
    #[must_use]
    pub fn new(now: Moment, random: u128) -> Self {
        let millis = u64::try_from(now.micros() / 1_000).unwrap_or(0);
        let bytes = random.to_be_bytes();
        let mut tail = [0; 10];
        tail.copy_from_slice(&bytes[6..]);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid())
    }

    /// The id of a job that a run starts: from the run and the number of the child. The children of one run sort by
    /// their numbers, as far as twelve bits have room for them.
    #[must_use]
    pub fn of_child(at: Moment, run: crate::RunId, seed: u64, child: u64) -> Self {
        let name = u128::from_be_bytes(run.to_bytes());
        let words = [(name >> 64) as u64, name as u64, child];
        let bits = words.into_iter().fold(seed, |bits, word| scattered(bits ^ word));
        Self::new(at, u128::from(child.min(0xfff)) << 64 | u128::from(bits))
    }

    /// The sixteen bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.into_bytes()
    }

    /// Its text, in a buffer of this length: for those who write many ids.
    pub fn encode(self, buffer: &mut [u8; Self::TEXT]) -> &str {
        self.0.hyphenated().encode_lower(buffer)
    }

    /// From sixteen bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for JobId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = Uuid::try_parse(text).ok().filter(|uuid| {
            // One spelling only, so that an id found in a log can be searched for as it stands.
            uuid.get_version_num() == 7 && uuid.hyphenated().encode_lower(&mut [0; Self::TEXT]) == text
        });
        parsed.map(Self).ok_or_else(|| {
            format!("\"{text}\" is not a job id; allowed is a UUID of version 7 in lower case, with hyphens")
        })
    }
}

/// The token of a lease. It has the number of the lease within the job, so that an expired token can be
/// distinguished from an invalid one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseToken {
    /// Which lease of the job this is, from 1.
    pub number: u32,
    /// A random number that cannot be guessed from it.
    pub nonce: u64,
}

impl LeaseToken {
    /// The token of a job's lease of this number, from the random bits of the claim.
    ///
    /// Every store derives it the same way, so that stores can be compared answer by answer. A
    /// worker can compute the other tokens of the same claim, which are its own; those of other claims come from
    /// other seeds.
    #[must_use]
    pub fn derive(seed: u64, id: JobId, number: u32) -> Self {
        let name = u128::from_be_bytes(id.to_bytes());
        let words = [(name >> 64) as u64, name as u64, u64::from(number)];
        let nonce = words.into_iter().fold(seed, |nonce, word| scattered(nonce ^ word));
        Self { number, nonce }
    }
}

/// A permutation of all 64-bit numbers in which every bit of the input moves half of the output.
const fn scattered(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 29)).wrapping_mul(0xd1b5_4a32_d192_ed03);
    bits ^ (bits >> 32)
}

impl fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.number, self.nonce)
    }
}

impl FromStr for LeaseToken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (number, nonce) = text.split_once('-')?;
            let nonce = Some(nonce).filter(|nonce| nonce.len() == 16)?;
            Some(Self { number: number.parse().ok()?, nonce: u64::from_str_radix(nonce, 16).ok()? })
        };
        parse().ok_or_else(|| format!("\"{text}\" is not a lease token; hand back the one that came with the job"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_depends_on_seed_job_and_number_and_on_nothing_else() {
        let id = |random| JobId::new(Moment::from_micros(1_700_000_000_000_000), random);
        let token = LeaseToken::derive(7, id(1), 1);
        assert_eq!(token, LeaseToken::derive(7, id(1), 1));
        assert_eq!(token.to_string().parse(), Ok(token));
        for other in [LeaseToken::derive(8, id(1), 1), LeaseToken::derive(7, id(2), 1), LeaseToken::derive(7, id(1), 2)]
        {
            let differing = (token.nonce ^ other.nonce).count_ones();
            assert!((12..=52).contains(&differing), "{differing} of 64 bits differ between {token} and {other}");
        }
    }

    #[test]
    fn one_changed_bit_of_the_seed_moves_about_half_of_the_nonce() {
        let id = JobId::new(Moment::ORIGIN, 5);
        let (mut moved, mut pairs) = (0, 0);
        for seed in 0..64_u64 {
            for bit in 0..64 {
                let (a, b) = (LeaseToken::derive(seed, id, 1), LeaseToken::derive(seed ^ (1 << bit), id, 1));
                moved += (a.nonce ^ b.nonce).count_ones();
                pairs += 1;
            }
        }
        // 4096 pairs of 64 fair coins: the standard error of the mean is 4 / 64.
        let mean = f64::from(moved) / f64::from(pairs);
        assert!((mean - 32.0).abs() < 0.5, "{mean} of 64 bits move on average");
    }
}
