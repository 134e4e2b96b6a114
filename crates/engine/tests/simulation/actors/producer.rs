//! A producer: it enqueues jobs, and enqueues them again where it got no answer.

use super::timeout;
use crate::common::Seeded;
use crate::ledger::{Account, Submit, Submitted, When};
use crate::planned_job::PlannedJob;
use crate::world::{Response, World};
use redrive_engine::EngineError;
use redrive_store::Enqueued;
use std::rc::Rc;

pub(crate) async fn producer(world: Rc<World>, rng: Seeded) {
    loop {
        world.idle(rng.between(1, 60)).await;
        if world.is_closing() || world.ledger.borrow().accounts.len() >= world.most_jobs {
            return;
        }
        // What is pruned while it is enqueued again would come back as another job.
        while world.pruning.get() {
            world.idle(1).await;
        }
        world.unresolved.set(world.unresolved.get() + 1);
        let planned_jobs = new_planned_jobs(&world, &rng);
        hand_in(&world, &planned_jobs, &rng).await;
        let mut ledger = world.ledger.borrow_mut();
        for planned in &planned_jobs {
            ledger.accounts[planned.account].resolved = true;
        }
        world.unresolved.set(world.unresolved.get() - 1);
    }
}

/// One to three jobs, of which each can be repeated, or a single one that cannot.
fn new_planned_jobs(world: &World, rng: &Seeded) -> Vec<PlannedJob> {
    let mut ledger = world.ledger.borrow_mut();
    let first = ledger.accounts.len();
    let planned = |account| PlannedJob::random(account, &world.policies, world.now(), rng);
    let mut planned_jobs: Vec<PlannedJob> = (first..first + rng.between(1, 3) as usize).map(planned).collect();
    if let Some(position) = planned_jobs.iter().position(|planned| !planned.repeatable()) {
        planned_jobs.truncate(position.max(1));
    }
    ledger.accounts.extend(planned_jobs.iter().cloned().map(Account::new));
    ledger.batches.push(planned_jobs.iter().map(|planned| planned.account).collect());
    planned_jobs
}

async fn hand_in(world: &World, planned_jobs: &[PlannedJob], rng: &Seeded) {
    loop {
        let submissions = planned_jobs.iter().map(PlannedJob::submission).collect();
        let (when, response) = world.ask(timeout(rng), |engine| async move { engine.submit(submissions).await }).await;
        let heard_back = !matches!(response, Response::Lost);
        note(world, planned_jobs, when, response);
        let repeatable = planned_jobs.iter().all(PlannedJob::repeatable);
        if heard_back || !repeatable || world.is_closing() || rng.permille(100) {
            return;
        }
        world.idle(rng.between(1, 30)).await;
    }
}

fn note(world: &World, planned_jobs: &[PlannedJob], when: When, response: Response<Vec<Enqueued>>) {
    let mut ledger = world.ledger.borrow_mut();
    let mut submitted = |account: usize, outcome| ledger.accounts[account].submits.push(Submit { when, outcome });
    match response {
        Response::Answer(answers) => {
            let mut jobs = Vec::new();
            for (planned, answer) in planned_jobs.iter().zip(answers) {
                let outcome = if answer.is_new() { Submitted::Created } else { Submitted::Existing };
                let job = answer.into_job();
                submitted(planned.account, outcome);
                jobs.push(Rc::new(job));
            }
            jobs.iter().for_each(|job| ledger.observed(when, job));
        }
        // The batch is refused whole because it was kept before.
        Response::Refused(EngineError::Duplicate(_)) => {
            planned_jobs.iter().for_each(|planned| submitted(planned.account, Submitted::Duplicate));
        }
        Response::Refused(error) => {
            let message = format!("a good batch is refused: {error}");
            ledger.violation("kept", Some(planned_jobs[0].account), message);
        }
        Response::Lost => planned_jobs.iter().for_each(|planned| submitted(planned.account, Submitted::Lost)),
    }
}
