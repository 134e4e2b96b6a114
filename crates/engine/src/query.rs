//! Looking, and what people do to single jobs and queues.

use crate::engine::refused;
use crate::{Engine, EngineError, other_events};
use redrive_policy::Moment;
use redrive_store::{
    EventKind, Filter, Job, JobId, Listed, Missing, Page, Queue, QueueLoad, QueueRefusal, Redrive, Refusal, Transition,
};
use std::sync::Arc;

impl Engine {
    /// One job.
    ///
    /// # Errors
    /// There is no such job, or the store did not answer.
    pub async fn job(&self, id: JobId) -> Result<Job, EngineError> {
        let job = self.store.get(id).await?.ok_or(EngineError::Refused(id, Refusal::NotFound))?;
        Ok(self.shown_job(job))
    }

    /// Those of some jobs that are stored.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn jobs(&self, ids: Vec<JobId>) -> Result<Vec<Job>, EngineError> {
        let jobs = self.store.get_many(ids).await?;
        Ok(self.shown_jobs(jobs))
    }

    /// Jobs that fit a filter, newest first.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn list(&self, filter: Filter, page: Page) -> Result<Listed, EngineError> {
        let listed = self.store.list(self.stored_filter(filter), self.stored_page(page)).await?;
        Ok(self.shown_listed(listed))
    }

    /// All queues, by name.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn queues(&self) -> Result<Vec<Queue>, EngineError> {
        let queues = self.store.queues().await?;
        Ok(queues.into_iter().map(|queue| self.shown_queue(queue)).collect())
    }

    /// All queues with what waits in them, and the time of it. All times are those of the engine's own clock.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn loads(&self) -> Result<(Vec<QueueLoad>, Moment), EngineError> {
        let now = self.clock.now();
        Ok((self.store.loads(now).await?, now))
    }

    /// Closes or opens a queue.
    ///
    /// # Errors
    /// There is no such queue and `missing` says that none is made, or the store did not answer.
    pub async fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing) -> Result<Queue, EngineError> {
        let _pausing = self.admission.lock_pauses().await;
        let was_paused = self.admission.held().contains_queue(&queue);
        if !paused {
            // Before the store is asked: where its answer gets lost, a hold that stays would keep the jobs of a queue
            // that is not paused. In a queue that is paused the store gives no job to a claim, held or not.
            self.admission.free(&queue);
        }
        let found = self.store.pause(Arc::clone(&queue), paused, missing, self.clock.now()).await?;
        let queue = found.ok_or(EngineError::NoSuchQueue(queue))?;
        match queue.paused {
            true => self.admission.hold(&queue.name),
            false => self.admission.resume(&queue.name),
        }
        if queue.paused != was_paused {
            self.tell([other_events::queue_paused(&queue.name, paused)]);
        }
        Ok(self.shown_queue(queue))
    }

    /// Removes a queue that has no jobs, paused or not.
    ///
    /// # Errors
    /// There is no such queue, it has jobs, or the store did not answer.
    pub async fn remove_queue(&self, name: Arc<str>) -> Result<Queue, EngineError> {
        let _pausing = self.admission.lock_pauses().await;
        let queue = self.store.forget_queue(Arc::clone(&name)).await?.map_err(|refusal| match refusal {
            QueueRefusal::NotFound => EngineError::NoSuchQueue(name),
            QueueRefusal::HasJobs(queue) => EngineError::QueueHasJobs(Box::new(queue)),
        })?;
        self.admission.free(&queue.name);
        // What was set for it is gone with it.
        self.recall_limits().await?;
        Ok(queue)
    }

    /// Reads back which queues are closed; to be called once after a start.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn recall_pauses(&self) -> Result<(), EngineError> {
        let _pausing = self.admission.lock_pauses().await;
        self.admission.note_paused(self.store.paused().await?);
        Ok(())
    }

    /// Cancels a job, whether or not a worker has it.
    ///
    /// # Errors
    /// There is no such job, it has ended, or the store did not answer.
    pub async fn cancel(&self, id: JobId) -> Result<Transition, EngineError> {
        let now = self.clock.now();
        let transition = refused(id, self.store.cancel(id, now).await?)?;
        Ok(self.published_to_runs(transition).await)
    }

    /// Makes a pending job available.
    ///
    /// # Errors
    /// There is no such job, it is not pending, or the store did not answer.
    pub async fn activate(&self, id: JobId) -> Result<Transition, EngineError> {
        let now = self.clock.now();
        Ok(self.published(refused(id, self.store.activate(id, now).await?)?))
    }

    /// Redrives a job from where it ended, with another specification if one is given. Without one it does
    /// not expire any more.
    ///
    /// # Errors
    /// There is no such job, it has not ended, or the store did not answer.
    pub async fn redrive(&self, id: JobId, redrive: Redrive) -> Result<Transition, EngineError> {
        let now = self.clock.now();
        let redrive = Redrive { spec: redrive.spec.map(|spec| self.stored_spec(spec)), ..redrive };
        let transition = refused(id, self.store.redrive(id, redrive, now).await?)?;
        Ok(self.published_to_runs(transition).await)
    }

    /// Removes a job that has ended.
    ///
    /// # Errors
    /// There is no such job, it has not ended, or the store did not answer.
    pub async fn remove(&self, id: JobId) -> Result<Transition, EngineError> {
        let job = refused(id, self.store.remove(id).await?)?;
        let from = Some(job.state);
        Ok(self.published(Transition::new(job, EventKind::Removed, from, self.clock.now())))
    }

    /// Publishes what happened to one job, advances its run, and answers it.
    async fn published_to_runs(&self, transition: Transition) -> Transition {
        let has_run = transition.job.parent.is_some();
        let transition = self.published(transition);
        if has_run {
            self.advance_woken().await;
        }
        transition
    }

    /// Publishes what happened to one job, and answers it.
    fn published(&self, transition: Transition) -> Transition {
        self.publish(std::iter::once(&transition));
        self.shown_transition(transition)
    }
}
