//! The sources of jobs: numbers that jobs share that this node stores one after the other.

use std::sync::atomic::{AtomicI64, Ordering};

/// How many jobs share one. Workers claim them in about the order in which they came, so that the jobs of a claim are
/// mostly of one or two sources; and the claims of one source are few enough to look at all of them.
const JOBS: i64 = 256;

/// The next source, and how many jobs have it already.
#[derive(Debug)]
pub(super) struct Sources(AtomicI64);

impl Default for Sources {
    /// Nodes begin with any source, at its first job. Where two of them meet, they share sources, which costs time
    /// only.
    fn default() -> Self {
        let mut bytes = [0; 8];
        // Without randomness, from the beginning.
        let _ = getrandom::fill(&mut bytes);
        Self(AtomicI64::new((i64::from_le_bytes(bytes) & (i64::MAX >> 8)) / JOBS * JOBS))
    }
}

impl Sources {
    /// The sources of so many jobs.
    pub(super) fn next(&self, jobs: usize) -> Vec<i64> {
        let first = self.0.fetch_add(i64::try_from(jobs).unwrap_or(0), Ordering::Relaxed);
        (first..).take(jobs).map(|place| place / JOBS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_come_one_after_the_other_share_a_source() {
        let sources = Sources(AtomicI64::new(2 * JOBS - 2));
        assert_eq!(sources.next(1), [1]);
        assert_eq!(sources.next(3), [1, 2, 2]);
        assert!(sources.next(0).is_empty());
        let new = Sources::default().next(300);
        assert!(new.is_sorted() && new[0] == new[255] && new[255] < new[256]);
    }
}
