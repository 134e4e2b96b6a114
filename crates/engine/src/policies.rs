//! Policies that jobs and workers bring, cached by their text: jobs of one type bring the same policy again and again.

use crate::{Effective, Engine, Layers, PolicyDocument};
use redrive_policy::{Policy, Problems};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// A policy as a job or a worker brings it: its text, and how to read it where that text has not been met lately.
#[derive(Clone, Copy, Debug)]
pub struct PolicyText<'a> {
    /// The text.
    pub text: &'a str,
    /// Reads it.
    pub read: fn(&str) -> Result<PolicyDocument, Problems>,
}

/// The policies met lately.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    effective: Cache<Arc<Effective>>,
    of_workers: Cache<Arc<Policy>>,
}

/// By how a text is read, and the text.
type Cache<V> = RwLock<HashMap<(usize, String), V>>;

/// How many policies are cached; when there are more, all are dropped.
const MOST_CACHED: usize = 1_000;
/// The longest text that is cached, in bytes.
const LONGEST: usize = 4_096;

impl Engine {
    /// The policy that applies to a job of this type in this queue that brings this policy, or none.
    ///
    /// # Errors
    /// Every problem of the policy that the job brings.
    pub fn effective(&self, own: Option<PolicyText<'_>>, kind: &str, queue: &str) -> Result<Arc<Effective>, Problems> {
        let layers = &self.settings.layers;
        let key = key(layers, own, kind, queue);
        cached(&self.policies.effective, key, || {
            let own = own.map(|own| (own.read)(own.text)).transpose()?;
            Ok(Arc::new(layers.resolve(own, kind, queue)?))
        })
    }

    /// The policy that a worker brings.
    ///
    /// # Errors
    /// Every problem of it.
    pub fn worker_policy(&self, brought: PolicyText<'_>) -> Result<Arc<Policy>, Problems> {
        let key = (reader(Some(brought)), brought.text.to_owned());
        cached(&self.policies.of_workers, key, || {
            let PolicyDocument { dialect, value } = (brought.read)(brought.text)?;
            Ok(Arc::new(dialect.read(&value)?.policy))
        })
    }
}

/// Two ways of reading may share an address only where they do the same.
fn reader(text: Option<PolicyText<'_>>) -> usize {
    text.map_or(0, |text| text.read as usize)
}

/// Everything that the effective policy depends on. Types and queues count only where a layer names them, so that
/// jobs of many types share one entry. They count beside a job's own policy too: it may leave its timing to them.
fn key(layers: &Layers, own: Option<PolicyText<'_>>, kind: &str, queue: &str) -> (usize, String) {
    let text = own.map_or("", |own| own.text);
    let kind = layers.name_of_kind(kind).unwrap_or_default();
    let named = layers.queues.contains_key(queue) || layers.queue_caps.contains_key(queue);
    let queue = if named { queue } else { "" };
    (reader(own), [text, kind, queue].join("\0"))
}

fn cached<V: Clone>(
    cache: &Cache<V>,
    key: (usize, String),
    make: impl FnOnce() -> Result<V, Problems>,
) -> Result<V, Problems> {
    if let Some(known) = cache.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(known.clone());
    }
    let value = make()?;
    if key.1.len() <= LONGEST {
        insert(&mut cache.write().unwrap_or_else(PoisonError::into_inner), key, value.clone());
    }
    Ok(value)
}

fn insert<K: Eq + Hash, V>(cache: &mut HashMap<K, V>, key: K, value: V) {
    if cache.len() >= MOST_CACHED {
        cache.clear();
    }
    cache.insert(key, value);
}
