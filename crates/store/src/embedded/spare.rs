//! A thread that prepares the next segment while the present one is filled.

use super::disk::Disk;
use super::fault::{Doing, IoError};
use super::segment::Segment;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// The other end of that thread. It stops when this is dropped.
pub(super) struct Spares {
    disk: Arc<dyn Disk>,
    requests: Option<Sender<(u64, u64)>>,
    segments: Receiver<Result<Segment, IoError>>,
    /// The number of the segment that was asked for and not taken yet.
    asked: Option<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Spares {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Self {
        let (requests, orders) = channel::<(u64, u64)>();
        let (deliveries, segments) = channel();
        let workshop = Arc::clone(&disk);
        let work = move || {
            for (number, length) in orders {
                if deliveries.send(Segment::prepare(&*workshop, &dir, number, length)).is_err() {
                    return;
                }
            }
        };
        // Without the thread, segments are made when they are needed: slower, and as safe.
        let thread = thread::Builder::new().name("redrive-spare".to_owned()).spawn(work).ok();
        Self { disk, requests: Some(requests), segments, asked: None, thread }
    }

    /// Asks for a segment, unless that was done before.
    pub(super) fn ask(&mut self, number: u64, length: u64) {
        if self.asked.is_none()
            && let Some(requests) = &self.requests
            && requests.send((number, length)).is_ok()
        {
            self.asked = Some(number);
        }
    }

    /// The segment that was asked for, as soon as it is ready. `None` where none was, or where it could
    /// not be created: the caller tries once more, and gets the error.
    pub(super) fn take(&mut self) -> Option<Segment> {
        self.asked.take()?;
        self.segments.recv().ok()?.ok()
    }

    /// Removes a segment that is no longer needed.
    pub(super) fn discard(&mut self) -> Result<(), IoError> {
        if let Some(segment) = self.take() {
            self.disk.remove(&segment.path).doing("remove", &segment.path)?;
        }
        Ok(())
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has cost a spare segment and nothing else.
            let _ = thread.join();
        }
    }
}
