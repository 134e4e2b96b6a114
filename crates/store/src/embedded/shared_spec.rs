//! What many jobs have in common, stored once: kind, queue, priority, policy and limits.

use super::lanes::{Lanes, NumberedLane, UNLIMITED};
use super::record::{self, SharedSpecRecord};
use crate::limit::Lane;
use crate::{Blob, Spec, StoreError};
use redrive_policy::{Moment, Policy, Span};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A policy that jobs refer to.
#[derive(Debug)]
pub(super) struct SharedPolicy {
    number: u64,
    policy: Arc<Policy>,
    /// Its JSON form, by which equal policies find each other.
    text: Arc<[u8]>,
}

/// The part of a specification that several jobs share.
#[derive(Debug)]
pub(super) struct SharedSpec {
    pub(super) number: u64,
    pub(super) kind: Arc<str>,
    pub(super) queue: Arc<str>,
    /// The number of the queue.
    pub(super) queue_index: u32,
    pub(super) priority: i32,
    policy: Arc<SharedPolicy>,
    timeout: Option<Span>,
    lease: Option<Span>,
    /// Where jobs with limits of their own wait.
    pub(super) lane: Option<Arc<NumberedLane>>,
}

impl SharedSpec {
    /// The number of the lane.
    pub(super) fn lane_number(&self) -> u64 {
        self.lane.as_ref().map_or(UNLIMITED, |lane| lane.number)
    }

    /// Together with the part that belongs to one job alone.
    pub(super) fn spec(&self, body: &Blob, expires: Option<Moment>) -> Spec {
        Spec {
            kind: Arc::clone(&self.kind),
            queue: Arc::clone(&self.queue),
            priority: self.priority,
            body: Arc::clone(body),
            policy: Arc::clone(&self.policy.policy),
            timeout: self.timeout,
            lease: self.lease,
            expires,
            limits: self.lane.as_ref().map(|lane| Arc::clone(&lane.lane.limits)),
        }
    }

    fn record(&self) -> SharedSpecRecord<'_> {
        SharedSpecRecord {
            number: self.number,
            kind: &self.kind,
            queue: &self.queue,
            priority: self.priority,
            policy: self.policy.number,
            timeout: self.timeout,
            lease: self.lease,
            limits: self.lane.as_ref().map(|lane| Arc::clone(&lane.lane.limits)),
        }
    }

    fn key(&self) -> Key {
        Key {
            kind: Arc::clone(&self.kind),
            queue: Arc::clone(&self.queue),
            priority: self.priority,
            policy: self.policy.number,
            spans: [self.timeout, self.lease].map(bits),
            limits: self.lane.as_ref().map(|lane| Arc::clone(lane.bytes())),
        }
    }
}

/// The key by which an equal shared specification is found.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: Arc<str>,
    queue: Arc<str>,
    priority: i32,
    policy: u64,
    spans: [Option<u64>; 2],
    limits: Option<Arc<[u8]>>,
}

fn bits(span: Option<Span>) -> Option<u64> {
    span.map(|span| span.ms().to_bits())
}

/// All shared specifications and policies that a job has.
///
/// Numbers are never given out twice, so that a number in the log means the same wherever reading
/// starts.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    shared_spec: HashMap<Key, Arc<SharedSpec>>,
    /// The same by number.
    numbered_shared_spec: BTreeMap<u64, Arc<SharedSpec>>,
    policies: HashMap<Arc<[u8]>, Arc<SharedPolicy>>,
    /// The same by address, which does not change while they are stored.
    by_address: HashMap<usize, Arc<SharedPolicy>>,
    /// The same by number.
    numbered_policies: BTreeMap<u64, Arc<SharedPolicy>>,
    next_shared_spec: u64,
    next_policy: u64,
}

impl Catalogue {
    /// The shared specification of a job; a new one is written to `out`.
    pub(super) fn shared_spec_of(
        &mut self,
        spec: &Spec,
        queue_index: u32,
        lanes: &mut Lanes,
        out: &mut Vec<u8>,
    ) -> Result<Arc<SharedSpec>, StoreError> {
        let policy = self.policy(&spec.policy, out)?;
        let lane = lanes.of(spec);
        let key = Key {
            kind: Arc::clone(&spec.kind),
            queue: Arc::clone(&spec.queue),
            priority: spec.priority,
            policy: policy.number,
            spans: [spec.timeout, spec.lease].map(bits),
            limits: lane.as_ref().map(|lane| Arc::clone(lane.bytes())),
        };
        if let Some(shared_spec) = self.shared_spec.get(&key) {
            return Ok(Arc::clone(shared_spec));
        }
        let shared_spec = Arc::new(SharedSpec {
            number: self.next_shared_spec,
            kind: Arc::clone(&spec.kind),
            queue: Arc::clone(&spec.queue),
            queue_index,
            priority: spec.priority,
            policy,
            timeout: spec.timeout,
            lease: spec.lease,
            lane,
        });
        self.next_shared_spec += 1;
        record::shared_spec(out, &shared_spec.record());
        self.numbered_shared_spec.insert(shared_spec.number, Arc::clone(&shared_spec));
        self.shared_spec.insert(key, Arc::clone(&shared_spec));
        Ok(shared_spec)
    }

    /// A job gives up its shared specification. One that no other job has is removed, and gives up its lane.
    pub(super) fn release(&mut self, shared_spec: Arc<SharedSpec>, lanes: &mut Lanes) {
        // Two in the catalogue, one for the job: no other reference outlives a verb.
        if Arc::strong_count(&shared_spec) > 3 {
            return;
        }
        self.shared_spec.remove(&shared_spec.key());
        self.numbered_shared_spec.remove(&shared_spec.number);
        // Three in the catalogue, one in this shared specification.
        let policy = &shared_spec.policy;
        if Arc::strong_count(policy) == 4 {
            self.policies.remove(&policy.text);
            self.by_address.remove(&address(&policy.policy));
            self.numbered_policies.remove(&policy.number);
        }
        let lane = shared_spec.lane.clone();
        drop(shared_spec);
        lane.into_iter().for_each(|lane| lanes.release(lane));
    }

    /// Writes everything with a number from `shared_spec` and `policies` on; answers the next numbers.
    pub(super) fn write(&self, (shared_spec, policies): (u64, u64), out: &mut Vec<u8>) -> (u64, u64) {
        for (number, policy) in self.numbered_policies.range(policies..) {
            record::policy(out, *number, &policy.text);
        }
        for shared_spec in self.numbered_shared_spec.range(shared_spec..).map(|(_, shared_spec)| shared_spec) {
            record::shared_spec(out, &shared_spec.record());
        }
        (self.next_shared_spec, self.next_policy)
    }

    fn policy(&mut self, policy: &Arc<Policy>, out: &mut Vec<u8>) -> Result<Arc<SharedPolicy>, StoreError> {
        if let Some(kept) = self.by_address.get(&address(policy)) {
            return Ok(Arc::clone(kept));
        }
        let text = serde_json::to_vec(&**policy)
            .map_err(|error| StoreError::Broken(format!("a policy cannot be written as JSON: {error}")))?;
        if let Some(kept) = self.policies.get(&text[..]) {
            return Ok(Arc::clone(kept));
        }
        let kept = SharedPolicy { number: self.next_policy, policy: Arc::clone(policy), text: text.into() };
        record::policy(out, kept.number, &kept.text);
        self.next_policy += 1;
        let kept = Arc::new(kept);
        self.keep(&kept);
        Ok(kept)
    }

    /// False where there is an equal one under another number.
    fn keep(&mut self, kept: &Arc<SharedPolicy>) -> bool {
        self.numbered_policies.insert(kept.number, Arc::clone(kept));
        self.by_address.insert(address(&kept.policy), Arc::clone(kept));
        self.policies.insert(Arc::clone(&kept.text), Arc::clone(kept)).is_none()
    }
}

fn address(policy: &Arc<Policy>) -> usize {
    Arc::as_ptr(policy).addr()
}

/// The catalogue while the log is read: by number, for the records that refer to it.
#[derive(Debug, Default)]
pub(super) struct CatalogueReader {
    catalogue: Catalogue,
    policies: HashMap<u64, Arc<SharedPolicy>>,
    shared_spec: HashMap<u64, Arc<SharedSpec>>,
}

impl CatalogueReader {
    pub(super) fn policy(&mut self, number: u64, text: &[u8]) -> Result<(), serde_json::Error> {
        if let Entry::Vacant(free) = self.policies.entry(number) {
            let policy = Arc::new(serde_json::from_slice(text)?);
            free.insert(Arc::new(SharedPolicy { number, policy, text: text.into() }));
            self.catalogue.next_policy = self.catalogue.next_policy.max(number.saturating_add(1));
        }
        Ok(())
    }

    /// `None` where the policy is not known.
    pub(super) fn shared_spec(
        &mut self,
        record: &SharedSpecRecord<'_>,
        queue: Arc<str>,
        queue_index: u32,
        lanes: &mut Lanes,
    ) -> Option<()> {
        if !self.shared_spec.contains_key(&record.number) {
            let kind: Arc<str> = record.kind.into();
            let lane = record.limits.as_ref().map(|limits| {
                let kind = limits.by_kind.then(|| Arc::clone(&kind));
                lanes.numbered(Lane { limits: Arc::clone(limits), kind })
            });
            let shared_spec = Arc::new(SharedSpec {
                number: record.number,
                kind,
                queue,
                queue_index,
                priority: record.priority,
                policy: Arc::clone(self.policies.get(&record.policy)?),
                timeout: record.timeout,
                lease: record.lease,
                lane,
            });
            self.catalogue.next_shared_spec = self.catalogue.next_shared_spec.max(record.number.saturating_add(1));
            self.shared_spec.insert(record.number, shared_spec);
        }
        Some(())
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<SharedSpec>> {
        self.shared_spec.get(&number)
    }

    /// The catalogue of what the jobs that were read still have; `None` where two numbers that are in
    /// use stand for the same, which is never written.
    pub(super) fn finish(self) -> Option<Catalogue> {
        let Self { mut catalogue, policies, shared_spec } = self;
        for shared_spec in shared_spec.into_values().filter(|shared_spec| Arc::strong_count(shared_spec) > 1) {
            catalogue.numbered_shared_spec.insert(shared_spec.number, Arc::clone(&shared_spec));
            if catalogue.shared_spec.insert(shared_spec.key(), shared_spec).is_some() {
                return None;
            }
        }
        for kept in policies.into_values().filter(|kept| Arc::strong_count(kept) > 1) {
            if !catalogue.keep(&kept) {
                return None;
            }
        }
        Some(catalogue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_policy::{AttemptLimit, Backoff, Disposition, Matcher, Parts, Rule, Unmatched};

    fn policy(runs: u32) -> Arc<Policy> {
        let rules = vec![Rule { matcher: Matcher::default(), budget: None, backoff: Backoff::IMMEDIATE }];
        let (attempts, on_stop) = (AttemptLimit::AtMost(runs), Disposition::Discard);
        let parts =
            Parts { rules, attempts, max_elapsed: None, on_stop, unmatched: Unmatched::NonRetryable, delegated: None };
        Arc::new(Policy::new(parts).unwrap())
    }

    fn spec(kind: &str, policy: Arc<Policy>) -> Spec {
        Spec::new(kind, "main", Arc::from(*b"{}"), policy)
    }

    #[test]
    fn equal_shared_spec_are_kept_once_and_forgotten_with_their_last_job() {
        let (mut catalogue, mut lanes) = (Catalogue::default(), Lanes::default());
        let mut out = Vec::new();
        // Equal, and not the same in memory.
        let first = catalogue.shared_spec_of(&spec("a", policy(3)), 0, &mut lanes, &mut out).unwrap();
        let written = out.len();
        let second = catalogue.shared_spec_of(&spec("a", policy(3)), 0, &mut lanes, &mut out).unwrap();
        assert!(Arc::ptr_eq(&first, &second) && out.len() == written);
        let other = catalogue.shared_spec_of(&spec("b", policy(3)), 0, &mut lanes, &mut out).unwrap();
        assert_eq!((other.number, other.policy.number), (1, 0));
        catalogue.release(first, &mut lanes);
        assert_eq!(catalogue.shared_spec.len(), 2);
        catalogue.release(second, &mut lanes);
        assert_eq!((catalogue.shared_spec.len(), catalogue.policies.len()), (1, 1));
        catalogue.release(other, &mut lanes);
        assert!(catalogue.shared_spec.is_empty() && catalogue.numbered_shared_spec.is_empty());
        assert!(catalogue.policies.is_empty() && catalogue.by_address.is_empty());
        assert!(catalogue.numbered_policies.is_empty());
        // Numbers are not given out twice.
        let again = catalogue.shared_spec_of(&spec("a", policy(3)), 0, &mut lanes, &mut out).unwrap();
        assert_eq!((again.number, again.policy.number), (2, 1));
    }
}
