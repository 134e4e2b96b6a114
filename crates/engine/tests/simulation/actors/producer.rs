//! A producer: it hands in jobs, and hands them in again where it got no answer.

use super::timeout;
use crate::common::Seeded;
use crate::ledger::{Account, Submit, Submitted, When};
use crate::planned_job::PlannedJob;
use crate::world::{Heard, World};
use redrive_engine::EngineError;
use redrive_store::Enqueued;
use std::rc::Rc;

pub(crate) async fn producer(world: Rc<World>, dice: Seeded) {
    loop {
        world.idle(dice.between(1, 60)).await;
        if world.is_closing() || world.ledger.borrow().accounts.len() >= world.most_jobs {
            return;
        }
        // What is pruned while it is handed in again would come back as another job.
        while world.pruning.get() {
            world.idle(1).await;
        }
        world.unresolved.set(world.unresolved.get() + 1);
        let planned_jobs = new_planned_jobs(&world, &dice);
        hand_in(&world, &planned_jobs, &dice).await;
        let mut ledger = world.ledger.borrow_mut();
        for planned in &planned_jobs {
            ledger.accounts[planned.account].resolved = true;
        }
        world.unresolved.set(world.unresolved.get() - 1);
    }
}

/// One to three jobs, of which each can be repeated, or a single one that cannot.
fn new_planned_jobs(world: &World, dice: &Seeded) -> Vec<PlannedJob> {
    let mut ledger = world.ledger.borrow_mut();
    let first = ledger.accounts.len();
    let planned = |account| PlannedJob::random(account, &world.policies, world.now(), dice);
    let mut planned_jobs: Vec<PlannedJob> = (first..first + dice.between(1, 3) as usize).map(planned).collect();
    if let Some(position) = planned_jobs.iter().position(|planned| !planned.repeatable()) {
        planned_jobs.truncate(position.max(1));
    }
    ledger.accounts.extend(planned_jobs.iter().cloned().map(Account::new));
    ledger.batches.push(planned_jobs.iter().map(|planned| planned.account).collect());
    planned_jobs
}

async fn hand_in(world: &World, planned_jobs: &[PlannedJob], dice: &Seeded) {
    loop {
        let submissions = planned_jobs.iter().map(PlannedJob::submission).collect();
        let (when, heard) = world.ask(timeout(dice), |engine| async move { engine.submit(submissions).await }).await;
        let heard_back = !matches!(heard, Heard::Lost);
        note(world, planned_jobs, when, heard);
        let repeatable = planned_jobs.iter().all(PlannedJob::repeatable);
        if heard_back || !repeatable || world.is_closing() || dice.permille(100) {
            return;
        }
        world.idle(dice.between(1, 30)).await;
    }
}

fn note(world: &World, planned_jobs: &[PlannedJob], when: When, heard: Heard<Vec<Enqueued>>) {
    let mut ledger = world.ledger.borrow_mut();
    let mut submitted = |account: usize, told| ledger.accounts[account].submits.push(Submit { when, told });
    match heard {
        Heard::StoreFuture(answers) => {
            let mut jobs = Vec::new();
            for (planned, answer) in planned_jobs.iter().zip(answers) {
                let (told, job) = match answer {
                    Enqueued::Created(job) => (Submitted::Created, job),
                    Enqueued::Existing(job) => (Submitted::Existing, job),
                };
                submitted(planned.account, told);
                jobs.push(Rc::new(job));
            }
            jobs.iter().for_each(|job| ledger.saw(when, job));
        }
        // The batch is refused whole because it was kept before.
        Heard::Refused(EngineError::Duplicate(_)) => {
            planned_jobs.iter().for_each(|planned| submitted(planned.account, Submitted::Duplicate));
        }
        Heard::Refused(error) => {
            let told = format!("a good batch is refused: {error}");
            ledger.breach("kept", Some(planned_jobs[0].account), told);
        }
        Heard::Lost => planned_jobs.iter().for_each(|planned| submitted(planned.account, Submitted::Lost)),
    }
}
