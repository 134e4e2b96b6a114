//! An operator: closes and opens queues, and does to single jobs whatever can be done to them.

use super::{reply_to, timeout};
use crate::common::Seeded;
use crate::ledger::{Call, Observation, Pause, Redrive};
use crate::server_policies::QUEUES;
use crate::world::{Response, World};
use redrive_engine::EngineError;
use redrive_store::{Filter, JobId, Missing, Page, Spec, State};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) async fn operator(world: Rc<World>, rng: Seeded) {
    while !world.is_closing() {
        world.idle(rng.between(3, 40)).await;
        match rng.below(20) {
            0..=4 => pause(&world, &rng).await,
            5 => list(&world, &rng).await,
            _ => {
                if let Some((account, id)) = some_job(&world, &rng) {
                    operate(&world, &rng, account, id).await;
                }
            }
        }
    }
}

/// A job that somebody has seen.
fn some_job(world: &World, rng: &Seeded) -> Option<(usize, JobId)> {
    let ledger = world.ledger.borrow();
    let known: Vec<(usize, JobId)> =
        ledger.accounts.iter().enumerate().filter_map(|(number, account)| Some((number, account.id?))).collect();
    (!known.is_empty()).then(|| *rng.pick(&known))
}

async fn pause(world: &World, rng: &Seeded) {
    let queue = *rng.pick(&QUEUES);
    let paused = rng.permille(400);
    let (when, response) = world
        .ask(timeout(rng), |engine| async move { engine.pause(queue.into(), paused, Missing::Create).await })
        .await;
    let surely = matches!(response, Response::Answer(_));
    world.ledger.borrow_mut().pauses.push(Pause { queue, paused, when, surely });
}

async fn list(world: &World, rng: &Seeded) {
    let filter = Filter { state: Some(*rng.pick(&State::ALL)), ..Filter::default() };
    let page = Page::new(rng.below(3) as usize, 5);
    let (when, response) = world.ask(timeout(rng), |engine| async move { engine.list(filter, page).await }).await;
    if let Response::Answer(listed) = response {
        let mut ledger = world.ledger.borrow_mut();
        listed.jobs.into_iter().for_each(|job| ledger.observed(when, &Rc::new(job)));
    }
}

async fn operate(world: &World, rng: &Seeded, account: usize, id: JobId) {
    let timeout = timeout(rng);
    match rng.below(16) {
        0..=2 => {
            let (when, response) = world.ask(timeout, |engine| async move { engine.cancel(id).await }).await;
            let call = Call { when, reply: reply_to(world, account, when, response) };
            note(world, account, |account| &mut account.cancels, call);
        }
        3 | 4 => {
            let (when, response) = world.ask(timeout, |engine| async move { engine.activate(id).await }).await;
            let call = Call { when, reply: reply_to(world, account, when, response) };
            note(world, account, |account| &mut account.activations, call);
        }
        5..=8 => redrive(world, rng, account, id).await,
        9 if world.ledger.borrow().accounts[account].resolved => {
            let (when, response) = world.ask(timeout, |engine| async move { engine.remove(id).await }).await;
            let call = Call { when, reply: reply_to(world, account, when, response) };
            note(world, account, |account| &mut account.removals, call);
        }
        _ => {
            let (when, response) = world.ask(timeout, |engine| async move { engine.job(id).await }).await;
            let mut ledger = world.ledger.borrow_mut();
            match response {
                Response::Answer(job) => ledger.observed(when, &Rc::new(job)),
                Response::Refused(EngineError::Refused(..)) => {
                    ledger.accounts[account].observations.push(Observation { when, job: None });
                }
                Response::Refused(error) => panic!("no answer to a question about one job: {error}"),
                Response::Lost => {}
            }
        }
    }
}

fn note(world: &World, account: usize, list: impl FnOnce(&mut crate::ledger::Account) -> &mut Vec<Call>, call: Call) {
    let mut ledger = world.ledger.borrow_mut();
    ledger.replied(account, call.when, &call.reply);
    list(&mut ledger.accounts[account]).push(call);
}

/// Redrives a job, sometimes with another policy and another queue.
async fn redrive(world: &World, rng: &Seeded, account: usize, id: JobId) {
    let edited = rng.permille(300).then(|| {
        let mut ledger = world.ledger.borrow_mut();
        let planned_jobs = &mut ledger.accounts[account].planned_jobs;
        let edited = planned_jobs[0].edited(planned_jobs.len(), &world.policies, rng);
        planned_jobs.push(edited.clone());
        edited
    });
    let version = edited.as_ref().map(|planned| planned.version);
    let (when, response) = world
        .ask(timeout(rng), |engine| async move {
            let spec = edited.map(|planned| {
                let own = planned.own.as_ref().map(|plan| plan.written.clone());
                let layers = &engine.settings().layers;
                let effective = layers.resolve(own, planned.kind, planned.queue).map_err(EngineError::InvalidPolicy)?;
                Ok::<_, EngineError>(Arc::new(Spec {
                    limits: None,
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
            let redrive = redrive_store::Redrive { spec: spec.transpose()?, unique: None, by: "operator".into() };
            engine.redrive(id, redrive).await
        })
        .await;
    let reply = reply_to(world, account, when, response);
    let mut ledger = world.ledger.borrow_mut();
    ledger.replied(account, when, &reply);
    ledger.accounts[account].generation.push(Redrive { when, version, reply });
}
