//! What has ended stays as it is until an operator redrives it, and no count ever goes back.

use super::Case;
use crate::ledger::short;

pub(super) fn verify(case: &mut Case<'_>) {
    let mut violations = Vec::new();
    for (when, job) in case.account.seen() {
        for (later, then) in case.account.seen().filter(|(later, _)| when.before(*later)) {
            if then.generation < job.generation || then.leases < job.leases {
                violations.push(format!(
                    "counts went back from {when:?} to {later:?}: {} and {}",
                    short(job),
                    short(then)
                ));
            } else if job.state.is_terminal() && then.generation == job.generation && then != job {
                violations.push(format!(
                    "it had ended at {when:?}, and changed by {later:?}: {} and {}",
                    short(job),
                    short(then)
                ));
            }
        }
    }
    // Each sight is compared with every later one: the first difference tells enough.
    violations.truncate(1);
    for message in violations {
        case.violation("terminal", message);
    }
}
