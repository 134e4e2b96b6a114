//! The sweeper of the server: what is due happens, and ended jobs leave.

use super::patience;
use crate::common::Seeded;
use crate::world::World;
use std::rc::Rc;

pub(crate) async fn sweeper(world: Rc<World>, dice: Seeded) {
    while !world.is_closing() {
        world.idle(dice.between(1, 12)).await;
        let (when, _) = world.ask(patience(&dice), |engine| async move { engine.sweep().await }).await;
        world.ledger.borrow_mut().sweeps.push(when);
        if dice.permille(30) && world.unresolved.get() == 0 {
            world.pruning.set(true);
            let (when, _) = world.ask(patience(&dice), |engine| async move { engine.prune().await }).await;
            world.ledger.borrow_mut().prunes.push(when);
            world.pruning.set(false);
        }
    }
}
