//! Warnings for policies that are valid and yet do not do what they look like.

use super::schedule::{Schedule, schedule};
use crate::dialect::{Dialect, Part, Reading, Warning};
use crate::{Cap, Curve, Jitter, Policy, Rule, Span};

/// How many retries are looked at one by one.
const ROWS: usize = 1_000;
/// An outage of this length is ordinary; a policy that ends before it loses its jobs.
const ORDINARY_OUTAGE: Span = Span::from_secs(60);
/// After this time people have forgotten the job.
const FORGOTTEN: Span = Span::from_secs(7 * 86_400);
/// A single delay of this length is rarely meant.
const LONG_DELAY: Span = Span::from_secs(86_400);

/// Every warning of a policy: what its reader saw in the wire form, and what the policy does.
///
/// Paths point into a document of the dialect; without one, into the canonical form.
#[must_use]
pub fn lint(dialect: Option<Dialect>, reading: &Reading) -> Vec<Warning> {
    let mut warnings = reading.warnings.clone();
    let policy = &reading.policy;
    let mut linter = Linter { dialect, policy, warnings: Vec::new() };
    linter.limits();
    for (index, rule) in policy.rules.iter().enumerate() {
        linter.rule(index, rule);
    }
    let told = |code: &str| warnings.iter().any(|warning| warning.code == code);
    let repeats = |warning: &Warning| warning.code == "elapsed-limit-unreachable" && told("default-attempts-end-first");
    let more: Vec<Warning> = linter.warnings.into_iter().filter(|warning| !repeats(warning)).collect();
    warnings.extend(more);
    warnings
}

struct Linter<'a> {
    dialect: Option<Dialect>,
    policy: &'a Policy,
    warnings: Vec<Warning>,
}

impl Linter<'_> {
    fn warn(&mut self, code: &'static str, part: Part, rule: usize, message: String, instead: String) {
        let path = self.path_of(part, rule);
        self.warnings.push(Warning { code, path, message, instead });
    }

    fn path_of(&self, part: Part, rule: usize) -> String {
        self.dialect.map_or_else(|| part.canonical_path(rule), |dialect| dialect.path_of(part, rule))
    }

    /// The field that holds a part, for use in a sentence.
    fn field(&self, part: Part) -> String {
        self.path_of(part, 0).rsplit('/').next().unwrap_or_default().to_owned()
    }

    fn limits(&mut self) {
        let unlimited = |rule: &Rule| self.policy.max_retries(rule).is_none();
        if self.policy.max_elapsed.is_none() && self.policy.rules.iter().any(unlimited) {
            let instead = format!("a number for {}, or a limit on time", self.field(Part::Attempts));
            let message = "nothing ever ends the retries: a job that cannot succeed is retried forever".to_owned();
            self.warn("retries-forever", Part::Attempts, 0, message, instead);
        }
    }

    fn rule(&mut self, index: usize, rule: &Rule) {
        let earlier = self.policy.rules[..index].iter().position(|earlier| earlier.matcher.covers(&rule.matcher));
        if let Some(earlier) = earlier {
            let message =
                format!("policy {earlier} comes first and matches everything that this one does; it is never used");
            let instead = format!("put it before policy {earlier}, or make the match of policy {earlier} narrower");
            self.warn("shadowed-rule", Part::Matcher, index, message, instead);
            return;
        }
        if self.never_retries(index, rule) {
            return;
        }
        let schedule = schedule(self.policy, index, ROWS);
        self.jitter(index, rule, &schedule);
        self.cap(index, rule);
        self.elapsed(index, &schedule);
        self.total(index, &schedule);
    }

    fn never_retries(&mut self, index: usize, rule: &Rule) -> bool {
        let nothing = rule.matcher.include_types.as_ref().is_some_and(Vec::is_empty);
        if nothing {
            let message = "the list is empty, so that no error at all is retried".to_owned();
            let instead = format!("the error types to retry in {}", self.field(Part::Matcher));
            self.warn("never-retries", Part::Matcher, index, message, instead);
            return true;
        }
        self.policy.max_retries(rule) == Some(0)
    }

    fn jitter(&mut self, index: usize, rule: &Rule, schedule: &Schedule) {
        let backoff = &rule.backoff;
        let longest =
            schedule.rows.iter().map(|row| row.delay.longest).fold(Span::ZERO, |a, b| if a > b { a } else { b });
        if longest.is_zero() {
            let message = "every retry comes at once, while whatever failed is most likely still failing".to_owned();
            let instead = format!("a delay above zero in {}", self.field(Part::Initial));
            self.warn("immediate-retries", Part::Initial, index, message, instead);
            return;
        }
        if backoff.jitter.is_none() {
            let message =
                "there is no jitter: jobs that failed together come back together, all at one instant".to_owned();
            self.warn("no-jitter", Part::Jitter, index, message, some_jitter(self.dialect).to_owned());
            return;
        }
        self.collapse(index, rule, schedule);
    }

    fn collapse(&mut self, index: usize, rule: &Rule, schedule: &Schedule) {
        let Some(Cap { at, .. }) = rule.backoff.cap else { return };
        let shares = schedule.rows.iter().filter(|row| row.on_one_instant > 0.0);
        let Some(first) = shares.clone().next() else { return };
        let most = shares.clone().map(|row| row.on_one_instant).fold(0.0, f64::max);
        // Within a thousandth, so that an approach to a limit does not name the last row.
        let Some(worst) = shares.clone().find(|row| row.on_one_instant > most - 1e-3) else { return };
        let message = format!(
            "from retry {} on the cap deletes jitter: at retry {}, {:.0} % of the jobs wait exactly {at}, so that those \
             that fail in one instant come back in one instant; only the jitter of earlier retries has spread them",
            first.retry,
            worst.retry,
            most * 100.0
        );
        let highest = schedule.rows.last().map_or(at, |row| rule.backoff.raw(row.retry));
        let instead = if rule.backoff.jitter == Jitter::Decorrelated || highest >= LONG_DELAY {
            format!("a higher {0}, or fewer attempts, so that the delays stay below {0}", self.field(Part::Cap))
        } else {
            format!("a {} well above the last delay, which is {highest} before the jitter", self.field(Part::Cap))
        };
        self.warn("jitter-collapses-at-cap", Part::Cap, index, message, instead);
    }

    fn cap(&mut self, index: usize, rule: &Rule) {
        let backoff = &rule.backoff;
        match backoff.cap {
            Some(cap) if cap.at < backoff.raw(1) => {
                let message =
                    format!("the cap of {} is below the first delay of {}: every delay is cut", cap.at, backoff.raw(1));
                let instead = format!("a {} above {}", self.field(Part::Cap), self.field(Part::Initial));
                self.warn("cap-below-first-delay", Part::Cap, index, message, instead);
            }
            Some(_) => {}
            None => self.no_cap(index, rule),
        }
    }

    fn no_cap(&mut self, index: usize, rule: &Rule) {
        let retries = self.policy.max_retries(rule).unwrap_or(u32::MAX);
        let last = rule.backoff.raw(retries);
        if rule.backoff.curve != Curve::Fixed && last > LONG_DELAY {
            let count = if retries == u32::MAX { "many retries".to_owned() } else { format!("{retries} retries") };
            let message = format!("there is no cap and there are {count}: the last delay would be {last}");
            let instead = format!("a {} such as an hour, or fewer attempts", self.field(Part::Cap));
            self.warn("no-cap-many-attempts", Part::Cap, index, message, instead);
        }
    }

    fn elapsed(&mut self, index: usize, schedule: &Schedule) {
        let Some(limit) = &schedule.elapsed_limit else { return };
        if let (Some(total), None) = (&schedule.total, &limit.longest) {
            let message = format!(
                "the limit on attempts always comes first: all retries together take at most {}, the limit is {} \
                 (runs that take no time assumed)",
                total.longest, limit.limit
            );
            let instead =
                format!("more attempts in {}, or no {}", self.field(Part::Attempts), self.field(Part::Elapsed));
            self.warn("elapsed-limit-unreachable", Part::Elapsed, index, message, instead);
        }
        if let (Some(retries), Some(end)) = (schedule.retries, &limit.shortest) {
            let message = format!(
                "the limit on elapsed time always comes first: even with the shortest delays it stops the job at \
                 {}, before retry {} of {retries}",
                end.at, end.retry
            );
            let instead = format!("a longer {}, or fewer attempts", self.field(Part::Elapsed));
            self.warn("attempt-limit-unreachable", Part::Attempts, index, message, instead);
        }
    }

    fn total(&mut self, index: usize, schedule: &Schedule) {
        let Some(total) = schedule.total.as_ref().filter(|total| !total.longest.is_zero()) else { return };
        let spread = format!("shortest {}, mean {}, longest {}", total.shortest, total.mean, total.longest);
        if total.longest < ORDINARY_OUTAGE {
            let message = format!("all retries are over soon ({spread}): an outage of a minute ends every job");
            let instead = format!("more attempts in {}, or longer delays", self.field(Part::Attempts));
            self.warn("exhausts-quickly", Part::Attempts, index, message, instead);
        } else if total.mean > FORGOTTEN {
            let message = format!("the last retry comes late ({spread})");
            let instead =
                format!("fewer attempts in {}, or a lower {}", self.field(Part::Attempts), self.field(Part::Cap));
            self.warn("exhausts-late", Part::Attempts, index, message, instead);
        }
    }
}

/// Some jitter, in the words of the dialect.
const fn some_jitter(dialect: Option<Dialect>) -> &'static str {
    match dialect {
        None => "any jitter",
        Some(Dialect::Ojs) => "\"jitter\": true",
        Some(Dialect::Azolla) => "\"strategy\": \"exponential_jitter\"",
        Some(Dialect::TaskHarbor) => "\"jitter\": 0.2",
        Some(Dialect::Exosphere) => "a strategy that ends in _FULL_JITTER",
        Some(Dialect::Mwl) => "\"jitter\": \"full\"",
    }
}
