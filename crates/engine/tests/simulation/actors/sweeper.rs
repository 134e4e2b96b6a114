//! The sweeper of the server: what is due happens, and ended jobs leave.

use super::timeout;
use crate::common::Seeded;
use crate::ledger::Still;
use crate::world::{Response, World};
use redrive_policy::Span;
use std::rc::Rc;

pub(crate) async fn sweeper(world: Rc<World>, rng: Seeded) {
    while !world.is_closing() {
        world.idle(rng.between(1, 12)).await;
        if rng.permille(25) {
            stand_still(&world, &rng).await;
        }
        let (when, _) = world.ask(timeout(&rng), |engine| async move { engine.sweep().await }).await;
        world.ledger.borrow_mut().sweeps.push(when);
        if rng.permille(30) && world.unresolved.get() == 0 {
            world.pruning.set(true);
            let (when, _) = world.ask(timeout(&rng), |engine| async move { engine.prune().await }).await;
            world.ledger.borrow_mut().prunes.push(when);
            world.pruning.set(false);
        }
    }
}

/// The server stands still for a while, and takes note of that before it sweeps again.
async fn stand_still(world: &World, rng: &Seeded) {
    let most = *rng.pick(&[10_u64, 100, 5_000]);
    let length = Span::from_secs(rng.between(1, most) as u32);
    world.advance(length);
    let (when, response) = world.ask(None, |engine| async move { engine.stood_still(length).await }).await;
    if matches!(response, Response::Answer(())) {
        world.ledger.borrow_mut().standstills.push(Still { when, length, over: None });
    }
}
