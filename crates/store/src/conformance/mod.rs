//! One suite of named cases that every store passes, whatever it is made of.
//!
//! A store under test is a [`Subject`]. [`conformance_tests!`](crate::conformance_tests) makes one test
//! of each case; [`cases`] returns them for other uses. [`model`] compares a store with the reference
//! model over random histories.

mod cases;
mod claim;
mod depth;
mod enqueue;
mod failure;
mod failures;
mod harness;
mod lease;
mod limit_settings;
mod limits;
pub mod model;
mod promote;
mod queues;
mod race;
mod reclaim;
mod redrive;
mod release;
mod restart;
mod run_effects;
mod run_events;
mod run_harness;
mod run_messages;
mod run_pending;
mod run_start;
mod run_step;
mod run_view;
mod settle;
mod subject;
mod transitions;
mod unique;
mod unique_replace;
mod view;
mod violation;

pub use harness::Harness;
pub use subject::{Subject, block_on};
pub use violation::Violation;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use violation::{CaseResult, ensure, same};

/// One rule that a store must follow.
#[derive(Clone, Copy)]
pub struct Case {
    /// What the store must do.
    pub name: &'static str,
    /// The steps and assertions, on a harness with an empty store.
    pub body: CaseFn,
}

/// The function of a case.
pub type CaseFn = for<'a, 's> fn(&'a mut Harness<'s>) -> Pin<Box<dyn Future<Output = Result<(), Violation>> + 'a>>;

/// A case that a store does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCase {
    /// The name of the case.
    pub case: String,
    /// What is wrong.
    pub why: Violation,
}

impl fmt::Display for FailedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.why)
    }
}

impl std::error::Error for FailedCase {}

impl Case {
    /// Runs the case on a new store of the subject.
    ///
    /// # Errors
    /// The first thing that is not as it must be.
    pub fn run(&self, subject: &dyn Subject) -> Result<(), FailedCase> {
        let mut outcome = Err(Violation::new("the subject did not wait for the end of the case"));
        subject.wait(Box::pin(async { outcome = self.run_on_harness(subject).await }));
        outcome.map_err(|why| FailedCase { case: self.name.to_owned(), why })
    }

    async fn run_on_harness(&self, subject: &dyn Subject) -> CaseResult {
        let mut harness = Harness::new(subject)?;
        (self.body)(&mut harness).await
    }
}

/// Runs the case of a name.
///
/// # Errors
/// The first thing that is not as it must be; or that there is no such case.
pub fn check(name: &str, subject: &dyn Subject) -> Result<(), FailedCase> {
    let unknown = || FailedCase { case: name.to_owned(), why: Violation::new("there is no such case") };
    cases().into_iter().find(|case| case.name == name).ok_or_else(unknown)?.run(subject)
}

macro_rules! list_of_cases {
    ($($file:ident { $($name:ident,)* })*) => {
        /// All cases.
        #[must_use]
        pub fn cases() -> Vec<Case> {
            vec![$($(Case { name: stringify!($name), body: |harness| Box::pin($file::$name(harness)) },)*)*]
        }
    };
}

crate::for_each_conformance_case!(list_of_cases);
