//! Random histories, applied to the reference model and to a subject at the same time: every answer must be the
//! same, and in the end every job.
//!
//! [`steps`] is a strategy of proptest, so that a disagreement shrinks to a short history:
//!
//! ```ignore
//! proptest! {
//!     #[test]
//!     fn agrees_with_the_model(steps in steps(80)) {
//!         agree(&MySubject::new(), &steps).map_err(|found| TestCaseError::fail(found.to_string()))?;
//!     }
//! }
//! ```

mod agree;
mod answer;
mod plan;
mod policies;
mod run_plan;
mod run_world;
mod shorten;
mod sound;
mod step;
mod world;

pub use agree::{Disagreement, agree};
pub use answer::StepAnswer;
pub use plan::{End, HeldPlan, JobPlan, LeasePlan, ListPlan, SpecPlan, StartPlan, TokenPlan, UniquePlan};
pub use run_plan::{AdvancePlan, RunPlan, RunsStep};
pub use shorten::shortened;
pub use step::{Step, steps};
