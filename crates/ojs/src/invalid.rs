//! Everything that is wrong with a request.

use redrive_policy::{Problem, Problems};

/// The problems of a request. Those of its retry policy are apart: a request with no others is answered with a
/// status of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalid {
    /// The problems of everything but the policy.
    pub request: Vec<Problem>,
    /// The problems of the retry policy.
    pub policy: Vec<Problem>,
}

impl Invalid {
    /// A request with one problem.
    #[must_use]
    pub fn request(problem: Problem) -> Self {
        Self { request: vec![problem], ..Self::default() }
    }

    /// A request whose policy has problems.
    #[must_use]
    pub fn policy(problems: Problems) -> Self {
        Self { policy: problems.0, ..Self::default() }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.request.is_empty() && self.policy.is_empty()
    }

    /// Whether nothing but the policy is wrong.
    #[must_use]
    pub const fn is_policy_alone(&self) -> bool {
        self.request.is_empty()
    }

    /// Adds the problems of the part at `path`.
    pub fn add(&mut self, path: &str, other: Self) {
        let moved = |mut problem: Problem| {
            problem.path.insert_str(0, path);
            problem
        };
        self.request.extend(other.request.into_iter().map(moved));
        self.policy.extend(other.policy.into_iter().map(moved));
    }

    /// All problems, those of the request first.
    #[must_use]
    pub fn into_problems(self) -> Vec<Problem> {
        self.request.into_iter().chain(self.policy).collect()
    }

    /// All problems in one line.
    #[must_use]
    pub fn message(self) -> String {
        let lead = if self.is_policy_alone() { "the retry policy is not valid" } else { "the request is not valid" };
        listed(lead, &mut self.into_problems())
    }
}

/// Problems in one line, after what they are problems of. Those past the hundredth are dropped and counted.
pub fn listed(lead: &str, problems: &mut Vec<Problem>) -> String {
    const MOST: usize = 100;
    let more = problems.len().saturating_sub(MOST);
    problems.truncate(MOST);
    let mut message = format!("{lead}: {}", Problems(problems.clone()).to_string().replace('\n', "; "));
    if more > 0 {
        message.push_str(&format!("; and {more} more"));
    }
    message
}
