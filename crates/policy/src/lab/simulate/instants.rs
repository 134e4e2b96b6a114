//! Counting by instant, in an order that memory likes.

/// The instants of one region; their counts fit into a processor's second-level cache.
const REGION: usize = 1 << 16;
/// How many are put down for a region before they are counted.
const NOTES: usize = 2048;

/// How often each instant was met.
///
/// The attempts of jittered jobs jump about in time, and each count that is touched at random costs
/// more than the decision before it. So they are noted down region by region first, and counted
/// when a region has collected many.
pub(super) struct Instants {
    counts: Vec<u32>,
    /// For each region, places that are not counted yet, from the start of the region.
    notes: Vec<Vec<u16>>,
    /// Nothing was met at this instant or later.
    end: usize,
}

impl Instants {
    pub(super) fn new(instants: usize) -> Self {
        Self { counts: vec![0; instants], notes: vec![Vec::new(); instants.div_ceil(REGION)], end: 0 }
    }

    /// Takes note of one more at this instant.
    #[inline]
    pub(super) fn note(&mut self, instant: usize) {
        let region = instant / REGION;
        let Some(notes) = self.notes.get_mut(region) else { return };
        notes.push((instant % REGION) as u16);
        self.end = self.end.max(instant + 1);
        if notes.len() >= NOTES {
            count(&mut self.counts, region, notes);
        }
    }

    /// Counts whatever was noted.
    pub(super) fn settle(&mut self) {
        for (region, notes) in self.notes.iter_mut().enumerate() {
            count(&mut self.counts, region, notes);
        }
    }

    /// Adds the counts of another thread; both are settled before.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts()) {
            // Untouched memory stays untouched.
            if *theirs > 0 {
                *mine += theirs;
            }
        }
        self.end = self.end.max(other.end);
    }

    /// The counts up to the last one that is not zero; what was noted after the last
    /// [`Instants::settle`] is not among them.
    pub(super) fn counts(&self) -> &[u32] {
        &self.counts[..self.end.min(self.counts.len())]
    }
}

fn count(counts: &mut [u32], region: usize, notes: &mut Vec<u16>) {
    let start = (region * REGION).min(counts.len());
    let end = (start + REGION).min(counts.len());
    let counts = &mut counts[start..end];
    for place in notes.drain(..) {
        if let Some(count) = counts.get_mut(usize::from(place)) {
            *count += 1;
        }
    }
}
