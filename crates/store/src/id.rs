//! The names of jobs and leases.

use redrive_policy::Moment;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The name of a job: a UUID of version 7, so that names sort by the time they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(Uuid);

impl JobId {
    /// A new name from the time, in microseconds since the Unix epoch, and 74 random bits.
    #[must_use]
    pub fn new(now: Moment, random: u128) -> Self {
        let millis = u64::try_from(now.micros() / 1_000).unwrap_or(0);
        let bytes = random.to_be_bytes();
        let mut tail = [0; 10];
        tail.copy_from_slice(&bytes[6..]);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid())
    }

    /// The sixteen bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.into_bytes()
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
            // One spelling only, so that a name found in a log can be searched for as it stands.
            uuid.get_version_num() == 7 && uuid.hyphenated().to_string() == text
        });
        parsed.map(Self).ok_or_else(|| {
            format!("\"{text}\" is not a job id; allowed is a UUID of version 7 in lower case, with hyphens")
        })
    }
}

/// Proof of a lease. It names the lease by its number within the job, so that a token that was good
/// once can be told from one that never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseToken {
    /// Which lease of the job this is, from 1.
    pub number: u32,
    /// A random number that cannot be guessed from it.
    pub nonce: u64,
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
