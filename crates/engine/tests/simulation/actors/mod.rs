//! Those who use the server, each a task with dice of its own.

mod operator;
mod producer;
mod sweeper;
mod worker;

pub(crate) use operator::operator;
pub(crate) use producer::producer;
pub(crate) use sweeper::sweeper;
pub(crate) use worker::{Behaviour, Worker};

use super::common::Seeded;
use super::ledger::{Reply, When};
use super::world::{Response, World};
use redrive_engine::EngineError;
use redrive_store::Transition;
use std::rc::Rc;

/// How long somebody waits for an answer: mostly as long as it takes.
fn timeout(rng: &Seeded) -> Option<u64> {
    rng.permille(60).then(|| rng.between(1, 12))
}

/// The reply about one job. A transition that came with it goes into the ledger.
fn reply_to(world: &World, account: usize, when: When, response: Response<Transition>) -> Reply {
    match response {
        Response::Answer(transition) => {
            let job = Rc::new(transition.job.clone());
            world.ledger.borrow_mut().answered(account, when, transition);
            Reply::Yes(job)
        }
        Response::Refused(error) => refusal(error),
        Response::Lost => Reply::Lost,
    }
}

fn refusal(error: EngineError) -> Reply {
    match error {
        EngineError::Refused(_, refusal) => Reply::No(refusal),
        EngineError::Store(_) => Reply::Lost,
        other => panic!("an answer that fits no question about one job: {other}"),
    }
}
