//! A builder for policies in Rust code.

use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Parts, Pattern, Policy, Problem,
    Problems, Rounding, Rule, Span, Unmatched,
};

/// The defaults, which are those of OJS §8 but for the jitter and the disposition.
const INITIAL: Span = Span::from_secs(1);
const RATE: f64 = 2.0;
const MAX_DELAY: Span = Span::from_secs(300);
const MAX_ATTEMPTS: u32 = 3;

const CURVE: &str = "/rules/0/backoff/curve";
const START: &str = "/rules/0/backoff/initial_ms";
const CAP: &str = "/rules/0/backoff/cap";
const JITTER: &str = "/rules/0/backoff/jitter";
const ATTEMPTS: &str = "/attempts";

impl Policy {
    /// A builder for a policy in Rust code; see [`PolicyBuilder`] for what it starts from.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }
}

/// Builds a policy, most often one of a single rule.
///
/// | setting | default |
/// | --- | --- |
/// | delays | exponential: 1 s, then twice the delay before |
/// | longest delay | 5 min; none for [`fixed`](Self::fixed) and [`immediate`](Self::immediate), which wait what they say |
/// | place of the cap | before and after the jitter; after it for decorrelated jitter |
/// | jitter | full; none for `fixed` and `immediate` |
/// | attempts | 3, the first run included; with [`rule`](Self::rule)s that each have a budget, no other limit |
/// | elapsed time | no limit |
/// | errors | all are retried |
/// | what becomes of it | [`Disposition::Fail`]: the caller gets the failure |
///
/// Each setting is given once; a second one contradicts the first and is a problem. Lengths of time
/// are anything that becomes a [`Span`], such as [`std::time::Duration`], and saturate at
/// [`Span::MAX`].
///
/// ```
/// use redrive_policy::Policy;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), redrive_policy::Problems> {
/// let policy = Policy::builder()
///     .exponential(Duration::from_millis(200), 2.0)
///     .max_delay(Duration::from_secs(30))
///     .equal_jitter()
///     .max_attempts(6)
///     .max_elapsed(Duration::from_secs(120))
///     .except_types(["auth.*", "validation.payload_invalid"])
///     .build()?;
/// assert_eq!(policy.rules.len(), 1);
/// # Ok(())
/// # }
/// ```
///
/// All problems are reported together:
///
/// ```
/// use redrive_policy::Policy;
/// use std::time::Duration;
///
/// let problems = Policy::builder()
///     .exponential(Duration::from_secs(1), f64::NAN)
///     .jitter_plus_minus(1.5)
///     .build()
///     .unwrap_err();
/// assert_eq!(problems.0.len(), 2);
/// assert!(problems.to_string().contains("found 1.5; allowed is a fraction from 0 to 1"));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct PolicyBuilder {
    timing: Option<Setting<(Span, Curve)>>,
    max_delay: Option<Setting<Option<Span>>>,
    cap_place: Option<Setting<CapPlace>>,
    jitter: Option<Setting<Jitter>>,
    only_types: Option<Setting<Vec<Pattern>>>,
    except_types: Option<Setting<Vec<Pattern>>>,
    rules: Vec<Rule>,
    attempts: Option<Setting<AttemptLimit>>,
    max_elapsed: Option<Setting<Span>>,
    on_stop: Option<Setting<Disposition>>,
    unmatched: Option<Setting<Unmatched>>,
    problems: Vec<Problem>,
}

/// A value, and the method that set it, which messages name.
#[derive(Clone, Debug)]
struct Setting<T> {
    by: &'static str,
    value: T,
}

/// Fills a slot that can be filled once.
fn set<T>(slot: &mut Option<Setting<T>>, problems: &mut Vec<Problem>, path: &str, by: &'static str, value: T) {
    match slot {
        Some(first) => {
            let message = format!("set by {}() and again by {by}(); keep one of them", first.by);
            problems.push(Problem::with_message(path, message));
        }
        None => *slot = Some(Setting { by, value }),
    }
}

fn value_of<T: Copy>(slot: Option<&Setting<T>>) -> Option<T> {
    slot.map(|setting| setting.value)
}

/// When to wait, and how long.
impl PolicyBuilder {
    /// The same delay every time: without cap and jitter, unless they are asked for.
    pub fn fixed(self, delay: impl Into<Span>) -> Self {
        self.timing("fixed", delay.into(), Curve::Fixed)
    }

    /// The n-th delay is n times `step`.
    pub fn linear(self, step: impl Into<Span>) -> Self {
        self.timing("linear", step.into(), Curve::Linear)
    }

    /// The first delay, and what each is multiplied by to give the next; at least 1.
    pub fn exponential(self, first: impl Into<Span>, rate: f64) -> Self {
        self.timing("exponential", first.into(), Curve::Exponential { rate })
    }

    /// The n-th delay is `n^exponent` times `first`; the exponent is at least 0.
    pub fn polynomial(self, first: impl Into<Span>, exponent: f64) -> Self {
        self.timing("polynomial", first.into(), Curve::Polynomial { exponent, first: 1 })
    }

    /// No delay at all.
    pub fn immediate(self) -> Self {
        self.timing("immediate", Span::ZERO, Curve::Fixed)
    }

    fn timing(mut self, by: &'static str, initial: Span, curve: Curve) -> Self {
        set(&mut self.timing, &mut self.problems, CURVE, by, (initial, curve));
        self
    }

    /// The longest delay; not below the first one.
    pub fn max_delay(mut self, longest: impl Into<Span>) -> Self {
        set(&mut self.max_delay, &mut self.problems, CAP, "max_delay", Some(longest.into()));
        self
    }

    /// Delays grow without a cap.
    pub fn no_max_delay(mut self) -> Self {
        set(&mut self.max_delay, &mut self.problems, CAP, "no_max_delay", None);
        self
    }

    /// Where the cap is enforced.
    pub fn cap_place(mut self, place: CapPlace) -> Self {
        set(&mut self.cap_place, &mut self.problems, &format!("{CAP}/place"), "cap_place", place);
        self
    }

    /// Uniform from nothing to the whole delay: spreads a crowd the most.
    pub fn full_jitter(self) -> Self {
        self.jitter("full_jitter", Jitter::FULL)
    }

    /// Half of the delay, plus uniform from nothing to the other half.
    pub fn equal_jitter(self) -> Self {
        self.jitter("equal_jitter", Jitter::EQUAL)
    }

    /// The delay give or take a fraction of it, which lies from 0 to 1.
    pub fn jitter_plus_minus(mut self, fraction: f64) -> Self {
        let valid = (0.0..=1.0).contains(&fraction);
        if !valid {
            self.problems.push(Problem::new(JITTER, fraction, "a fraction from 0 to 1"));
        }
        self.jitter("jitter_plus_minus", if valid { Jitter::plus_minus(fraction) } else { Jitter::None })
    }

    /// The factor of Open Job Spec, uniform from 0.5 to 1.5.
    pub fn ojs_jitter(self) -> Self {
        self.jitter("ojs_jitter", Jitter::OJS)
    }

    /// Uniform between the first delay and three times the previous one. Of the curve, only the
    /// first delay is read; the cap is enforced after the jitter.
    pub fn decorrelated_jitter(self) -> Self {
        self.jitter("decorrelated_jitter", Jitter::Decorrelated)
    }

    /// The delay is used as it is.
    pub fn no_jitter(self) -> Self {
        self.jitter("no_jitter", Jitter::None)
    }

    fn jitter(mut self, by: &'static str, jitter: Jitter) -> Self {
        set(&mut self.jitter, &mut self.problems, JITTER, by, jitter);
        self
    }
}

/// When to stop.
impl PolicyBuilder {
    /// The largest number of runs, the first one included. 0 and 1 are the same: nothing is retried.
    pub fn max_attempts(self, runs: u32) -> Self {
        self.attempts("max_attempts", AttemptLimit::AtMost(runs))
    }

    /// No limit on the number of runs.
    pub fn unlimited_attempts(self) -> Self {
        self.attempts("unlimited_attempts", AttemptLimit::Unlimited)
    }

    fn attempts(mut self, by: &'static str, limit: AttemptLimit) -> Self {
        set(&mut self.attempts, &mut self.problems, ATTEMPTS, by, limit);
        self
    }

    /// The time since the start at which no further run may begin. The limit on attempts stays.
    pub fn max_elapsed(mut self, limit: impl Into<Span>) -> Self {
        set(&mut self.max_elapsed, &mut self.problems, "/max_elapsed_ms", "max_elapsed", limit.into());
        self
    }

    /// Only these error types are retried: `external.timeout` exactly, `external.*` by its prefix
    /// (OJS §6.2).
    pub fn only_types(mut self, types: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let patterns = self.patterns("/rules/0/match/include_types", types);
        set(&mut self.only_types, &mut self.problems, "/rules/0/match/include_types", "only_types", patterns);
        self
    }

    /// These error types are never retried, whatever else says so; written as for
    /// [`only_types`](Self::only_types).
    pub fn except_types(mut self, types: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let patterns = self.patterns("/rules/0/match/exclude_types", types);
        set(&mut self.except_types, &mut self.problems, "/rules/0/match/exclude_types", "except_types", patterns);
        self
    }

    fn patterns(&mut self, path: &str, types: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for (index, text) in types.into_iter().enumerate() {
            if text.as_ref().is_empty() {
                let allowed = "an error type such as external.timeout, or a prefix such as external.*";
                self.problems.push(Problem::new(format!("{path}/{index}"), "an empty string", allowed));
            }
            patterns.push(Pattern::dotted(text.as_ref()));
        }
        patterns
    }

    /// What becomes of a job that the policy stops.
    pub fn on_stop(mut self, disposition: Disposition) -> Self {
        set(&mut self.on_stop, &mut self.problems, "/on_stop", "on_stop", disposition);
        self
    }

    /// What it is called when no rule fits; the default is [`Unmatched::NonRetryable`].
    pub fn unmatched(mut self, unmatched: Unmatched) -> Self {
        set(&mut self.unmatched, &mut self.problems, "/unmatched", "unmatched", unmatched);
        self
    }

    /// Adds a rule, for policies that treat errors differently. The first rule that fits a failure
    /// handles it. The methods on delays and error types are about the single rule that a policy
    /// otherwise has, and do not go together with this one.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }
}

impl PolicyBuilder {
    /// Builds the policy.
    ///
    /// # Errors
    /// Every problem, each with the path of the part in the canonical form.
    pub fn build(mut self) -> Result<Policy, Problems> {
        let rules = if self.rules.is_empty() { vec![self.single_rule()] } else { self.several_rules() };
        let has_budgets = rules.iter().all(|rule| rule.budget.is_some());
        let default_attempts = if has_budgets { AttemptLimit::Unlimited } else { AttemptLimit::AtMost(MAX_ATTEMPTS) };
        let built = Policy::new(Parts {
            rules,
            attempts: value_of(self.attempts.as_ref()).unwrap_or(default_attempts),
            max_elapsed: value_of(self.max_elapsed.as_ref()),
            on_stop: value_of(self.on_stop.as_ref()).unwrap_or(Disposition::Fail),
            unmatched: value_of(self.unmatched.as_ref()).unwrap_or(Unmatched::NonRetryable),
            delegated: None,
        });
        match built {
            Ok(policy) if self.problems.is_empty() => Ok(policy),
            Ok(_) => Err(Problems(self.problems)),
            Err(Problems(more)) => {
                self.problems.extend(more);
                Err(Problems(self.problems))
            }
        }
    }

    fn several_rules(&mut self) -> Vec<Rule> {
        let settings = [
            self.timing.as_ref().map(|s| s.by),
            self.max_delay.as_ref().map(|s| s.by),
            self.cap_place.as_ref().map(|s| s.by),
            self.jitter.as_ref().map(|s| s.by),
            self.only_types.as_ref().map(|s| s.by),
            self.except_types.as_ref().map(|s| s.by),
        ];
        for by in settings.into_iter().flatten() {
            let message = format!("{by}() is about a single rule and would be lost beside rule(); say it in the rules");
            self.problems.push(Problem::with_message("/rules", message));
        }
        std::mem::take(&mut self.rules)
    }

    fn single_rule(&mut self) -> Rule {
        if self.only_types.as_ref().is_some_and(|types| types.value.is_empty()) {
            let allowed = "at least one error type; for no retries at all, use max_attempts(1)";
            self.problems.push(Problem::new("/rules/0/match/include_types", "an empty list", allowed));
        }
        let matcher = Matcher {
            include_types: self.only_types.take().map(|types| types.value),
            exclude_types: self.except_types.take().map(|types| types.value).unwrap_or_default(),
            ..Matcher::default()
        };
        Rule { matcher, budget: None, backoff: self.backoff() }
    }

    fn backoff(&mut self) -> Backoff {
        let (initial, curve) = value_of(self.timing.as_ref()).unwrap_or((INITIAL, Curve::Exponential { rate: RATE }));
        let default_jitter = if curve == Curve::Fixed { Jitter::None } else { Jitter::FULL };
        let jitter = value_of(self.jitter.as_ref()).unwrap_or(default_jitter);
        if initial.is_zero() {
            self.check_zero(curve, jitter);
        }
        let grows = curve != Curve::Fixed || jitter == Jitter::Decorrelated;
        let cap = self.cap(initial, jitter, grows);
        Backoff { initial, offset: Span::ZERO, curve, cap, jitter, rounding: Rounding::Exact }
    }

    fn check_zero(&mut self, curve: Curve, jitter: Jitter) {
        if curve != Curve::Fixed {
            let allowed = "a first delay greater than zero, as zero never grows; for no delay, use immediate()";
            self.problems.push(Problem::new(START, "a delay of zero", allowed));
        } else if jitter != Jitter::None {
            let message = format!("{jitter} has nothing to change in a delay of zero; leave it out");
            self.problems.push(Problem::with_message(JITTER, message));
        }
    }

    fn cap(&mut self, initial: Span, jitter: Jitter, grows: bool) -> Option<Cap> {
        let asked = value_of(self.max_delay.as_ref());
        let at = asked.unwrap_or_else(|| grows.then_some(MAX_DELAY));
        let place = value_of(self.cap_place.as_ref());
        let Some(at) = at else {
            if place.is_some() {
                let message = "there is no cap whose place it could be; set max_delay too, or leave cap_place out";
                self.problems.push(Problem::with_message(format!("{CAP}/place"), message));
            }
            return None;
        };
        if at < initial {
            let problem = if asked.is_some() {
                Problem::new(format!("{CAP}/at_ms"), at, format_args!("at least the first delay, which is {initial}"))
            } else {
                Problem::new(START, initial, format_args!("at most {at}, the default cap; set max_delay too"))
            };
            self.problems.push(problem);
        }
        let default_place =
            if jitter == Jitter::Decorrelated { CapPlace::AfterJitter } else { CapPlace::BeforeAndAfter };
        Some(Cap { at, place: place.unwrap_or(default_place) })
    }
}
