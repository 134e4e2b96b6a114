//! The checks. They use the ledger alone: the requests, the responses, the times that the clock showed, the events that
//! the servers published, and the jobs at the end. Where a response was lost, the request may have been carried out or
//! not.

mod attempts;
mod early;
mod history;
mod kept;
mod leases;
mod rest;
mod signs;
mod state;
mod terminal;
mod transitions;

pub(crate) use rest::at_rest;

use super::ledger::{Account, Ledger, Violation, When};
use redrive_store::{Job, Queue};
use std::rc::Rc;

/// What is there in the end.
pub(crate) struct FinalState {
    pub(crate) jobs: Vec<Rc<Job>>,
    pub(crate) queues: Vec<Queue>,
}

/// One job, and what is wrong with it.
struct Case<'a> {
    ledger: &'a Ledger,
    number: usize,
    account: &'a Account,
    violations: Vec<Violation>,
}

impl Case<'_> {
    fn violation(&mut self, check: &'static str, message: String) {
        self.violations.push(Violation { check, message, account: Some(self.number) });
    }
}

/// Checks all that happened against all that is promised.
pub(crate) fn verify(ledger: &mut Ledger, final_state: &FinalState) {
    let from = ledger.mark();
    let end = When { from, to: ledger.mark() };
    for job in &final_state.jobs {
        ledger.observed(end, job);
    }
    let mut violations = rest::recount(&final_state.jobs, &final_state.queues);
    violations.extend(kept::batches(ledger));
    for (number, account) in ledger.accounts.iter().enumerate() {
        let mut case = Case { ledger, number, account, violations: Vec::new() };
        kept::verify(&mut case, end);
        leases::verify(&mut case);
        attempts::verify(&mut case);
        early::verify(&mut case);
        history::verify(&mut case);
        state::verify(&mut case);
        terminal::verify(&mut case);
        transitions::verify(&mut case);
        violations.append(&mut case.violations);
    }
    ledger.violations.append(&mut violations);
}
