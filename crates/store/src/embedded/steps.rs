//! Verbs that take many steps, and let others have the lock between them.

use super::store::Embedded;
use super::verbs::list::Scan;
use super::waiter::{CommitWaiter, Durable};
use crate::{Filter, Listed, Page, StoreError, StoreFuture, end_step};
use std::sync::Arc;

/// How often the work between two steps looks whether the lock is still wanted. It goes on then, so that no number of
/// other verbs can hold it up for ever.
const ATTEMPTS: usize = 100;

impl Embedded {
    /// Takes the first step of a list immediately, and the others when the future is polled.
    pub(super) fn list_in_steps(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        let begun = self.begin(filter, page);
        Box::pin(async move {
            let (mut scan, mut waiter) = begun?;
            while !scan.is_over() {
                self.give_way().await;
                waiter = self.go_on(&mut scan)?;
            }
            Durable::new(scan.listed(), waiter).await
        })
    }

    fn begin(&self, filter: Filter, page: Page) -> Result<(Scan, Arc<CommitWaiter>), StoreError> {
        let mut scan = self.shared.lock().store_state.begin_list(filter, page, self.options.list_most_jobs);
        let waiter = self.go_on(&mut scan)?;
        Ok((scan, waiter))
    }

    /// One step of a list, and what an answer that has seen it must wait for.
    fn go_on(&self, scan: &mut Scan) -> Result<Arc<CommitWaiter>, StoreError> {
        let mut core = self.shared.lock();
        if let Some(why) = core.stopped() {
            return Err(why.clone());
        }
        core.store_state.go_on(scan, self.options.list_step_jobs);
        Ok(core.waiter())
    }

    /// Lets other work of this thread go on, and other threads have the lock.
    async fn give_way(&self) {
        for _ in 0..ATTEMPTS {
            end_step().await;
            if !self.shared.is_wanted() {
                return;
            }
        }
    }
}
