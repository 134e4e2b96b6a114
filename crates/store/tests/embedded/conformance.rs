//! The suite, on a disk in memory with everything tiny, and on the real one as people use it.

use crate::scratch::Scratch;
use crate::sim::SimDisk;
use crate::subject::{TINY, open};
use redrive_store::Store;
use redrive_store::conformance::Subject;
use redrive_store::embedded::{Embedded, Options};
use std::sync::Mutex;

#[derive(Default)]
pub(crate) struct InMemory(Mutex<SimDisk>);

impl Subject for InMemory {
    fn open(&self) -> Box<dyn Store> {
        *self.0.lock().unwrap() = SimDisk::default();
        self.reopen()
    }

    fn reopen(&self) -> Box<dyn Store> {
        let (store, opened) =
            open(&self.0.lock().unwrap(), Options { list_step_jobs: 2, list_most_jobs: 5, ..TINY }).unwrap();
        assert!(opened.clean && opened.repairs.is_empty(), "{opened:?}");
        Box::new(store)
    }
}

#[derive(Default)]
struct OnDisk(Mutex<Option<Scratch>>);

impl Subject for OnDisk {
    fn open(&self) -> Box<dyn Store> {
        *self.0.lock().unwrap() = Some(Scratch::new());
        self.reopen()
    }

    fn reopen(&self) -> Box<dyn Store> {
        let scratch = self.0.lock().unwrap();
        let (store, opened) = Embedded::open(scratch.as_ref().unwrap().path(), Options::default()).unwrap();
        assert!(opened.clean && opened.repairs.is_empty(), "{opened:?}");
        Box::new(store)
    }
}

mod in_memory {
    redrive_store::conformance_tests!(super::InMemory::default());
}

mod on_disk {
    redrive_store::conformance_tests!(super::OnDisk::default());
}
