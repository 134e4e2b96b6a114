//! Ending runs.

use crate::decide::{self, FailureReport, KeyHold};
use crate::engine::refused;
use crate::wall::shown_settled;
use crate::{Engine, EngineError};
use redrive_policy::Span;
use redrive_store::{AttemptOutcome, Blob, Job, LeaseRef, Settled, Settlement};

/// How a run ended, as a worker reports it.
#[derive(Clone, Debug)]
pub enum Ending {
    /// It succeeded, with what the handler returned.
    Done(Option<Blob>),
    /// It failed.
    Failed(FailureReport),
    /// It was released unfinished, to run again after this time. That does not count as an attempt.
    Released(Span),
}

/// The hold that a report asks for, with its position, and why.
fn hold_of(place: usize, ending: &Ending) -> Option<(usize, KeyHold, String)> {
    let Ending::Failed(report) = ending else { return None };
    Some((place, report.hold.clone()?, report.types.first().cloned().unwrap_or_default()))
}

impl Engine {
    /// Ends runs; each is answered separately. Success that is reported again with the same token changes nothing.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn settle(
        &self,
        endings: Vec<(LeaseRef, Ending)>,
    ) -> Result<Vec<Result<Settled, EngineError>>, EngineError> {
        let now = self.clock.now();
        let ids: Vec<_> = endings.iter().map(|(lease_ref, _)| lease_ref.id).collect();
        let holds: Vec<_> = (0..).zip(&endings).filter_map(|(place, (_, ending))| hold_of(place, ending)).collect();
        let settlement = |(lease_ref, ending)| {
            let report = match ending {
                Ending::Done(result) => AttemptOutcome::Done(result),
                Ending::Released(delay) => AttemptOutcome::Released { delay, most: self.settings.most_releases },
                Ending::Failed(report) => {
                    let draw = self.randomness.draw();
                    AttemptOutcome::Failed(Box::new(move |job: &Job| decide::reported(job, &report, now, draw)))
                }
            };
            Settlement { lease_ref, report }
        };
        let answers = self.store.settle(endings.into_iter().map(settlement).collect(), now).await?;
        self.publish(answers.iter().flatten().filter_map(Settled::transition));
        if answers.iter().flatten().any(|settled| settled.job().parent.is_some()) {
            self.advance_woken().await;
        }
        for (place, hold, reason) in holds {
            if let Some(Ok(settled)) = answers.get(place) {
                self.hold_key_of(settled.job(), hold, &reason).await;
            }
        }
        let ahead_us = self.wall().ahead_us;
        let shown = |(id, answer)| Ok(shown_settled(refused(id, answer)?, ahead_us));
        Ok(ids.into_iter().zip(answers).map(shown).collect())
    }
}
