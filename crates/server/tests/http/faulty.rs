//! A store that fails on demand.

use redrive_store::testing::{Verb, Wrapper};
use redrive_store::{Memory, Store, StoreError, StoreFuture};
use std::sync::{Arc, Mutex};

/// What the store does.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "each test crate uses the part that it needs")]
pub(crate) enum Behaviour {
    Works,
    Fails(StoreError),
    Panics,
}

pub(crate) struct Faulty {
    inner: Memory,
    behaviour: Mutex<Behaviour>,
}

impl Faulty {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { inner: Memory::new(), behaviour: Mutex::new(Behaviour::Works) })
    }

    pub(crate) fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }
}

impl Wrapper for Faulty {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        _: Verb,
        call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let behaviour = self.behaviour.lock().unwrap().clone();
        match behaviour {
            Behaviour::Works => call(&self.inner),
            Behaviour::Fails(error) => Box::pin(async move { Err(error) }),
            Behaviour::Panics => panic!("the store was set to panic"),
        }
    }
}
