//! The reference model passes the suite; stores with one flaw each do not.

mod flawed;
mod flawed_runs;
mod model;
mod suite;

use redrive_store::conformance::Subject;
use redrive_store::{Memory, Store};
use std::sync::{Mutex, PoisonError};

/// The reference model as a subject: a restart changes nothing.
#[derive(Default)]
pub(crate) struct MemorySubject(Mutex<Memory>);

impl MemorySubject {
    fn store(&self) -> Memory {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn renewed(&self) -> Memory {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Memory::new();
        self.store()
    }
}

impl Subject for MemorySubject {
    fn open(&self) -> Box<dyn Store> {
        Box::new(self.renewed())
    }

    fn reopen(&self) -> Box<dyn Store> {
        Box::new(self.store().reopened())
    }
}
