//! What many jobs have in common, kept once: kind, queue, priority, policy and limits.

use super::record::{self, TermsRecord};
use crate::{Blob, Spec, StoreError};
use redrive_policy::{Moment, Policy, Span};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
    by_text: HashMap<Arc<[u8]>, Arc<KeptPolicy>>,
    /// The same policies by where they are in memory, which stays theirs while they are kept.
    by_address: HashMap<usize, Arc<KeptPolicy>>,
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
        self.terms.insert(key, Arc::clone(&terms));
        Ok(terms)
    }

    /// A job gives up its terms. What no other job has is forgotten.
    pub(super) fn release(&mut self, terms: Arc<Terms>) {
        // One for the catalogue, one for the job: no other is ever handed out for longer than a verb.
        if Arc::strong_count(&terms) > 2 {
            return;
        }
        self.terms.remove(&terms.key());
        // One in each of the two maps, one in these terms.
        if Arc::strong_count(&terms.policy) == 3 {
            self.by_text.remove(&terms.policy.text);
            self.by_address.remove(&address(&terms.policy.policy));
        }
    }

    /// Writes everything with a number from `terms` and `policies` on; answers the next numbers.
    pub(super) fn write(&self, (terms, policies): (u64, u64), out: &mut Vec<u8>) -> (u64, u64) {
        for policy in self.by_text.values().filter(|policy| policy.number >= policies) {
            record::policy(out, policy.number, &policy.text);
        }
        for terms in self.terms.values().filter(|known| known.number >= terms) {
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
        if let Some(kept) = self.by_text.get(&text[..]) {
            return Ok(Arc::clone(kept));
        }
        let kept = KeptPolicy { number: self.next_policy, policy: Arc::clone(policy), text: text.into() };
        record::policy(out, kept.number, &kept.text);
        self.next_policy += 1;
        let kept = Arc::new(kept);
        self.by_text.insert(Arc::clone(&kept.text), Arc::clone(&kept));
        self.by_address.insert(address(&kept.policy), Arc::clone(&kept));
        Ok(kept)
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
            if catalogue.terms.insert(terms.key(), terms).is_some() {
                return None;
            }
        }
        for kept in policies.into_values().filter(|kept| Arc::strong_count(kept) > 1) {
            catalogue.by_address.insert(address(&kept.policy), Arc::clone(&kept));
            if catalogue.by_text.insert(Arc::clone(&kept.text), kept).is_some() {
                return None;
            }
        }
        Some(catalogue)
    }
}
