//! The proofs. They go by the books alone: what was asked for, what was answered, what the clock
//! showed meanwhile, and what is there in the end. Where an answer got lost, both is possible.

mod attempts;
mod early;
mod history;
mod kept;
mod leases;
mod rest;
mod signs;
mod state;
mod terminal;

pub(crate) use rest::at_rest;

use super::ledger::{Account, Breach, Ledger, When};
use redrive_store::{Job, Queue};
use std::rc::Rc;

/// What is there in the end.
pub(crate) struct Finale {
    pub(crate) jobs: Vec<Rc<Job>>,
    pub(crate) queues: Vec<Queue>,
}

/// One job before the court.
struct Case<'a> {
    ledger: &'a Ledger,
    number: usize,
    account: &'a Account,
    breaches: Vec<Breach>,
}

impl Case<'_> {
    fn breach(&mut self, token: &'static str, told: String) {
        self.breaches.push(Breach { token, told, account: Some(self.number) });
    }
}

/// Holds everything that happened against everything that was promised.
pub(crate) fn prove(ledger: &mut Ledger, finale: &Finale) {
    let from = ledger.mark();
    let end = When { from, to: ledger.mark() };
    for job in &finale.jobs {
        ledger.saw(end, job);
    }
    let mut breaches = rest::recount(&finale.jobs, &finale.queues);
    breaches.extend(kept::batches(ledger));
    for (number, account) in ledger.accounts.iter().enumerate() {
        let mut case = Case { ledger, number, account, breaches: Vec::new() };
        kept::prove(&mut case, end);
        leases::prove(&mut case);
        attempts::prove(&mut case);
        early::prove(&mut case);
        history::prove(&mut case);
        state::prove(&mut case);
        terminal::prove(&mut case);
        breaches.append(&mut case.breaches);
    }
    ledger.breaches.append(&mut breaches);
}
