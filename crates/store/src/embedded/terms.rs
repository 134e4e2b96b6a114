//! What many jobs have in common, kept once: kind, queue, priority, policy and limits.

use super::record::{self, TermsRecord};
use crate::{Blob, Spec, StoreError};
use redrive_policy::{Moment, Policy, Span};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A policy that jobs refer to.
#[derive(Debug)]
pub(super) struct KeptPolicy {
    number: u64,
    policy: Arc<Policy>,
    /// Its JSON form, by which equal policies find each other.
    text: Arc<[u8]>,
}

/// Terms that jobs refer to.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) number: u64,
    pub(super) kind: Arc<str>,
    pub(super) queue: Arc<str>,
    /// The place of the queue among the store's queues.
    pub(super) lane: u32,
    pub(super) priority: i32,
    policy: Arc<KeptPolicy>,
    timeout: Option<Span>,
    lease: Option<Span>,
}

impl Terms {
    /// Together with what is said about one job alone.
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
        }
    }

    fn record(&self) -> TermsRecord<'_> {
        TermsRecord {
            number: self.number,
            kind: &self.kind,
            queue: &self.queue,
            priority: self.priority,
            policy: self.policy.number,
            timeout: self.timeout,
            lease: self.lease,
        }
    }

    fn key(&self) -> Key {
        Key {
            kind: Arc::clone(&self.kind),
            queue: Arc::clone(&self.queue),
            priority: self.priority,
            policy: self.policy.number,
            spans: [self.timeout, self.lease].map(bits),
        }
    }
}

/// By what equal terms find each other.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: Arc<str>,
    queue: Arc<str>,
    priority: i32,
    policy: u64,
    spans: [Option<u64>; 2],
}

fn bits(span: Option<Span>) -> Option<u64> {
    span.map(|span| span.ms().to_bits())
}

/// All terms and policies that some job has.
///
/// Numbers are never given out twice, so that a number in the log means the same wherever reading
/// starts.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    terms: HashMap<Key, Arc<Terms>>,
    /// The same by number.
    numbered_terms: BTreeMap<u64, Arc<Terms>>,
    policies: HashMap<Arc<[u8]>, Arc<KeptPolicy>>,
    /// The same by where they are in memory, which stays theirs while they are kept.
    by_address: HashMap<usize, Arc<KeptPolicy>>,
    /// The same by number.
    numbered_policies: BTreeMap<u64, Arc<KeptPolicy>>,
    next_terms: u64,
    next_policy: u64,
}

impl Catalogue {
    /// The terms of a job; new ones are written to `out`.
    pub(super) fn terms_of(&mut self, spec: &Spec, lane: u32, out: &mut Vec<u8>) -> Result<Arc<Terms>, StoreError> {
        let policy = self.policy(&spec.policy, out)?;
        let key = Key {
            kind: Arc::clone(&spec.kind),
            queue: Arc::clone(&spec.queue),
            priority: spec.priority,
            policy: policy.number,
            spans: [spec.timeout, spec.lease].map(bits),
        };
        if let Some(terms) = self.terms.get(&key) {
            return Ok(Arc::clone(terms));
        }
        let terms = Arc::new(Terms {
            number: self.next_terms,
            kind: Arc::clone(&spec.kind),
            queue: Arc::clone(&spec.queue),
            lane,
            priority: spec.priority,
            policy,
            timeout: spec.timeout,
            lease: spec.lease,
        });
        self.next_terms += 1;
        record::terms(out, &terms.record());
        self.numbered_terms.insert(terms.number, Arc::clone(&terms));
        self.terms.insert(key, Arc::clone(&terms));
        Ok(terms)
    }

    /// A job gives up its terms. What no other job has is forgotten.
    pub(super) fn release(&mut self, terms: Arc<Terms>) {
        // Two in the catalogue, one for the job: no other is ever handed out for longer than a verb.
        if Arc::strong_count(&terms) > 3 {
            return;
        }
        self.terms.remove(&terms.key());
        self.numbered_terms.remove(&terms.number);
        // Three in the catalogue, one in these terms.
        let policy = &terms.policy;
        if Arc::strong_count(policy) == 4 {
            self.policies.remove(&policy.text);
            self.by_address.remove(&address(&policy.policy));
            self.numbered_policies.remove(&policy.number);
        }
    }

    /// Writes everything with a number from `terms` and `policies` on; answers the next numbers.
    pub(super) fn write(&self, (terms, policies): (u64, u64), out: &mut Vec<u8>) -> (u64, u64) {
        for (number, policy) in self.numbered_policies.range(policies..) {
            record::policy(out, *number, &policy.text);
        }
        for terms in self.numbered_terms.range(terms..).map(|(_, terms)| terms) {
            record::terms(out, &terms.record());
        }
        (self.next_terms, self.next_policy)
    }

    fn policy(&mut self, policy: &Arc<Policy>, out: &mut Vec<u8>) -> Result<Arc<KeptPolicy>, StoreError> {
        if let Some(kept) = self.by_address.get(&address(policy)) {
            return Ok(Arc::clone(kept));
        }
        let text = serde_json::to_vec(&**policy)
            .map_err(|error| StoreError::Broken(format!("a policy cannot be written as JSON: {error}")))?;
        if let Some(kept) = self.policies.get(&text[..]) {
            return Ok(Arc::clone(kept));
        }
        let kept = KeptPolicy { number: self.next_policy, policy: Arc::clone(policy), text: text.into() };
        record::policy(out, kept.number, &kept.text);
        self.next_policy += 1;
        let kept = Arc::new(kept);
        self.keep(&kept);
        Ok(kept)
    }

    /// False where there is an equal one under another number.
    fn keep(&mut self, kept: &Arc<KeptPolicy>) -> bool {
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
    policies: HashMap<u64, Arc<KeptPolicy>>,
    terms: HashMap<u64, Arc<Terms>>,
}

impl CatalogueReader {
    pub(super) fn policy(&mut self, number: u64, text: &[u8]) -> Result<(), serde_json::Error> {
        if let Entry::Vacant(free) = self.policies.entry(number) {
            let policy = Arc::new(serde_json::from_slice(text)?);
            free.insert(Arc::new(KeptPolicy { number, policy, text: text.into() }));
            self.catalogue.next_policy = self.catalogue.next_policy.max(number.saturating_add(1));
        }
        Ok(())
    }

    /// `None` where the policy is not known.
    pub(super) fn terms(&mut self, record: &TermsRecord<'_>, queue: Arc<str>, lane: u32) -> Option<()> {
        if !self.terms.contains_key(&record.number) {
            let terms = Arc::new(Terms {
                number: record.number,
                kind: record.kind.into(),
                queue,
                lane,
                priority: record.priority,
                policy: Arc::clone(self.policies.get(&record.policy)?),
                timeout: record.timeout,
                lease: record.lease,
            });
            self.catalogue.next_terms = self.catalogue.next_terms.max(record.number.saturating_add(1));
            self.terms.insert(record.number, terms);
        }
        Some(())
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<Terms>> {
        self.terms.get(&number)
    }

    /// The catalogue of what the jobs that were read still have; `None` where two numbers that are in
    /// use stand for the same, which is never written.
    pub(super) fn finish(self) -> Option<Catalogue> {
        let Self { mut catalogue, policies, terms } = self;
        for terms in terms.into_values().filter(|terms| Arc::strong_count(terms) > 1) {
            catalogue.numbered_terms.insert(terms.number, Arc::clone(&terms));
            if catalogue.terms.insert(terms.key(), terms).is_some() {
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
        let (kind, queue, body) = (kind.into(), "main".into(), Arc::from(*b"{}"));
        Spec { kind, queue, priority: 0, body, policy, timeout: None, lease: None, expires: None }
    }

    #[test]
    fn equal_terms_are_kept_once_and_forgotten_with_their_last_job() {
        let mut catalogue = Catalogue::default();
        let mut out = Vec::new();
        // Equal, and not the same in memory.
        let first = catalogue.terms_of(&spec("a", policy(3)), 0, &mut out).unwrap();
        let written = out.len();
        let second = catalogue.terms_of(&spec("a", policy(3)), 0, &mut out).unwrap();
        assert!(Arc::ptr_eq(&first, &second) && out.len() == written);
        let other = catalogue.terms_of(&spec("b", policy(3)), 0, &mut out).unwrap();
        assert_eq!((other.number, other.policy.number), (1, 0));
        catalogue.release(first);
        assert_eq!(catalogue.terms.len(), 2);
        catalogue.release(second);
        assert_eq!((catalogue.terms.len(), catalogue.policies.len()), (1, 1));
        catalogue.release(other);
        assert!(catalogue.terms.is_empty() && catalogue.numbered_terms.is_empty());
        assert!(catalogue.policies.is_empty() && catalogue.by_address.is_empty());
        assert!(catalogue.numbered_policies.is_empty());
        // Numbers are not given out twice.
        let again = catalogue.terms_of(&spec("a", policy(3)), 0, &mut out).unwrap();
        assert_eq!((again.number, again.policy.number), (2, 1));
    }
}
