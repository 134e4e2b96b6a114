//! A producer: it hands in jobs, and hands them in again where it got no answer.

use super::timeout;
use crate::common::Seeded;
use crate::ledger::{Account, Submit, Submitted, When};
use crate::order::Order;
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
        let orders = new_orders(&world, &dice);
        hand_in(&world, &orders, &dice).await;
        let mut ledger = world.ledger.borrow_mut();
        for order in &orders {
            ledger.accounts[order.account].resolved = true;
        }
        world.unresolved.set(world.unresolved.get() - 1);
    }
}

/// One to three jobs, of which each can be repeated, or a single one that cannot.
fn new_orders(world: &World, dice: &Seeded) -> Vec<Order> {
    let mut ledger = world.ledger.borrow_mut();
    let first = ledger.accounts.len();
    let order = |account| Order::random(account, &world.house, world.now(), dice);
    let mut orders: Vec<Order> = (first..first + dice.between(1, 3) as usize).map(order).collect();
    if let Some(position) = orders.iter().position(|order| !order.repeatable()) {
        orders.truncate(position.max(1));
    }
    ledger.accounts.extend(orders.iter().cloned().map(Account::new));
    ledger.batches.push(orders.iter().map(|order| order.account).collect());
    orders
}

async fn hand_in(world: &World, orders: &[Order], dice: &Seeded) {
    loop {
        let submissions = orders.iter().map(Order::submission).collect();
        let (when, heard) = world
            .ask(
                timeout(dice),
                |engine| async move { engine.submit(submissions, |index, _| orders[index].body()).await },
            )
            .await;
        let heard_back = !matches!(heard, Heard::Lost);
        note(world, orders, when, heard);
        let repeatable = orders.iter().all(Order::repeatable);
        if heard_back || !repeatable || world.is_closing() || dice.permille(100) {
            return;
        }
        world.idle(dice.between(1, 30)).await;
    }
}

fn note(world: &World, orders: &[Order], when: When, heard: Heard<Vec<Enqueued>>) {
    let mut ledger = world.ledger.borrow_mut();
    let mut submitted = |account: usize, told| ledger.accounts[account].submits.push(Submit { when, told });
    match heard {
        Heard::StoreFuture(answers) => {
            let mut jobs = Vec::new();
            for (order, answer) in orders.iter().zip(answers) {
                let (told, job) = match answer {
                    Enqueued::Created(job) => (Submitted::Created, job),
                    Enqueued::Existing(job) => (Submitted::Existing, job),
                };
                submitted(order.account, told);
                jobs.push(Rc::new(job));
            }
            jobs.iter().for_each(|job| ledger.saw(when, job));
        }
        // The batch is refused whole because it was kept before.
        Heard::Refused(EngineError::Duplicate(_)) => {
            orders.iter().for_each(|order| submitted(order.account, Submitted::Duplicate));
        }
        Heard::Refused(error) => {
            let told = format!("a good batch is refused: {error}");
            ledger.breach("kept", Some(orders[0].account), told);
        }
        Heard::Lost => orders.iter().for_each(|order| submitted(order.account, Submitted::Lost)),
    }
}
