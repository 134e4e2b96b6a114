//! Those who use the server, each a task with dice of its own.

mod operator;
mod producer;
mod sweeper;
mod worker;

pub(crate) use operator::operator;
pub(crate) use producer::producer;
pub(crate) use sweeper::sweeper;
pub(crate) use worker::{Temper, Worker};

use super::common::Seeded;
use super::ledger::Reply;
use super::world::Heard;
use redrive_engine::EngineError;
use redrive_store::Job;
use std::rc::Rc;

/// How long somebody waits for an answer: mostly as long as it takes.
fn timeout(dice: &Seeded) -> Option<u64> {
    dice.permille(60).then(|| dice.between(1, 12))
}

/// What was told about one job.
fn told(heard: Heard<Job>) -> Reply {
    match heard {
        Heard::StoreFuture(job) => Reply::Yes(Rc::new(job)),
        Heard::Refused(error) => refusal(error),
        Heard::Lost => Reply::Lost,
    }
}

fn refusal(error: EngineError) -> Reply {
    match error {
        EngineError::Refused(_, refusal) => Reply::No(refusal),
        EngineError::Store(_) => Reply::Lost,
        other => panic!("an answer that fits no question about one job: {other}"),
    }
}
