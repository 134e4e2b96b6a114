//! Values of labels, of which clients decide how many there are: only so many are told apart.

use std::collections::HashMap;
use std::sync::Arc;

/// What all further values are counted as. No queue and no job type is named like that.
pub(super) const OTHER: &str = "_other";

/// What the queues of the deliveries of webhooks are counted as: each subscription has one.
pub(super) const WEBHOOKS: &str = "_webhooks";

/// The value under which a queue is counted.
pub(super) fn queue_label(queue: &str) -> &str {
    if queue.starts_with(redrive_store::RESERVED_QUEUES) { WEBHOOKS } else { queue }
}

/// Something for each pair of values, for so many pairs at most. The first that come are told apart.
#[derive(Debug)]
pub(super) struct ByPair<T> {
    most: usize,
    known: HashMap<Arc<str>, HashMap<Arc<str>, T>>,
    count: usize,
    other: Option<T>,
}

impl<T> ByPair<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, known: HashMap::new(), count: 0, other: None }
    }

    /// What belongs to a pair, and whether it has its own.
    pub(super) fn get(&mut self, first: &str, second: &str, make: impl FnOnce(&str, &str) -> T) -> (&mut T, bool) {
        let is_known = self.known.get(first).is_some_and(|seconds| seconds.contains_key(second));
        if !is_known && self.count >= self.most {
            return (self.other.get_or_insert_with(|| make(OTHER, OTHER)), false);
        }
        if !is_known {
            self.count += 1;
            let seconds = self.known.entry(first.into()).or_default();
            seconds.insert(second.into(), make(first, second));
        }
        match self.known.get_mut(first).and_then(|seconds| seconds.get_mut(second)) {
            Some(found) => (found, true),
            None => unreachable!("the pair was inserted above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pairs_are_told_apart_and_all_others_are_one() {
        let mut pairs = ByPair::new(2);
        let name = |first: &str, second: &str| format!("{first}/{second}");
        for number in 0..10_000 {
            let (found, own) = pairs.get("mail", &format!("type-{number}"), name);
            assert_eq!((found.as_str() == "_other/_other", own), (number >= 2, number < 2), "{number}");
        }
        assert_eq!(pairs.get("mail", "type-1", name), (&mut "mail/type-1".to_owned(), true), "it keeps its own");
        assert_eq!(pairs.known["mail"].len(), 2);
    }

    #[test]
    fn deliveries_of_webhooks_are_one_queue() {
        assert_eq!(queue_label("webhook:0198"), WEBHOOKS);
        assert_eq!(queue_label("webhook"), "webhook", "a queue of a client");
    }
}
