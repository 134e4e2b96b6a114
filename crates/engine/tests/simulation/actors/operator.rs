//! An operator: closes and opens queues, and does to single jobs whatever can be done to them.

use super::{timeout, told};
use crate::common::Seeded;
use crate::ledger::{Call, Pause, Redrive, Reply, Sight};
use crate::server_policies::QUEUES;
use crate::world::{Heard, World};
use redrive_engine::EngineError;
use redrive_store::{Filter, JobId, Missing, Page, Spec, State};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) async fn operator(world: Rc<World>, dice: Seeded) {
    while !world.is_closing() {
        world.idle(dice.between(3, 40)).await;
        match dice.below(20) {
            0..=4 => pause(&world, &dice).await,
            5 => list(&world, &dice).await,
            _ => {
                if let Some((account, id)) = some_job(&world, &dice) {
                    meddle(&world, &dice, account, id).await;
                }
            }
        }
    }
}

/// A job that somebody has seen.
fn some_job(world: &World, dice: &Seeded) -> Option<(usize, JobId)> {
    let ledger = world.ledger.borrow();
    let known: Vec<(usize, JobId)> =
        ledger.accounts.iter().enumerate().filter_map(|(number, account)| Some((number, account.id?))).collect();
    (!known.is_empty()).then(|| *dice.pick(&known))
}

async fn pause(world: &World, dice: &Seeded) {
    let queue = *dice.pick(&QUEUES);
    let paused = dice.permille(400);
    let (when, heard) = world
        .ask(timeout(dice), |engine| async move { engine.pause(queue.into(), paused, Missing::Create).await })
        .await;
    let surely = matches!(heard, Heard::StoreFuture(_));
    world.ledger.borrow_mut().pauses.push(Pause { queue, paused, when, surely });
}

async fn list(world: &World, dice: &Seeded) {
    let filter = Filter { state: Some(*dice.pick(&State::ALL)), ..Filter::default() };
    let page = Page::new(dice.below(3) as usize, 5);
    let (when, heard) = world.ask(timeout(dice), |engine| async move { engine.list(filter, page).await }).await;
    if let Heard::StoreFuture(listed) = heard {
        let mut ledger = world.ledger.borrow_mut();
        listed.jobs.into_iter().for_each(|job| ledger.saw(when, &Rc::new(job)));
    }
}

async fn meddle(world: &World, dice: &Seeded, account: usize, id: JobId) {
    let timeout = timeout(dice);
    match dice.below(16) {
        0..=2 => {
            let (when, heard) = world
                .ask(timeout, |engine| async move { engine.cancel(id).await.map(|cancelled| cancelled.job) })
                .await;
            let call = Call { when, told: told(heard) };
            note(world, account, |account| &mut account.cancels, call);
        }
        3 | 4 => {
            let (when, heard) = world.ask(timeout, |engine| async move { engine.activate(id).await }).await;
            let call = Call { when, told: told(heard) };
            note(world, account, |account| &mut account.activations, call);
        }
        5..=8 => redrive(world, dice, account, id).await,
        9 if world.ledger.borrow().accounts[account].resolved => {
            let (when, heard) = world.ask(timeout, |engine| async move { engine.remove(id).await }).await;
            let call = Call { when, told: told(heard) };
            note(world, account, |account| &mut account.removals, call);
        }
        _ => {
            let (when, heard) = world.ask(timeout, |engine| async move { engine.job(id).await }).await;
            let mut ledger = world.ledger.borrow_mut();
            match heard {
                Heard::StoreFuture(job) => ledger.saw(when, &Rc::new(job)),
                Heard::Refused(EngineError::Refused(..)) => {
                    ledger.accounts[account].sights.push(Sight { when, job: None });
                }
                Heard::Refused(error) => panic!("no answer to a question about one job: {error}"),
                Heard::Lost => {}
            }
        }
    }
}

fn note(world: &World, account: usize, list: impl FnOnce(&mut crate::ledger::Account) -> &mut Vec<Call>, call: Call) {
    let mut ledger = world.ledger.borrow_mut();
    ledger.told(account, call.when, &call.told);
    list(&mut ledger.accounts[account]).push(call);
}

/// Takes a job back, sometimes with another policy and another queue.
async fn redrive(world: &World, dice: &Seeded, account: usize, id: JobId) {
    let edited = dice.permille(300).then(|| {
        let mut ledger = world.ledger.borrow_mut();
        let planned_jobs = &mut ledger.accounts[account].planned_jobs;
        let edited = planned_jobs[0].edited(planned_jobs.len(), &world.policies, dice);
        planned_jobs.push(edited.clone());
        edited
    });
    let version = edited.as_ref().map(|planned| planned.version);
    let (when, heard) = world
        .ask(timeout(dice), |engine| async move {
            let spec = edited.map(|planned| {
                let own = planned.own.as_ref().map(|plan| plan.written.clone());
                let layers = &engine.settings().layers;
                let effective = layers.resolve(own, planned.kind, planned.queue).map_err(EngineError::InvalidPolicy)?;
                Ok::<_, EngineError>(Arc::new(Spec {
                    kind: planned.kind.into(),
                    queue: planned.queue.into(),
                    priority: planned.priority,
                    body: planned.body(),
                    policy: effective.policy,
                    timeout: planned.timeout,
                    lease: planned.lease,
                    expires: planned.expires,
                }))
            });
            let redrive = redrive_store::Redrive { spec: spec.transpose()?, by: "operator".into() };
            engine.redrive(id, redrive).await
        })
        .await;
    let told: Reply = told(heard);
    let mut ledger = world.ledger.borrow_mut();
    ledger.told(account, when, &told);
    ledger.accounts[account].generation.push(Redrive { when, version, told });
}
