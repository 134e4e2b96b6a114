//! What workers do: claim, extend, settle.

use super::limited::Budget;
use crate::embedded::store_state::StoreState;
use crate::rules;
use crate::{Claim, Claimed, EventKind, Job, LeaseRef, Refusal, Settled, Settlement, State, Transition};
use redrive_policy::{Moment, Span};

impl StoreState {
    pub(in crate::embedded) fn claim(&mut self, claim: &Claim, now: Moment) -> Claimed {
        let (mut claimed, mut budget) = (Claimed::default(), Budget { bytes: 0, is_full: false });
        for queue in &claim.queues {
            let wanted = claim.count.saturating_sub(claimed.jobs.len());
            let Some(place) = self.indexes.queue_index(queue) else { continue };
            let queue_index = &self.indexes.queue_indexes[place as usize];
            if queue_index.paused || claim.held.contains_queue(queue) || wanted == 0 || budget.is_full {
                continue;
            }
            if self.is_limited(place) {
                self.claim_limited(place, claim, &mut budget, &mut claimed, now);
                continue;
            }
            let point_lost = |place: &u32| {
                let expires = self.slots.get(*place).and_then(|slot| slot.expires);
                expires.is_some_and(|expires| expires <= now)
            };
            let bytes = |place: &u32| self.slots.get(*place).map_or(0, |slot| slot.bytes(true));
            let fits = |place: &u32| budget.takes(bytes(place), claim.bytes);
            let line = queue_index.line().filter(|place| !point_lost(place));
            let next: Vec<u32> = line.take(wanted).take_while(fits).collect();
            for place in next {
                claimed.jobs.extend(self.claim_one(place, claim, now));
            }
        }
        claimed
    }

    /// Claims one job, and tells those that listen.
    pub(super) fn claim_one(&mut self, place: u32, claim: &Claim, now: Moment) -> Result<Job, Refusal> {
        let job = self.change(place, |job| rules::claim(job, claim, now))?;
        if self.runs.has_listeners() {
            self.tell_change(&Transition::new(job.clone(), EventKind::Claimed, Some(State::Available), now));
        }
        Ok(job)
    }

    pub(in crate::embedded) fn extend(
        &mut self,
        lease_ref: &LeaseRef,
        span: Option<Span>,
        now: Moment,
    ) -> Result<Job, Refusal> {
        let place = self.find(lease_ref.id).ok_or(Refusal::NotFound)?;
        self.change(place, |job| rules::extend(job, &lease_ref.token, span, now))
    }

    pub(in crate::embedded) fn settle(&mut self, settlement: &Settlement, now: Moment) -> Result<Settled, Refusal> {
        let place = self.find(settlement.lease_ref.id).ok_or(Refusal::NotFound)?;
        let settled = self.change(place, |job| rules::settle(job, settlement, now))?;
        settled.transition().into_iter().for_each(|transition| self.learn(transition));
        Ok(settled)
    }
}
