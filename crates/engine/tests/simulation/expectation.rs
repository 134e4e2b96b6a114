//! What the documents of the five dialects say about a failure, in our own words and arithmetic. None
//! of the code that is under test is used here: no reader, no curve, no decision.

use redrive_policy::{Disposition, Signal};

/// What is to happen to one job after its failures.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    /// At most so many runs, of which there is always one.
    pub(crate) limit: Option<u32>,
    /// What it is called when the limit stops a job.
    pub(crate) limit_reason: &'static str,
    pub(crate) max_elapsed_ms: Option<f64>,
    /// Whether a job that the policy stops is a dead letter.
    pub(crate) dead_letter: bool,
    /// Whether a worker that says "not retryable" is heeded.
    pub(crate) heeds_flag: bool,
    /// What it is called when no clause fits.
    pub(crate) unmatched: &'static str,
    pub(crate) clauses: Vec<Clause>,
}

/// Which failures, how many of them, and how long to wait.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) fits: Fits,
    /// The failure of this number, among those of the clause, is the last.
    pub(crate) budget: Option<u32>,
    pub(crate) waits: Waits,
}

/// Which failures a clause is about; what is absent fits all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fits {
    pub(crate) include: Option<Vec<&'static str>>,
    pub(crate) exclude: Vec<&'static str>,
    pub(crate) codes: Option<Vec<&'static str>>,
    pub(crate) flag: Option<bool>,
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    pub(crate) initial_ms: f64,
    pub(crate) growth: Growth,
    pub(crate) cap_ms: Option<f64>,
    /// Whether the cap bites before the noise; it always does after it.
    pub(crate) cap_first: bool,
    pub(crate) noise: Noise,
    pub(crate) whole_ms: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Growth {
    Fixed,
    Linear,
    Exponential(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Noise {
    None,
    /// A factor between the two.
    Times(f64, f64),
    Decorrelated,
}

/// Why a run failed.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Reported(Reported),
    /// It went silent, or took too long.
    Overdue,
}

/// A failure as a worker reported it.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) types: Vec<&'static str>,
    pub(crate) code: &'static str,
    pub(crate) retryable: Option<bool>,
    pub(crate) signal: Signal,
    pub(crate) delay_ms: Option<f64>,
}

/// What is to happen after a failure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expected {
    Retry {
        low_ms: f64,
        high_ms: f64,
    },
    Stop {
        reason: &'static str,
        dead: bool,
    },
    /// Not a failure: it comes back after this time.
    Requeue {
        ms: f64,
    },
}

impl Waits {
    pub(crate) const NONE: Self = Self {
        initial_ms: 0.0,
        growth: Growth::Fixed,
        cap_ms: None,
        cap_first: true,
        noise: Noise::None,
        whole_ms: false,
    };

    /// The shortest and the longest wait before retry `n`, counted from 1.
    fn bounds(&self, n: u32) -> (f64, f64) {
        let capped = |ms: f64| self.cap_ms.map_or(ms, |cap| ms.min(cap));
        let raw = self.initial_ms
            * match self.growth {
                Growth::Fixed => 1.0,
                Growth::Linear => f64::from(n),
                Growth::Exponential(rate) => (1..n).fold(1.0, |factor, _| factor * rate),
            };
        let raw = if self.cap_first { capped(raw) } else { raw };
        let (low, high) = match self.noise {
            Noise::None => (raw, raw),
            Noise::Times(low, high) => (raw * low, raw * high),
            // Each wait is at most three times the one before, and the first at most three times the initial one.
            Noise::Decorrelated => (self.initial_ms, (0..n).fold(self.initial_ms, |high, _| capped(high * 3.0))),
        };
        let (low, high) = (capped(low), capped(high));
        if self.whole_ms { (low.floor(), high.floor()) } else { (low, high) }
    }
}

fn matches(pattern: &str, word: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(prefix) if prefix.ends_with('.') => word.starts_with(prefix),
        _ => pattern == word,
    }
}

impl Fits {
    fn excludes(&self, name: &str) -> bool {
        self.exclude.iter().any(|pattern| matches(pattern, name))
    }

    fn fits(&self, name: &str, reported: &Reported) -> bool {
        let listed = |list: &Option<Vec<&str>>, word: &str| {
            list.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| matches(pattern, word)))
        };
        !self.excludes(name)
            && listed(&self.include, name)
            && listed(&self.codes, reported.code)
            && self.flag.is_none_or(|flag| reported.retryable == Some(flag))
    }
}

impl Expectation {
    /// The same under an operator's cap.
    pub(crate) fn capped(mut self, max_attempts: Option<u32>, max_elapsed_ms: Option<f64>) -> Self {
        if let Some(cap) = max_attempts.map(|cap| cap.max(1)) {
            self.limit = Some(self.limit.map_or(cap, |limit| limit.min(cap)));
        }
        if let Some(cap) = max_elapsed_ms {
            self.max_elapsed_ms = Some(self.max_elapsed_ms.map_or(cap, |limit| limit.min(cap)));
        }
        self
    }

    /// The clause that handles a failure. Whatever name of the error a list excludes counts first;
    /// then the first name that a clause fits, and of its clauses the first.
    fn clause_for(&self, cause: &Cause) -> Option<usize> {
        let Cause::Reported(reported) = cause else { return Some(0) };
        let names: &[&str] = if reported.types.is_empty() { &["error"] } else { &reported.types };
        if names.iter().any(|name| self.clauses.iter().any(|clause| clause.fits.excludes(name))) {
            return None;
        }
        names.iter().find_map(|name| self.clauses.iter().position(|clause| clause.fits.fits(name, reported)))
    }

    /// What may happen after a failure, given the counted ones before it in the same generation. More than
    /// one where a random wait decides whether the limit on time is met.
    pub(crate) fn decide(&self, before: &[Cause], cause: &Cause, elapsed_ms: f64) -> Vec<Expected> {
        let stop = |reason, dead| vec![Expected::Stop { reason, dead }];
        if let Cause::Reported(reported) = cause {
            match reported.signal {
                Signal::None if self.heeds_flag && reported.retryable == Some(false) => {
                    return stop("non_retryable", self.dead_letter);
                }
                Signal::None | Signal::Overdue => {}
                Signal::Stop(disposition) => return stop("handler", disposition == Disposition::DeadLetter),
                Signal::Unrecoverable => return stop("unrecoverable", true),
                Signal::Permanent => return stop("non_retryable", self.dead_letter),
                Signal::Prune => return stop("pruned", false),
                Signal::RequeueAfter(wait) => return vec![Expected::Requeue { ms: wait.ms() }],
            }
        }
        let Some(clause) = self.clause_for(cause) else { return stop(self.unmatched, self.dead_letter) };
        let run = before.len() as u32 + 1;
        if self.limit.is_some_and(|limit| run >= limit) {
            return stop(self.limit_reason, self.dead_letter);
        }
        let handled = before.iter().filter(|earlier| self.clause_for(earlier) == Some(clause)).count() as u32 + 1;
        let clause = &self.clauses[clause];
        if clause.budget.is_some_and(|budget| handled >= budget) {
            return stop("max_attempts", self.dead_letter);
        }
        let own = match cause {
            Cause::Reported(reported) => reported.delay_ms,
            Cause::Overdue => None,
        };
        let (low_ms, high_ms) = own.map_or_else(|| clause.waits.bounds(handled), |ms| (ms, ms));
        let retry = Expected::Retry { low_ms, high_ms };
        let Some(limit_ms) = self.max_elapsed_ms else { return vec![retry] };
        let over = stop("max_elapsed", self.dead_letter);
        if elapsed_ms + low_ms >= limit_ms {
            over
        } else if elapsed_ms + high_ms < limit_ms {
            vec![retry]
        } else {
            vec![retry, over[0].clone()]
        }
    }
}
