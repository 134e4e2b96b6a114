//! What workers do: claim, extend, settle.

use crate::embedded::store_state::StoreState;
use crate::rules;
use crate::{Claim, EventKind, Job, LeaseRef, Refusal, Settled, Settlement, State, Transition};
use redrive_policy::{Moment, Span};

impl StoreState {
    pub(in crate::embedded) fn claim(&mut self, claim: &Claim, now: Moment) -> Vec<Job> {
        let (mut claimed, mut bytes, mut is_full) = (Vec::new(), 0_usize, false);
        for queue in &claim.queues {
            let wanted = claim.count.saturating_sub(claimed.len());
            let Some(queue_index) = self.indexes.queue_index(queue) else { continue };
            let queue_index = &self.indexes.queue_indexes[queue_index as usize];
            if queue_index.paused || claim.held.contains_queue(queue) || wanted == 0 || is_full {
                continue;
            }
            let point_lost = |place: &u32| {
                let expires = self.slots.get(*place).and_then(|slot| slot.expires);
                expires.is_some_and(|expires| expires <= now)
            };
            let fits = |place: &u32| {
                let first = bytes == 0;
                bytes = bytes.saturating_add(self.slots.get(*place).map_or(0, |slot| slot.bytes(true)));
                is_full = bytes > claim.bytes && !first;
                !is_full
            };
            let line = queue_index.line().filter(|place| !point_lost(place));
            let next: Vec<u32> = line.take(wanted).take_while(fits).collect();
            for place in next {
                let Ok(job) = self.change(place, |job| rules::claim(job, claim, now)) else { continue };
                if self.runs.has_listeners() {
                    let started = Transition::new(job.clone(), EventKind::Claimed, Some(State::Available), now);
                    self.tell_change(&started);
                }
                claimed.push(job);
            }
        }
        claimed
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
